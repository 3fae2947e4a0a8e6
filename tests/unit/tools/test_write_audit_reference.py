"""The page about the rules of the audit is the one that the table makes."""

from tools import write_audit_reference


def test_the_page_is_up_to_date() -> None:
    assert write_audit_reference.main(["--check"]) == 0, "run: python -m tools.write_audit_reference"


def test_rules_that_no_option_allows_are_marked() -> None:
    page = write_audit_reference.page()
    assert "### update_over_limit (not tested)" in page
    assert "### count_over_limit\n" in page
    assert "### complete_count_falls\n" in page
