"""What the metadata log says of topics of coordinators, and of settings of topics."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pytest

from sharelens.evidence.metadata_events import MetadataHistory
from sharelens.questions.findings.metadata_signs import topic_settings, unwritable
from sharelens.tables.where import Where
from state_model.metadata.changes import CONFIG, PARTITION, TOPIC
from state_model.metadata.history import Moment, Validity


def validity(key: tuple[Any, ...], content: dict[str, Any], begin_ms: int, end_ms: int | None = None) -> Validity:
    end = None if end_ms is None else Moment(end_ms, end_ms)
    return Validity(key=key, content=content, begin=Moment(begin_ms, begin_ms), end=end)


def partition(leader: int, isr: tuple[int, ...], begin_ms: int, end_ms: int | None = None) -> Validity:
    content = {
        "leader": leader, "isr": isr, "replicas": (1, 2, 3), "leader_epoch": 1, "partition_epoch": 1,
        "leader_recovery_state": 0,
    }  # fmt: skip
    return validity((PARTITION, "S", 7), content, begin_ms, end_ms)


STATE_TOPIC = validity((TOPIC, "S"), {"name": "__share_group_state"}, 0)


def least(number: int) -> Validity:
    return validity(
        (CONFIG, "topic", "__share_group_state", "min.insync.replicas"), {"value": str(number), "hidden": None}, 0
    )


@dataclass
class Metadata:
    history: MetadataHistory | None


@dataclass
class Evidence:
    """The metadata log of log directories, or tables that a run stored of it."""

    metadata: Metadata
    tables: dict[str, pa.Table] = field(default_factory=dict)

    def stored(self, table: str) -> bool:
        return table in self.tables

    def scan(self, table: str, columns: list[str], where: Where, order: object = None) -> Iterator[pa.Table]:
        rows = self.tables[table]
        yield rows.filter(where.columns).select(columns)


def evidence(*values: Validity) -> Any:
    history = MetadataHistory(
        validities=values, first_ms=None, has_beginning=True, end_offset=9, committed_end=9, problems=()
    )
    return Evidence(Metadata(history))


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ([partition(-1, (2,), 50)], "it has no leader"),
        ([partition(1, (1,), 50), least(2)], "1 in-sync replicas, and min.insync.replicas is 2"),
        ([partition(1, (1, 2), 50), least(2)], None),
        ([partition(1, (1,), 50)], None),
        ([partition(-1, (), 20, 50), partition(1, (1,), 50)], None),
    ],
)
def test_a_partition_needs_a_leader_and_enough_replicas(values: list[Validity], why: str | None) -> None:
    partitions = unwritable(evidence(STATE_TOPIC, *values), None)
    assert partitions is not None
    assert [(each.topic, each.partition, each.why, each.since_ms) for each in partitions] == (
        [] if why is None else [("__share_group_state", 7, why, 50)]
    )


def test_an_earlier_moment_has_its_own_leader() -> None:
    of_then = unwritable(evidence(STATE_TOPIC, partition(-1, (), 20, 50), partition(1, (1,), 50)), 30)
    assert of_then is not None
    assert [each.since_ms for each in of_then] == [20]


def test_without_a_metadata_log_nothing_is_known() -> None:
    nowhere: Any = Evidence(Metadata(None))
    assert unwritable(nowhere, None) is None
    assert topic_settings(nowhere, "retention.ms", None) == {}


def test_settings_of_topics_are_numbers_in_force() -> None:
    key = (CONFIG, "topic", "orders", "retention.ms")
    before = validity(key, {"value": "1000", "hidden": None}, 0, 50)
    now = validity(key, {"value": "2000", "hidden": None}, 50)
    secret = validity((CONFIG, "topic", "other", "retention.ms"), {"value": None, "hidden": {"length": 3}}, 0)
    read = evidence(before, now, secret)
    assert topic_settings(read, "retention.ms", None) == {"orders": 2000}
    assert topic_settings(read, "retention.ms", 10) == {"orders": 1000}
