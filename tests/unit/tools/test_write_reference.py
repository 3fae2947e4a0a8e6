"""The generated reference page is the one that is committed."""

from sharelens.kafka_log.reasons import REASONS
from state_model.columnar import decode
from tools import write_reference


def test_the_tables_page_is_up_to_date() -> None:
    page = write_reference.TARGET.read_text(encoding="utf-8").splitlines()
    assert write_reference.reference().splitlines() == page, "run: python -m tools.write_reference"


def test_every_reason_code_is_explained() -> None:
    page = (write_reference.TARGET.parent / "quarantine.md").read_text(encoding="utf-8")
    reasons = {*REASONS, *decode.REASONS} - {""}
    assert len(reasons) > 15
    assert sorted(reason for reason in reasons if f"`{reason}`" not in page) == []
