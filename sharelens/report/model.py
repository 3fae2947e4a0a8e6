"""The parts of a page as plain values: findings, sections, figures and sheets (tables)."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property

from sharelens.output import UNKNOWN as UNKNOWN_IN_TEXT
from sharelens.output.wording import UNKNOWN
from sharelens.questions.answers.completeness import COMPLETE


class Weight(Enum):
    """How much a finding matters."""

    WRONG = "wrong"
    WATCH = "watch"
    NOTE = "note"
    GOOD = "good"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A cell: its text, its sort key (None: the text), the anchor of its link; `is_whole`: on one line of paper."""

    text: str
    sort: int | float | None = None
    href: str | None = None
    is_whole: bool = False
    mark: str | None = None
    """A word for a coloured mark before the text: the names of delivery states, or of a Weight."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """A column's heading; `hint` explains it on hover, `number`: figures stand to the right.

    `is_minor`: on paper the column is left out.
    """

    label: str
    number: bool = False
    hint: str | None = None
    is_minor: bool = False


@dataclass(frozen=True, kw_only=True)
class Sheet:
    """A table. `left_off`: rows that are not shown, with the command that shows them; `empty`: said without rows."""

    name: str
    caption: str
    heads: Sequence[Head]
    rows: Sequence[Sequence[Cell]]
    left_off: int = 0
    command: str | None = None
    empty: str = "none"
    tools: bool = False
    """Whether it can be sorted and filtered."""

    @cached_property
    def unprinted(self) -> frozenset[int]:
        """The columns that paper has no room for: minor ones, and those in which all is complete or nothing."""
        columns = enumerate(zip(*self.rows, strict=True))
        empty = ({COMPLETE}, {UNKNOWN}, {UNKNOWN_IN_TEXT})
        minor = {place for place, head in enumerate(self.heads) if head.is_minor}
        return frozenset(minor | {place for place, cells in columns if {cell.text for cell in cells} in empty})


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """One chart as SVG, for wide and for narrow screens."""

    wide: str
    narrow: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A chart with a description."""

    name: str
    caption: str
    drawing: Drawn
    text: str
    key: Sequence[tuple[str, str]] = ()
    """The legend: (mark, words)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One finding: a sentence, a link, and the command that shows more."""

    weight: Weight
    text: str
    command: str = ""
    href: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Tile:
    """A figure worth a glance."""

    label: str
    figure: str
    detail: str = ""
    weight: Weight = Weight.NOTE


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A part of the page; `paragraphs` come before figures and sheets, `points` (a list) behind them."""

    name: str
    title: str
    paragraphs: Sequence[str] = ()
    figures: Sequence[Figure] = ()
    sheets: Sequence[Sheet] = ()
    points: Sequence[str] = ()
    commands: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """The whole report. Only `written` has the time of writing."""

    title: str
    scope: str
    facts: Sequence[tuple[str, str]]
    written: str
    findings: Sequence[Finding]
    tiles: Sequence[Tile]
    sections: Sequence[Section]
    version: str
