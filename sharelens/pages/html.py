"""Renders pages. Names reach them as text alone: the templates escape all."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import jinja2

from sharelens import __version__
from sharelens.pages.answers import PageAnswer
from sharelens.pages.composed import MENU
from sharelens.pages.forms import Field

PAGE = "view.html.j2"
STATIC: Mapping[str, tuple[str, tuple[tuple[str, str], ...]]] = {
    "style.css": ("text/css", (("sharelens.report", "style.css"), ("sharelens.pages", "pages.css"))),
    "script.js": ("text/javascript", (("sharelens.report", "script.js"), ("sharelens.pages", "pages.js"))),
}
"""Name -> media type, and the files that it is made of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A part of a page with its answer, or the line that says why there is none (`failure`).

    `documents`: (words, address) of the same answer in other forms.
    """

    title: str
    command_line: str
    answer: PageAnswer | None = None
    failure: str = ""
    page: str = ""
    documents: Sequence[tuple[str, str]] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """A page: `way` to it, `sections`, and the form of its question; `place`: its own address without options."""

    title: str
    source: str
    place: str
    sections: Sequence[Shown] = ()
    way: Sequence[tuple[str, str]] = ()
    further: Sequence[tuple[str, str]] = ()
    fields: Sequence[Field] = ()
    questions: Mapping[str, Sequence[tuple[str, str, str]]] | None = None
    results: Sequence[tuple[str, str]] = ()
    message: str = ""


def render(view: View) -> str:
    """The HTML of a page."""
    return _environment().get_template(PAGE).render(view=view, menu=MENU, version=__version__, lines=(), at=_at())


@cache
def static(name: str) -> tuple[str, str]:
    """Media type and text of a file that pages load. Raises KeyError: there is none of the name."""
    media_type, parts = STATIC[name]
    return media_type, "\n".join(_text(package, file) for package, file in parts)


@cache
def _at() -> Mapping[str, str]:
    """The address of each file, which changes with its text."""
    return {name: f"/static/{name}?{hashlib.sha256(static(name)[1].encode()).hexdigest()[:16]}" for name in STATIC}


@cache
def _environment() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.FunctionLoader(_template), autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True,
        lstrip_blocks=True,
    )  # fmt: skip


def _template(name: str) -> str:
    return _text("sharelens.pages" if name == PAGE else "sharelens.report", name)


def _text(package: str, file: str) -> str:
    return files(package).joinpath(file).read_text(encoding="utf-8")
