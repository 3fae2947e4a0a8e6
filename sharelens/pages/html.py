"""Renders pages. Names reach them as text alone: the templates escape all."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

import jinja2
from markupsafe import Markup

from sharelens import __version__
from sharelens.pages.answers import PageAnswer
from sharelens.pages.composed import MENU
from sharelens.pages.forms import Field
from sharelens.pages.state_maps import StateMap
from sharelens.report import colours, rendering
from sharelens.report.model import Figure
from sharelens.report.rendering import environment, script_digest, text_of

PACKAGE, PAGE = "sharelens.pages", "view.html.j2"
STYLE = "style.css"
MOST_ROWS_BYTES = 4 << 20
"""Rows of a state map in a saved file."""
STATIC: Mapping[str, tuple[str, tuple[tuple[str, str], ...]]] = {
    STYLE: ("text/css", ((rendering.PACKAGE, "style.css"), (PACKAGE, "pages.css"))),
    "script.js": ("text/javascript", ((rendering.PACKAGE, "script.js"), (PACKAGE, "pages.js"))),
}
"""Name -> media type, and the files that it is made of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A part of a page with its answer, or the line that says why there is none (`failure`; `is_usage`: as PageError).

    `documents`: (words, address) of the same answer in other forms.
    """

    title: str
    command_line: str
    answer: PageAnswer | None = None
    failure: str = ""
    is_usage: bool = False
    page: str = ""
    documents: Sequence[tuple[str, str]] = ()
    note: str = ""
    figure: Figure | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Saved:
    """A page as one file: its style and script, the digest of the script, and the rows of its state map as JSON.

    `left_off`: what the file lacks, in words.
    """

    style: Markup
    script: Markup
    script_sha256: str
    rows: Markup
    left_off: str


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """A page: `way` to it, `sections`, and the form of its question; `place`: its own address without options.

    `refresh_s`: after how long the page reads itself again; 0: it doesn't. `read_at`: when it was read, in words;
    `save`: the address of the page as one file.
    """

    title: str
    source: str = ""
    place: str = ""
    sections: Sequence[Shown] = ()
    way: Sequence[tuple[str, str]] = ()
    further: Sequence[tuple[str, str]] = ()
    fields: Sequence[Field] = ()
    questions: Mapping[str, Sequence[tuple[str, str, str]]] | None = None
    state_map: StateMap | None = None
    results: Sequence[tuple[str, str]] = ()
    text: str = ""
    message: str = ""
    refresh_s: int = 0
    read_at: str = ""
    save: str = ""
    saved: Saved | None = None


def render(view: View) -> str:
    """The HTML of a page."""
    return (
        _environment()
        .get_template(PAGE)
        .render(
            view=view,
            menu=MENU,
            version=__version__,
            at=_at(),
            drawing=Markup,
            lines=list(zip(colours.LINES, colours.DASHES, strict=True)),
        )
    )


def saved(view: View, rows: str) -> View:
    """The view as one file that loads nothing; `rows`: of its state map, as JSON; empty: it has none."""
    script, left_off = static("script.js")[1], "links to other pages, and rows that the page did not show"
    if len(rows) > MOST_ROWS_BYTES:
        rows, left_off = "", f"the state map, whose rows are larger than {MOST_ROWS_BYTES >> 20} MiB, and {left_off}"
    file = Saved(
        style=Markup(static(STYLE)[1]),  # noqa: S704 - our own file
        script=Markup(script),  # noqa: S704 - our own file
        script_sha256=script_digest(script),
        rows=Markup(rows.replace("<", "\\u003c")),  # noqa: S704 - JSON in ASCII without a tag
        left_off=left_off,
    )
    sections = [replace(section, answer=_without_links(section.answer)) for section in view.sections]
    drawn = view.state_map if rows else None
    return replace(view, sections=sections, saved=file, state_map=drawn, refresh_s=0, way=(), further=())


def _without_links(answer: PageAnswer | None) -> PageAnswer | None:
    if answer is None:
        return None
    sheets = [
        replace(sheet, rows=[[replace(cell, href=None) for cell in row] for row in sheet.rows])
        for sheet in answer.sheets
    ]
    return replace(answer, sheets=sheets)


@cache
def static(name: str) -> tuple[str, str]:
    """Media type and text of a file that pages load. Raises KeyError: there is none of the name."""
    media_type, parts = STATIC[name]
    text = "\n".join(text_of(file, package) for package, file in parts)
    return media_type, text + colours.style_rules() if name == STYLE else text


@cache
def _at() -> Mapping[str, str]:
    """The address of each file, which changes with its text."""
    return {name: f"/static/{name}?{hashlib.sha256(static(name)[1].encode()).hexdigest()[:16]}" for name in STATIC}


@cache
def _environment() -> jinja2.Environment:
    return environment(_template)


def _template(name: str) -> str:
    return text_of(name, PACKAGE if name == PAGE else rendering.PACKAGE)
