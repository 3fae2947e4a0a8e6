"""The generated page of metrics is the one that is committed."""

from tools import write_metrics_reference


def test_the_metrics_page_is_up_to_date() -> None:
    assert write_metrics_reference.main(["--check"]) == 0, "run: python -m tools.write_metrics_reference"
