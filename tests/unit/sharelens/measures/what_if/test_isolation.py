"""Another isolation level, over small histories and the headers of their user topic."""

import pyarrow as pa
import pytest

from sharelens.kafka_log.schemas import TOPIC_BATCH
from sharelens.measures.settings.over_time import GroupSettings, Setting
from sharelens.measures.topics.extents import BATCH_COLUMNS
from sharelens.measures.what_if import isolation
from tests.logs.replay_logs import KEYS
from tests.unit.sharelens.measures.what_if.test_lock_duration import ACKNOWLEDGED, Written, created, outcome

READ_COMMITTED, READ_UNCOMMITTED = "read_committed", "read_uncommitted"
LEVEL = "share.isolation.level"


def header(first, last, producer=-1, control=None):
    """A row of BATCH_COLUMNS."""
    return {
        "topic_id": KEYS[0].topic_id,
        "partition": KEYS[0].partition,
        "base_offset": first,
        "last_offset": last,
        "max_timestamp_ms": 0,
        "timestamp_type": "CreateTime",
        "producer_id": producer,
        "transactional": producer >= 0,
        "control_type": control,
    }


ABORTED = [header(0, 4), header(5, 9, producer=7), header(10, 10, producer=7, control="ABORT"), header(11, 14)]
"""Offsets 5 to 9 are of an aborted transaction."""
OPEN = [header(0, 4), header(5, 9, producer=7), header(10, 14)]
"""The transaction of offsets 5 to 9 has no marker."""
ALL = [(0, created()), (9_000, outcome(0, 14, ACKNOWLEDGED, 1))]
WITHOUT_ABORTED = [(0, created()), (9_000, outcome(0, 4, ACKNOWLEDGED, 1)), (9_500, outcome(10, 14, ACKNOWLEDGED, 1))]


class WithHeaders(Written):
    """Histories beside the headers of their user partition; `level`: the one in force, None: unknown."""

    def __init__(self, log, headers, level=None):
        super().__init__(log)
        if level is not None:
            self.settings = GroupSettings(groups={KEYS[0].group_id: {LEVEL: Setting(value=level)}})
        self._headers = headers

    def headers(self, begins):
        if self._headers:
            schema = pa.schema([TOPIC_BATCH.field(name) for name in BATCH_COLUMNS])
            yield pa.Table.from_pylist(self._headers, schema=schema)


def figures(log, headers, level, in_force=None):
    rows = isolation.rows(WithHeaders(log, headers, in_force), level).to_pylist()
    return {row["figure"]: (row["in_history"], row["at_least"], row["at_most"], row["certainty"]) for row in rows}


@pytest.mark.parametrize("in_force", [READ_UNCOMMITTED, None])
def test_records_of_aborted_transactions_would_not_have_been_delivered(in_force):
    answer = figures(ALL, ABORTED, READ_COMMITTED, in_force)
    assert answer["aborted_offsets"] == (5, 5, 5, "exact")
    assert answer["not_delivered_offsets"] == (0, 5, 5, "exact")
    assert answer["acknowledged_offsets"] == (15, 10, 10, "exact")
    assert answer["deliveries"] == (15, 10, 10, "exact")


def test_nothing_behind_the_last_stable_offset_would_have_been_delivered():
    assert figures(ALL, OPEN, READ_COMMITTED)["acknowledged_offsets"] == (15, 5, 5, "exact")
    listed = isolation.ranges(WithHeaders(ALL, OPEN), READ_COMMITTED).to_pylist()
    assert [(row["first_offset"], row["last_offset"], row["change"]) for row in listed] == [
        (5, 14, "not_delivered_open")
    ]


def test_offsets_without_headers_are_a_bound():
    answer = figures(ALL, ABORTED[:3], READ_COMMITTED)
    assert answer["acknowledged_offsets"] == (15, 6, 10, "bound")
    assert answer["not_delivered_offsets"] == (0, 5, 9, "bound")


def test_aborted_records_would_have_been_delivered_at_least_once():
    answer = figures(WITHOUT_ABORTED, ABORTED, READ_UNCOMMITTED, READ_COMMITTED)
    assert answer["newly_delivered_offsets"] == (0, 5, 5, "exact")
    assert answer["acknowledged_offsets"] == (10, 10, 15, "bound")
    assert answer["deliveries"] == (10, 15, 10 + 5 * 25, "bound")
    assert figures(WITHOUT_ABORTED, ABORTED, READ_UNCOMMITTED)["deliveries"][3] == "inferred"
    (row,) = isolation.ranges(WithHeaders(WITHOUT_ABORTED, ABORTED), READ_UNCOMMITTED).to_pylist()
    assert (row["first_offset"], row["last_offset"], row["outcome"], row["delivery_count"]) == (5, 9, "none", 0)


@pytest.mark.parametrize(
    ("log", "level"), [(ALL, READ_UNCOMMITTED), (WITHOUT_ABORTED, READ_COMMITTED)], ids=["uncommitted", "committed"]
)
@pytest.mark.parametrize("knows_level", [True, False])
def test_the_level_in_force_leaves_the_history(log, level, knows_level):
    answer = figures(log, ABORTED, level, level if knows_level else None)
    assert all(in_history == at_least == at_most for in_history, at_least, at_most, _ in answer.values())


def test_without_any_header_there_is_no_figure():
    assert figures(ALL, [], READ_COMMITTED) == {}
