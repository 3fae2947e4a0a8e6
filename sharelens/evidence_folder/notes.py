"""Notes about the evidence: causes of incompleteness, and warnings of the answers."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from sharelens.evidence_folder.question import Question
from sharelens.evidence_folder.window import LogWindow
from sharelens.parameters.times import time_text
from sharelens.questions.answers.completeness import incomplete_rows, times
from sharelens.questions.answers.missing import nameless
from sharelens.tables.cover import StatePartitionCover

WARNING = "warning"
ENDS = "the evidence ends at"


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """One sentence, with a code that a program can look for."""

    code: str
    incomplete: bool
    detail: str


def of_warnings(warnings: Iterable[str], place: str) -> list[Note]:
    """The warnings of answers, without the path of the evidence and without its end, which has its own note."""
    return [
        Note(code=WARNING, incomplete=False, detail=warning.replace(place, "the evidence"))
        for warning in warnings
        if not warning.startswith(ENDS)
    ]


def of_window(
    cover: Sequence[StatePartitionCover],
    windows: Mapping[int, LogWindow],
    tables: Mapping[str, pa.Table],
    question: Question,
) -> list[Note]:
    """Notes for each cause of incomplete evidence of the window."""
    return [*_extent(cover, question), *_losses(tables), *_states(tables), *_missing(tables)]


def _extent(cover: Sequence[StatePartitionCover], question: Question) -> Iterator[Note]:
    first, last = times(cover)
    if first is not None and first > question.from_ms:
        pruned = any(part.first_offset for part in cover)
        yield Note(
            code="begins_late",
            incomplete=pruned,
            detail=f"the evidence begins at {time_text(first)}, after the window's beginning "
            f"{time_text(question.from_ms)}; "
            + (
                "earlier records are not in the evidence"
                if pruned
                else "the evidence has the state logs from their first offset on"
            ),
        )
    if last is not None and last < question.to_ms:
        yield Note(
            code="ends_early",
            incomplete=True,
            detail=f"the evidence ends at {time_text(last)}, before the window's end {time_text(question.to_ms)}; "
            "later records are not in the evidence",
        )
        held_back = sum(part.held_back for part in cover)
        if held_back:
            yield Note(
                code="held_back",
                incomplete=True,
                detail=f"{held_back} offsets at or above the high watermark were left out: they were not committed",
            )


def _losses(tables: Mapping[str, pa.Table]) -> Iterator[Note]:
    gaps = tables["gap"].filter(pc.field("in_window"))
    if gaps.num_rows:
        yield Note(
            code="gap_in_window",
            incomplete=True,
            detail=f"{gaps.num_rows} ranges of the state log that lie in the window or reach into it are missing (gap)",
        )
    broken = tables["quarantine"].num_rows
    if broken:
        yield Note(
            code="quarantined",
            incomplete=True,
            detail=f"{broken} batches or records of the window could not be read or decoded (quarantine)",
        )


def _states(tables: Mapping[str, pa.Table]) -> Iterator[Note]:
    for name in ("state_before", "state_after"):
        marked = incomplete_rows(tables[name].column("completeness"))
        if marked:
            yield Note(
                code=f"{name}_incomplete",
                incomplete=True,
                detail=f"{marked} of {tables[name].num_rows} rows of {name} are not complete; each row has the reason",
            )


def _missing(tables: Mapping[str, pa.Table]) -> Iterator[Note]:
    if tables["group"].num_rows == 0:
        yield Note(
            code="no_group_log",
            incomplete=False,
            detail="no record of the group in __consumer_offsets up to the window's end; members and assignments stand "
            "there alone",
        )
    for line in nameless(tables["topic"].column("topic").null_count):
        yield Note(code="unnamed_topics", incomplete=False, detail=line)
