"""Links and pages of the documentation site, without a build."""

from pathlib import Path

import pytest

from tools import site_pages


@pytest.mark.parametrize(
    ("page", "markdown", "expected"),
    [
        ("index.md", "[n](notebooks/tables.ipynb)", "[n](notebooks/tables.md)"),
        ("how-to/schedule.md", "[d](../../conf/base/dags.yaml)", "[d](../reference/conf/dags.md)"),
        ("reference/conf/index.md", "[m](../docs/reference/measures.md#poison)", "[m](../measures.md#poison)"),
        ("contributing.md", "[s](STYLE.md) [t](tests/data/README.md)", "[s](style.md) t"),
        (
            "how-to/a.md",
            "[x](b.md#c) [y](#d) [z](https://example.org/e)",
            "[x](b.md#c) [y](#d) [z](https://example.org/e)",
        ),
        ("how-to/a.md", "![map](state-map.png)", "![map](state-map.png)"),
    ],
)
def test_links_lead_to_pages(page: str, markdown: str, expected: str) -> None:
    assert site_pages.relinked(markdown, page) == expected


def test_a_file_that_is_no_markdown_is_a_block_of_code(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("b: 1\n")
    assert site_pages.file_page(tmp_path / "a.yaml") == "# a.yaml\n\n```yaml\nb: 1\n```\n"
