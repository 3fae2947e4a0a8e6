"""The page about the rules of the audit is the one that the table makes."""

import pytest

from tools import write_audit_reference


def test_the_page_is_up_to_date() -> None:
    assert write_audit_reference.main(["--check"]) == 0, "run: python -m tools.write_audit_reference"


def test_rules_are_marked_that_neither_options_nor_logs_allow(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "(not tested)" not in write_audit_reference.page()
    monkeypatch.setattr(write_audit_reference, "GIVEN_BY_LOGS", frozenset())
    page = write_audit_reference.page()
    assert "### start_offset_beyond_end (not tested)" in page
    assert "### count_over_limit\n" in page
    assert "### complete_count_falls\n" in page
