"""The documentation site: every page has its place, and a strict build finds no dead link, anchor or page."""

import html
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
import yaml

from sharelens.cli.app import headings

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
GENERATED_PAGES = ("changelog.md", "contributing.md", "style.md")
"""Pages that tools/site_pages.py makes, beside those of the settings."""
AS_TEXT = re.compile(r"\n[-*] |\n\d+\. |\n\s*\||```|\n#")
"""Markdown that was not taken as such: a list or table without an empty line before it, an open fence."""


def pages_of(nav: list[Any]) -> Iterator[str]:
    for entry in nav:
        inside = next(iter(entry.values())) if isinstance(entry, dict) else entry
        yield from [inside] if isinstance(inside, str) else pages_of(inside)


def test_every_page_has_one_place_in_the_navigation() -> None:
    config = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    listed = list(pages_of(config["nav"]))
    written = [str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md")]
    notebooks = [str(path.relative_to(DOCS).with_suffix(".md")) for path in DOCS.rglob("*.ipynb")]
    settings = [f"reference/conf/{path.stem}.md" for path in (ROOT / "conf" / "base").glob("*.yaml")]
    expected = [*written, *notebooks, *settings, "reference/conf/index.md", *GENERATED_PAGES]
    assert sorted(listed) == sorted(expected), "add the page to `nav` in mkdocs.yml"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", folder],
        cwd=ROOT, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.slow
def test_every_page_is_built_and_asks_no_other_host(site: Path) -> None:
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 80
    for page in pages:
        text = page.read_text(encoding="utf-8")
        assert re.findall(r'<(?:script|link|img)\b[^>]*\b(?:src|href)="(?:https?:)?//', text) == [], page.name


@pytest.mark.slow
def test_lists_tables_and_code_are_shown_as_such(site: Path) -> None:
    wrong = []
    for page in sorted(site.rglob("*.html")):
        article = re.search(r"<article.*?</article>", page.read_text(encoding="utf-8"), re.DOTALL)
        text = "" if article is None else re.sub(r"<(pre|code)\b.*?</\1>", "", article[0], flags=re.DOTALL)
        paragraphs = re.findall(r"<p>(.*?)</p>", text, re.DOTALL)
        wrong += [(page.name, paragraph[:80]) for paragraph in paragraphs if AS_TEXT.search(paragraph)]
    assert wrong == []


@pytest.mark.slow
def test_pages_are_made_of_commands_notebooks_and_settings(site: Path) -> None:
    commands = (site / "reference" / "commands.html").read_text(encoding="utf-8")
    for names in headings().values():
        assert [name for name in names if f'id="{name}"' not in commands] == []
    for notebook in (DOCS / "notebooks").glob("*.ipynb"):
        page = (site / "notebooks" / f"{notebook.stem}.html").read_text(encoding="utf-8")
        code = [cell for cell in nbformat.read(notebook, as_version=4).cells if cell.cell_type == "code"]
        assert code[-1].source.splitlines()[0] in html.unescape(re.sub(r"<[^>]+>", "", page))
    assert "spark.driver.memory" in (site / "reference" / "conf" / "spark.html").read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "complaint"),
    [("[gone](no-such-page.md)", "no-such-page.md"), ("[gone](roadmap.md#no-such-anchor)", "no-such-anchor")],
)
def test_a_dead_link_fails_the_build(tmp_path: Path, text: str, complaint: str) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.md").write_text(f"# Start\n\n{text}\n")
    (tmp_path / "docs" / "roadmap.md").write_text("# Roadmap\n")
    config = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    config |= {"nav": ["index.md", "roadmap.md"], "hooks": []}
    (tmp_path / "mkdocs.yml").write_text(yaml.safe_dump(config))
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert complaint in done.stderr
