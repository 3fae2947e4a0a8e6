"""Measuring on from what is kept of the records before: the rows of one measurement, wherever the log is cut."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharelens.measures.inputs import Inputs
from sharelens.measures.ranges.places import Places
from sharelens.measures.schemas import PROGRESS, STALL
from sharelens.measures.settings.over_time import (
    DELIVERY_COUNT_LIMIT,
    ISOLATION_LEVEL,
    GroupSettings,
    Setting,
)
from sharelens.measures.stalls import intervals as stalls
from sharelens.measures.stalls import progress
from sharelens.measures.topics.headers import news_from
from state_model.columnar.codes import ABOVE_ALL
from state_model.columnar.keys import PLACE_KEY
from state_model.columnar.replay import open_ranges, replay_records
from state_model.uuids import ZERO_UUID
from tests.logs.replay_logs import KEYS, LATER_LOGS, parsed, table
from tests.logs.topic_headers import headers

OF_A_FILE = "dynamic_group_config"
SETTINGS = GroupSettings(
    groups={"g": {DELIVERY_COUNT_LIMIT: Setting(value="2", origin=OF_A_FILE)}},
    before=GroupSettings(groups={"g": {ISOLATION_LEVEL: Setting(value="read_committed", origin=OF_A_FILE)}}),
    from_ms=50,
)
LINES = """
    0-1 at 1
    3-5 at 2 producer 7
    6-6 at 3 producer 7 ABORT
    7-9 at 4 producer 8
    10-10 at 5 producer 8 COMMIT
    13-13 at 6 OTHER
    14-19 at 70 append
    22-30 at 80
"""
BATCHES = pa.concat_tables([headers(LINES, topic_id=ZERO_UUID, partition=key.partition) for key in KEYS])
ALL = tuple(range(BATCHES.num_rows))
LAST_STEP = 4


class Evidence(Inputs):
    """A log, and some of the batches; with `earlier` only the rows from a log offset of each share partition on."""

    settings = SETTINGS

    def __init__(self, log, batches, earlier=None, read_from=()):
        done = replay_records(table(log))
        self._history, self._deliveries = done.history, pa.concat_tables([done.closed, open_ranges(done.state)])
        self._batches, self._earlier = batches, earlier
        if earlier is not None and earlier.num_rows:
            at = Places(keys=earlier.select(PLACE_KEY)).of
            least = np.append(read_from, -1)
            is_kept = self._history.column("log_offset").to_numpy() >= least[at(self._history)]
            self._history = self._history.filter(pa.array(is_kept))
            ends = pc.fill_null(self._deliveries.column("valid_to_log_offset"), ABOVE_ALL).to_numpy()
            self._deliveries = self._deliveries.filter(pa.array(ends > least[at(self._deliveries)]))

    def history(self):
        return self._history

    def deliveries(self):
        return self._deliveries

    def earlier(self):
        return self._earlier

    def headers(self, begins):
        yield self._batches


def measured_on(before, log, batches, is_new):
    """PROGRESS and lasting STALL rows after a step: those of the step before, and what is measured on."""
    places, rows = before
    lowest = []
    for place in places.to_pylist():
        in_partition = pc.equal(batches.column("partition"), place["partition"])
        news = news_from(batches.filter(in_partition), is_new[in_partition.to_numpy()])
        lowest.append(ABOVE_ALL if news is None else news)
    lowest = np.array(lowest, np.int64)
    resumes = progress.goes_on(places, lowest)
    earlier = places.filter(pa.array(resumes))
    evidence = Evidence(log, batches, earlier, progress.reads_from(earlier, lowest[resumes]))
    since = pc.coalesce(earlier.column("since_log_offset"), pc.add(earlier.column("log_offset"), 1)).to_numpy()
    at = Places(keys=earlier.select(PLACE_KEY)).of(rows) if earlier.num_rows else np.full(rows.num_rows, -1)
    stays = rows.filter(pa.array(rows.column("log_offset").to_numpy() < np.append(since, -1)[at]))
    return progress.rows(evidence), pa.concat_tables([stays, stalls.lasting_rows(evidence)])


def at_once(log, batches):
    evidence = Evidence(log, batches)
    return progress.rows(evidence), stalls.lasting_rows(evidence)


def lines(rows):
    """The rows of both tables, in one order."""
    return [sorted(map(repr, table_rows.to_pylist())) for table_rows in rows]


@pytest.mark.slow
@given(
    LATER_LOGS,
    st.lists(st.integers(0, 12), max_size=LAST_STEP),
    st.lists(st.integers(0, LAST_STEP), min_size=len(ALL), max_size=len(ALL)) | st.just([0] * len(ALL)),
)
def test_any_steps_over_a_log_and_its_batches_measure_what_is_measured_at_once(log, cuts, arrives):
    """`arrives`: the step before which each batch comes."""
    cuts = [*sorted(min(cut, len(log)) for cut in cuts), len(log)]
    arrives = np.minimum(arrives, len(cuts) - 1)
    result = PROGRESS.empty_table(), STALL.empty_table()
    for step, cut in enumerate(cuts):
        there = arrives <= step
        batches = BATCHES.filter(pa.array(there))
        result = measured_on(result, log[:cut], batches, arrives[there] == step)
    assert lines(result) == lines(at_once(log, BATCHES))


def test_a_share_partition_that_goes_on_with_one_record_keeps_the_interval_that_began_before_it():
    log = parsed("""
        0 snapshot start=0
        1 snapshot start=0
        1 update start=0 5-9 acknowledged 1
    """)
    places = progress.rows(Evidence(log[:2], BATCHES))
    earlier = places.filter(pc.equal(places.column("log_offset"), 1))
    assert earlier.column("since_log_offset").to_pylist() == [1]
    evidence = Evidence(log, BATCHES, earlier, read_from=[2])
    assert progress.rows(evidence).equals(progress.rows(Evidence(log, BATCHES)))


def test_a_start_offset_that_goes_away_within_a_life_is_measured_whole_by_the_next_run():
    log = parsed("""
        0 update start=0
        0 tombstone
        0 update start=0
        0 snapshot start=-1 epoch=0
    """)
    before = progress.rows(Evidence(log[:3], BATCHES))
    assert before.column("read_from_log_offset").to_pylist() == [2]
    for evidence in (Evidence(log, BATCHES), Evidence(log, BATCHES, before, read_from=[2])):
        rows = progress.rows(evidence)
        assert rows.column("read_from_log_offset").to_pylist() == [None]
        assert progress.goes_on(rows, np.array([ABOVE_ALL])).tolist() == [False]


STANDS = parsed("""
    0 snapshot start=0
    0 update start=0 0-4 available 1, 5-9 acknowledged 1
    0 update start=0 0 available 2
    0 update start=0 10-19 acknowledged 1
    0 snapshot snapshot=2 start=0 0 available 2, 1-4 available 1, 5-19 acknowledged 1
""")


def resumed(log, batches=BATCHES, lowest=ABOVE_ALL):
    """The log offset from which on the share partition needs its records after this log."""
    places, _ = at_once(log, batches)
    return progress.reads_from(places, np.full(places.num_rows, lowest)).tolist()


@pytest.mark.slow
def test_an_offset_that_stands_is_measured_on_from_the_last_record():
    assert [resumed(STANDS[:end]) for end in range(1, 6)] == [[0], [1], [2], [3], [4]]
    (row,) = at_once(STANDS, BATCHES)[0].to_pylist()
    column_names = ("first_incomplete_offset", "since_ms", "shown_ms", "earlier_write_ms", "last_write_ms")
    assert [row[name] for name in column_names] == [0, 0, 10, None, 40]


def test_batches_that_reach_it_need_the_records_since_it_stands():
    assert resumed(STANDS, lowest=1) == [4]
    assert resumed(STANDS, lowest=0) == [0]


def test_a_share_partition_without_a_start_offset_needs_the_last_record_of_the_life_before():
    log = [*STANDS, *parsed("0 tombstone"), *parsed("0 snapshot start=-1")]
    assert [resumed(log[:end]) for end in (6, 7)] == [[4], [4]]
