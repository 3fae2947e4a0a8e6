"""Answers beside what the coordinators say: equal, different, changed meanwhile, and what can't be compared."""

from collections.abc import Iterable, Mapping
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from sharelens.kafka_live.cluster import Place
from sharelens.kafka_live.errors import ClusterError
from sharelens.kafka_live.group_now import GroupNow, MemberNow, OffsetNow, SharePartition
from sharelens.live import check as live_check
from sharelens.live.check import MOST_GROUPS, LiveCheck
from sharelens.live.checked import UNCHECKED
from state_model.group_schemas import GroupKind
from state_model.topics import OFFSETS_TOPIC, STATE_TOPIC

TOPIC_ID = "AAAAAAAAAAAAAAAAAAAABw"
LOGS = {Place(STATE_TOPIC, 0): 10, Place(OFFSETS_TOPIC, 0): 20}
USER = Place("orders", 0)
KEY = SharePartition("g", TOPIC_ID, 0)
GROUP = GroupNow("Stable", 3, 3, {"m": MemberNow(3, frozenset({(TOPIC_ID, 0)}))})


class Cluster:
    """A cluster whose logs end where `ends` says now."""

    bootstrap_server, connection = "h:9092", None

    def __init__(self, ends: Mapping[Place, int]) -> None:
        self._ends = ends

    def offsets(self, places: Iterable[Place], _timestamp: int) -> Mapping[Place, int]:
        return {place: self._ends[place] for place in places}


@pytest.fixture
def check(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Makes a check of a cluster that gives `answers`, one after the other; the last one stays."""
    monkeypatch.setattr(live_check, "PAUSE_S", 0)

    def make(*answers: Any, ends: Mapping[Place, int] = LOGS, logs: Mapping[Place, int] = LOGS) -> LiveCheck:
        cluster_check = LiveCheck(Cluster(ends), logs)
        remaining_answers = list(answers)

        def answer(_groups: Iterable[str]) -> Any:
            value = remaining_answers.pop(0) if len(remaining_answers) > 1 else remaining_answers[0]
            if isinstance(value, Exception):
                raise value
            return value

        cluster_check._coordinators = SimpleNamespace(
            nodes=lambda groups: dict.fromkeys(groups, 4),
            offsets=answer,
            **dict.fromkeys(("consumer_groups", "share_groups", "streams_groups"), answer),
        )
        return cluster_check

    return make


def rows(**changed: Any) -> pa.Table:
    row = {"group_id": "g", "topic_id": TOPIC_ID, "partition": 0, "start_offset": 5, "completeness": "complete"}
    return pa.Table.from_pylist([row | changed])


def lags(lag: int) -> pa.Table:
    return rows(topic="orders", lag=lag, end_offset=9)


def test_equal_offsets_are_a_line_that_names_the_node(check):
    checked = check({KEY: OffsetNow(5, 4)}).of_share_partitions(rows())
    assert checked == ("compared with the coordinator on node 4: 1 of 1 share partition the same", ())


@pytest.mark.parametrize(
    ("table", "now"), [(rows(), OffsetNow(7, None)), (lags(4), OffsetNow(5, 3)), (lags(4), OffsetNow(7, 4))]
)
def test_another_start_offset_or_lag_is_a_warning_with_both(check, table, now):
    checked = check({KEY: now}, ends=LOGS | {USER: 9}).of_share_partitions(table)
    assert "0 of 1 share partition the same" in checked.line
    (warning,) = checked.warnings
    assert f"g {TOPIC_ID}-0 has start offset 5" in warning
    assert f"start offset {now.start_offset}" in warning


@pytest.mark.parametrize("ends", [{Place(STATE_TOPIC, 0): 11}, {USER: 10}])
def test_a_difference_counts_only_while_the_logs_stand_still(check, ends):
    checked = check({KEY: OffsetNow(5, 3)}, ends=LOGS | {USER: 9} | ends).of_share_partitions(lags(4))
    assert checked.warnings == ()
    assert checked.line.endswith("1 changed meanwhile")


def test_a_coordinator_that_is_a_moment_behind_its_log_is_asked_again(check):
    checked = check({KEY: OffsetNow(4, None)}, {KEY: OffsetNow(5, None)}).of_share_partitions(rows())
    assert checked.warnings == ()
    assert "1 of 1" in checked.line


def test_a_lag_that_only_one_of_both_knows_is_not_compared(check):
    assert check({KEY: OffsetNow(5, None)}).of_share_partitions(lags(4)).warnings == ()
    assert check({KEY: OffsetNow(5, 4)}).of_share_partitions(rows()).warnings == ()


def test_what_is_not_answered_or_can_not_be_asked_is_said(check):
    assert check({}).of_share_partitions(rows()).line.endswith("0 of 1 share partition the same, 1 not answered")
    assert "not compared with the coordinators: away" in check(ClusterError("away")).of_share_partitions(rows()).line
    many = pa.concat_tables([rows(group_id=f"g{number}") for number in range(MOST_GROUPS + 1)])
    assert "give --group" in check({}).of_share_partitions(many).line


def test_groups_that_one_may_not_describe_are_a_line_with_the_right(check):
    cluster_check = check({})
    cluster_check._coordinators.nodes = lambda _groups: {}
    assert "add DESCRIBE on groups" in cluster_check.of_share_partitions(rows()).line


def test_incomplete_rows_and_clusters_without_coordinators_are_not_compared(check):
    assert check({}).of_share_partitions(rows(completeness="incomplete")) == UNCHECKED
    assert check({}).of_share_partitions(rows(start_offset=-1)) == UNCHECKED
    assert check({}, logs={Place(STATE_TOPIC, 0): 10}).of_share_partitions(rows()) == UNCHECKED


def test_a_group_is_compared_by_state_epochs_and_members(check):
    assert "1 of 1 group the same" in check({"g": GROUP}).of_group("g", GROUP).line
    other = GROUP._replace(group_epoch=4, members={"n": MemberNow(4, frozenset())})
    (warning,) = check({"g": other}).of_group("g", GROUP, GroupKind.STREAMS).warnings
    assert "g has group_epoch 3 by the log, 4 by the coordinator" in warning
    assert "member m has epoch 3 and 1 assigned by the log, is none by the coordinator" in warning
    assert "member n is none by the log" in warning
