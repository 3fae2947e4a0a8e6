"""The generated reference page is the one that is committed."""

from typing import get_args

from kafka_log.segments import Reason
from state_model.columnar.decode import REASONS
from tools import write_reference


def test_the_tables_page_is_up_to_date() -> None:
    assert write_reference.main(["--check"]) == 0, "run: python -m tools.write_reference"


def test_every_reason_code_is_explained() -> None:
    page = (write_reference.TARGET.parent / "quarantine.md").read_text(encoding="utf-8")
    reasons = {*get_args(Reason), *REASONS} - {""}
    assert len(reasons) > 15
    assert sorted(reason for reason in reasons if f"`{reason}`" not in page) == []
