"""The page about findings is the one that the rules make."""

from tools import write_findings_reference


def test_the_page_is_up_to_date() -> None:
    assert write_findings_reference.main(["--check"]) == 0, "run: python -m tools.write_findings_reference"
