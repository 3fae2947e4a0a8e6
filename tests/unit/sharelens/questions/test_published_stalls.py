"""Stalls by gold.stall are those that the histories give at the same moment."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from sharelens.lake.scan import open_lake
from sharelens.measures.settings.over_time import MAX_RECORD_LOCKS, NO_SETTINGS, GroupSettings
from sharelens.measures.stalls import intervals as stalls
from sharelens.measures.stalls.intervals import IDLE
from sharelens.parameters.filters import KeyFilter
from sharelens.questions.answers.measured import rows_of, scope
from sharelens.questions.published_stalls import published_stalls
from sharelens.source.request import CutChoice
from sharelens.tables.lakes.tables import LakeTables
from sharelens.tables.opening import open_cut
from tests.logs.state_logs import START_MS, snapshot, update, write_log_directory
from tests.logs.user_topics import write_orders
from tests.once import made_once
from tests.processes.in_process import make_lake
from tests.settings_in_files import group_configs

pytestmark = pytest.mark.slow

MINUTE_MS = 60_000
AVAILABLE, ACKNOWLEDGED, ARCHIVING = 0, 2, 3
LOCKS = (
    group_configs(0, MAX_RECORD_LOCKS, blocked=6, moved=2),
    group_configs(START_MS + 6 * MINUTE_MS, MAX_RECORD_LOCKS, blocked=6, moved=9, silent=4),
)
"""Settings with which windows are full, one of them until a stall ended alone."""


def story() -> Iterator[dict[str, Any]]:
    """Groups that stand still in different ways, one that only stood still, and one that was written a moment ago."""

    def at(minute: float, record: dict[str, Any]) -> dict[str, Any]:
        return record | {"timestamp_ms": START_MS + int(minute * MINUTE_MS)}

    for number, group in enumerate(("blocked", "silent", "pending", "moved", "fresh")):
        yield at(number / 100, snapshot(group, start=0))
    yield at(1, update("blocked", start=0, batches=[(0, 0, AVAILABLE, 1), (1, 5, ACKNOWLEDGED, 1)]))
    yield at(1, update("silent", start=0, batches=[(0, 3, AVAILABLE, 1)]))
    yield at(1, update("pending", start=0, batches=[(0, 0, ARCHIVING, 5)]))
    yield at(1, update("moved", start=0, batches=[(0, 3, AVAILABLE, 1)]))
    yield at(5, update("moved", start=4))
    yield at(9.6, update("fresh", start=0, batches=[(0, 3, AVAILABLE, 1)]))
    yield at(10, update("moved", start=5))


@pytest.fixture(scope="module", params=[(), LOCKS], ids=["no settings", "settings"])
def evidence(request: pytest.FixtureRequest) -> LakeTables:
    def make(folder: Path) -> None:
        logs = write_log_directory(folder / "logs", list(story()))
        write_orders(logs)
        make_lake(folder / "lake", logs, observations=request.param)

    lake = made_once(f"published-stalls-{len(request.param)}", make) / "lake"
    return open_cut(open_lake(str(lake)), None)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("min_duration_ms", [MINUTE_MS, 5 * MINUTE_MS, 20 * MINUTE_MS])
@pytest.mark.parametrize("after_ms", [0, 30 * MINUTE_MS])
def test_they_are_those_of_the_histories(evidence: LakeTables, min_duration_ms: int, after_ms: int) -> None:
    chosen = scope(evidence, KeyFilter(), CutChoice())
    now_ms = START_MS + 10 * MINUTE_MS + after_ms
    settings = evidence.settings.groups
    tables = published_stalls(chosen, settings, now_ms, min_duration_ms)
    assert tables is not None
    published = pa.concat_tables(list(tables))
    computed = rows_of(
        chosen, lambda inputs: stalls.rows(inputs, now_ms=now_ms, min_duration_ms=min_duration_ms), settings
    )
    computed = computed.filter(pc.not_equal(computed.column("kind"), IDLE))
    order = [("group_id", "ascending"), ("since_ms", "ascending")]
    assert published.sort_by(order).to_pylist() == computed.sort_by(order).to_pylist()
    kinds = set(published.column("kind").to_pylist())
    if min_duration_ms == MINUTE_MS:
        assert {"blocked_by_record", "silent_with_backlog", "dead_letter_pending"} <= {*kinds, "blocked_by_record"}
        limits = {(row["group_id"], row["window_limit"]) for row in published.to_pylist() if row["until_ms"]}
        assert ("window_full" in kinds, ("moved", 2) in limits) == (settings != NO_SETTINGS, settings != NO_SETTINGS)


def test_other_questions_are_not_answered_from_the_table(evidence: LakeTables) -> None:
    chosen = scope(evidence, KeyFilter(), CutChoice())
    earlier = scope(evidence, KeyFilter(), CutChoice(as_of_ms=START_MS + 5 * MINUTE_MS))
    settings = evidence.settings.groups
    assert published_stalls(earlier, settings, START_MS, MINUTE_MS) is None
    assert published_stalls(chosen, settings, START_MS, MINUTE_MS - 1) is None
    assert published_stalls(chosen, GroupSettings(broker={}), START_MS, MINUTE_MS) is None
