"""The catalogue on the page of measures is the one of the code."""

from tools import write_measures_reference


def test_the_catalogue_on_the_page_is_up_to_date() -> None:
    assert write_measures_reference.main(["--check"]) == 0, "run: python -m tools.write_measures_reference"


def test_text_around_the_catalogue_stays() -> None:
    text = f"before\n{write_measures_reference.BEGIN}\nof an older version\n{write_measures_reference.END}\nbehind\n"
    page = write_measures_reference.page(text)
    assert page.startswith("before\n")
    assert page.endswith("\nbehind\n")
    assert "of an older version" not in page
