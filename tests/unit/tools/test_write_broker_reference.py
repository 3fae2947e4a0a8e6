"""The generated pages of the broker are the ones that are committed, and no other page contradicts them."""

import re

from sharelens.broker.features import SHARE_VERSION
from tools import write_broker_reference


def test_the_pages_are_up_to_date() -> None:
    assert write_broker_reference.main(["--check"]) == 0, "run: python -m tools.write_broker_reference"


def test_an_api_is_either_answered_or_not() -> None:
    answered, _, unanswered_part = write_broker_reference.apis().partition("## Not answered")
    names = re.findall(r"^\| \d+ \| (\w+) \|", answered, re.MULTILINE)
    assert "ShareFetch" in names
    assert "ShareFetch" not in unanswered_part
    assert "AlterPartition" in unanswered_part


def test_bounds_of_groups_and_choices_are_told() -> None:
    page = write_broker_reference.configuration()
    assert "| `share.delivery.count.limit` | `group.share.delivery.count.limit` | `group.share.min" in page
    assert "| `share.isolation.level` | read_uncommitted | read_committed, read_uncommitted |" in page
    assert "| `max.connections` | largest int | at least 0 | yes |" in page


def test_the_reference_of_the_broker_leads_to_them() -> None:
    page = (write_broker_reference.FOLDER / "broker.md").read_text(encoding="utf-8")
    assert SHARE_VERSION in page
    for name in (*write_broker_reference.PAGES, "broker-metrics.md"):
        assert f"]({name})" in page
