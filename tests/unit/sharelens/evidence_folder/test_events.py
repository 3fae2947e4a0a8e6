"""Events of a window from delivery states: what changed at each log record, by ranges."""

import pyarrow as pa

from sharelens.evidence_folder.events import EVENT_OF_END, MEANING, trace_events
from sharelens.questions.traces import vocabulary
from sharelens.source.request import Source
from sharelens.tables.logs.tables import open_log_tables
from sharelens.tables.port import DELIVERIES
from sharelens.tables.reading import read
from tests.logs.state_logs import START_MS, snapshot, tombstone, update, write_log_directory

STORY = [
    snapshot(),
    update(start=0, batches=[(0, 9, 0, 1)], at_ms=START_MS + 1000),
    update(batches=[(0, 2, 2, 2), (5, 5, 4, 2)], at_ms=START_MS + 2000),
    update(start=3, at_ms=START_MS + 3000),
    snapshot(start=7, epoch=1, state_epoch=2, at_ms=START_MS + 4000, batches=[]),
    update(start=7, epoch=1, batches=[(7, 7, 0, 1)], at_ms=START_MS + 5000),
    tombstone(at_ms=START_MS + 6000),
]


def events(tmp_path, from_ms: int, to_ms: int) -> list[tuple[object, ...]]:
    logs = write_log_directory(tmp_path / "logs", STORY)
    deliveries = read(open_log_tables(Source(log_dirs=(str(logs),))), DELIVERIES)
    rows = pa.concat_tables(trace_events(deliveries, from_ms, to_ms)).to_pylist()
    names = ("log_offset", "first_offset", "last_offset", "event", "state_before", "state_after")
    return [tuple(row[name] for name in names) for row in rows]


def test_what_each_record_changed(tmp_path) -> None:
    assert events(tmp_path, START_MS, START_MS + 60_000) == [
        (1, 0, 9, vocabulary.AVAILABLE_AGAIN, None, "AVAILABLE"),
        (2, 0, 2, "acknowledged", "AVAILABLE", "ACKNOWLEDGED"),
        (2, 5, 5, "archived", "AVAILABLE", "ARCHIVED"),
        (3, 0, 2, "passed by the start offset", "ACKNOWLEDGED", None),
        (4, 3, 4, "offset reset", "AVAILABLE", None),
        (4, 5, 5, "offset reset", "ARCHIVED", None),
        (4, 6, 9, "offset reset", "AVAILABLE", None),
        (5, 7, 7, vocabulary.AVAILABLE_AGAIN, None, "AVAILABLE"),
        (6, 7, 7, "life ended", "AVAILABLE", None),
    ]


def test_the_window_is_half_open(tmp_path) -> None:
    assert [row[0] for row in events(tmp_path, START_MS + 2000, START_MS + 3000)] == [2, 2]


def test_every_event_has_a_meaning() -> None:
    unknown = vocabulary.in_state(5, 1)
    assert {*vocabulary.IN_STATE.values(), unknown, vocabulary.NOT_DELIVERED, *EVENT_OF_END.values()} == set(MEANING)
