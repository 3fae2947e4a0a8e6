"""Data docs that need no network: the library's pages under a style of ours, and an index without scripts.

The library's own pages fetch styles and scripts from a dozen public servers, and its index is empty without them. A
policy in each page keeps the browser from fetching or running anything, whatever names of groups hold.

Importing this module imports the library.
"""

from collections.abc import Mapping
from html import escape
from typing import Any

from great_expectations.render.view.view import DefaultJinjaPageView

POLICY = "default-src 'none'; style-src 'unsafe-inline'"
STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; margin: 0 auto; max-width: 1200px; padding: 1em; color: #222; }
h1 { font-size: 1.4em; }
table { border-collapse: collapse; width: 100%; margin: 0.5em 0 1.5em; }
th, td { border-bottom: 1px solid #ccc; padding: 0.35em 0.6em; text-align: left; vertical-align: top; }
td { overflow-wrap: anywhere; }
ul { padding-left: 1.2em; }
img, button, nav, footer, .card, .modal { display: none; }
.fa-check-circle::before { content: "met"; }
.fa-times::before { content: "NOT MET"; }
.fa-exclamation-triangle::before { content: "RAISED"; }
.alert { border: 1px solid #ccc; padding: 0.4em 0.8em; margin: 0.5em 0; }
.badge { background: #eee; border-radius: 4px; padding: 0 0.35em; }
.cooltip .top { display: none; }
.failed, .text-danger { color: #b00020; }
"""
HEAD = (
    f'<head>\n<meta charset="UTF-8">\n<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
    f"<style>{STYLE}</style>"
)


class Page(DefaultJinjaPageView):
    """A page about one suite, or about one validation."""

    def render(self, document: Any, template: str | None = None, **options: Any) -> str:
        """The page as HTML."""
        library: Any = super()
        return str(library.render(document, template, **options)).replace("<head>", HEAD, 1)


class Links:
    """Hands what the index links to on to `Index`."""

    def render(self, links: Mapping[str, Any]) -> Mapping[str, Any]:
        """The links as they are."""
        return links


class Index:
    """The first page: one line a validation, failed ones first."""

    def render(self, links: Mapping[str, Any], **_: Any) -> str:
        """The page as HTML."""
        rows = sorted(
            links.get("validations_links", ()),
            key=lambda link: (bool(link["validation_success"]), link["expectation_suite_name"], link["filepath"]),
        )
        lines = "\n".join(_line(link) for link in rows)
        return (
            f"<!DOCTYPE html>\n<html>\n{HEAD}\n<title>sharelens: quality gates</title>\n</head>\n<body>\n"
            "<h1>Quality gates</h1>\n<table>\n<tr><th>validation</th><th>result</th><th>judged at (UTC)</th>"
            f"<th>suite</th></tr>\n{lines}\n</table>\n</body>\n</html>\n"
        )


def _line(link: Mapping[str, Any]) -> str:
    name, page, suite = (
        escape(str(link[key])) for key in ("expectation_suite_name", "filepath", "expectation_suite_filepath")
    )
    result = "met" if link["validation_success"] else '<span class="failed">not met</span>'
    at = escape(str(link["run_time"])[:19])
    cells = (f'<a href="{page}">{name}</a>', result, at, f'<a href="{suite}">suite</a>')
    return f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"
