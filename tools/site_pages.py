"""Hooks of MkDocs: pages of the documentation site that are no files of docs/, and links to them."""

import functools
import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parent.parent
DOCS = "docs"
NOTEBOOK = ".ipynb"
PAGES_OF_FILES = {
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "STYLE.md": "style.md",
    "conf/README.md": "reference/conf/index.md",
    "conf/base/audit.yaml": "reference/conf/audit.md",
    "conf/base/dags.yaml": "reference/conf/dags.md",
    "conf/base/findings.yaml": "reference/conf/findings.md",
    "conf/base/jobs.yaml": "reference/conf/jobs.md",
    "conf/base/quality.yaml": "reference/conf/quality.md",
    "conf/base/spark.yaml": "reference/conf/spark.md",
}
"""Files outside docs/ and their pages."""
LINKED = re.compile(r"\[([^\]]*)\]\((?![a-z]+:|#)([^)\s#]+)(#[^)\s]*)?\)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the pages that are made here, and puts notebooks as pages in the place of their files."""
    for notebook in [file for file in files if file.src_uri.endswith(NOTEBOOK)]:
        files.remove(notebook)
        name = notebook.src_uri.removesuffix(NOTEBOOK) + ".md"
        files.append(File.generated(config, name, content=notebook_page(ROOT / DOCS / notebook.src_uri)))
    for source, page in PAGES_OF_FILES.items():
        files.append(File.generated(config, page, content=file_page(ROOT / source)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Links between files of the repository become links between pages; those to other files become text."""
    return relinked(markdown, page.file.src_uri)


def relinked(markdown: str, page: str) -> str:
    """The text of a page (its name on the site) with its links as `on_page_markdown` has them."""
    return LINKED.sub(functools.partial(_relinked, page), markdown)


def notebook_page(path: Path) -> str:
    """The cells of a notebook as Markdown."""
    from nbconvert.exporters import MarkdownExporter

    exporter: Any = MarkdownExporter()  # type: ignore[no-untyped-call]
    body, _ = exporter.from_filename(str(path))
    return str(body)


def file_page(path: Path) -> str:
    """A Markdown file as it is, another one as a block of code."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        return text
    return f"# {path.name}\n\n```{path.suffix[1:]}\n{text}```\n"


def _relinked(page: str, link: re.Match[str]) -> str:
    words, target, anchor = link[1], link[2], link[3] or ""
    path = posixpath.normpath(posixpath.join(posixpath.dirname(_origin(page)), target))
    inside = _page_of(path)
    if inside is None:
        return words
    return f"[{words}]({posixpath.relpath(inside, posixpath.dirname(page) or '.')}{anchor})"


def _origin(page: str) -> str:
    """The file of the repository that a page shows."""
    files = {shown_page: source for source, shown_page in PAGES_OF_FILES.items()}
    return files.get(page, f"{DOCS}/{page}")


def _page_of(path: str) -> str | None:
    """The page, or the file of the site, of a path in the repository; None: it is not on the site."""
    if path.startswith(f"{DOCS}/"):
        inside = path.removeprefix(f"{DOCS}/")
        return inside.removesuffix(NOTEBOOK) + ".md" if inside.endswith(NOTEBOOK) else inside
    return PAGES_OF_FILES.get(path)
