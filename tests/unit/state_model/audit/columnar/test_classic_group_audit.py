"""Rules on classic groups: each is found at its record, and what is near is silent."""

import struct
from typing import Any

import pyarrow as pa
import pytest

from sharelens.evidence.reading import read_whole
from sharelens.kafka_log.layout import scan_log_directory
from sharelens.kafka_log.union import unite
from state_model.audit.classic.group import LAST_VERSION, LAYOUTS, read_group
from state_model.audit.classic.rules import RULES
from state_model.audit.columnar.classic_group_audit import ClassicGroupAudit
from state_model.audit.columnar.proofs import Proofs
from state_model.consumer_protocol import write_assignment
from state_model.topics import OFFSETS_TOPIC
from tests.datasets import CONSUMER_SETS, dataset

SEVERITIES = {rule.id: str(rule.severity) for rule in RULES}
FALLS, LEADER, OWNERS = (rule.code for rule in RULES)


def value(
    generation: int, leader: str | None, version: int = 3, protocol_type: str = "consumer", **partitions: Any
) -> bytes:
    """A group whose members have partitions of `orders`; other values are their assignments."""
    members = tuple(
        {
            "member_id": member_id,
            "group_instance_id": None,
            "client_id": "c",
            "client_host": "/h",
            "rebalance_timeout": 1,
            "session_timeout": 1,
            "subscription": b"",
            "assignment": of if isinstance(of, bytes) else write_assignment(3, [("orders", number) for number in of]),
        }
        for member_id, of in partitions.items()
    )
    fields = {
        "protocol_type": protocol_type,
        "generation": generation,
        "protocol": None,
        "leader": leader,
        "current_state_timestamp": -1,
        "members": members,
    }
    return struct.pack(">h", version) + LAYOUTS[version].write(fields)


def audited(*values: bytes | None, group_id: str = "g") -> list[tuple[str, int]]:
    """Rule and offset of what is found in the records of a group."""
    key = struct.pack(">hh", 2, len(group_id)) + group_id.encode()
    commit = struct.pack(">hh", 1, 1) + b"g" + struct.pack(">h", 1) + b"t" + struct.pack(">i", 0)
    keys = [*[key] * len(values), commit, None]
    rows = pa.table(
        {
            "partition": pa.array([0] * len(keys), pa.int32()),
            "offset": pa.array(range(len(keys)), pa.int64()),
            "timestamp_ms": pa.array(range(len(keys)), pa.int64()),
            "key": pa.array(keys, pa.binary()),
            "value": pa.array([*values, b"", b""], pa.binary()),
        }
    )
    proofs = Proofs()
    audit = ClassicGroupAudit(proofs)
    for row in range(rows.num_rows):
        audit.take(rows.slice(row, 1))
    return [(row["rule"], row["first_log_offset"]) for row in proofs.findings(SEVERITIES).to_pylist()]


@pytest.mark.parametrize(
    ("values", "rules"),
    [
        ([value(2, "a", a=[0]), value(1, "a", a=[0])], [(FALLS, 1)]),
        ([value(7, "a", a=[0]), value(7, "a", a=[0]), value(0, None)], [(FALLS, 2)]),
        ([value(2, "a", a=[0]), value(3, "a", a=[1]), value(2, "a", 0, a=[1])], [(FALLS, 2)]),
        ([value(1, "b", a=[0])], [(LEADER, 0)]),
        ([value(1, None, a=[0])], [(LEADER, 0)]),
        ([value(1, "a", a=[0]), value(2, "a")], [(LEADER, 1)]),
        ([value(1, "a", a=[0, 1], b=[1, 2])], [(OWNERS, 0)]),
        ([value(1, "a", 1, a=[0], b=[0], c=[0])], [(OWNERS, 0)]),
        ([value(1, "a", a=[0], b=[1]), value(2, "a", 2, a=[0, 1], b=[1])], [(OWNERS, 1)]),
    ],
)
def test_a_rule_is_found_at_its_record(values: list[bytes], rules: list[tuple[str, int]]) -> None:
    assert audited(*values) == rules


@pytest.mark.parametrize(
    "values",
    [
        [value(1, "a", a=[0]), value(1, "a", a=[0]), value(4, "a", a=[0])],
        [value(7, "a", a=[0]), None, value(1, "a", a=[0])],
        [value(7, "a", a=[0]), struct.pack(">h", LAST_VERSION + 1), value(1, "a", a=[0])],
        [value(1, None), value(2, "b", a=[0], b=[1]), value(3, "a", a=[0, 1]), value(4, None)],
        [value(1, "a", protocol_type="connect", a=[0], b=[0])],
        [value(1, "a", a=b"", b=b""), value(2, "a", a=b"\x00", b=b"\x00")],
        [value(1, "a", a=[0])[:-1]],
        [],
    ],
)
def test_what_is_near_is_silent(values: list[bytes | None]) -> None:
    assert audited(*values) == []


@pytest.mark.parametrize("version", range(LAST_VERSION + 1))
def test_all_versions_are_read(version: int) -> None:
    group = read_group(value(5, "a", version, a=[0, 2]))
    assert group is not None
    assert (group.generation, group.leader, group.members) == (5, "a", {"a"})
    assert group.assignments == {"a": {("orders", 0), ("orders", 2)}}


@pytest.mark.slow
def test_recorded_classic_groups_are_legal() -> None:
    proofs, sizes = Proofs(), []
    for scenario in CONSUMER_SETS:
        for partition in unite([scan_log_directory(str(dataset(scenario) / "logs"))]):
            if partition.topic != OFFSETS_TOPIC:
                continue
            audit = ClassicGroupAudit(proofs)
            for chunk in read_whole(partition, include_uncommitted=False):
                rows = pa.Table.from_batches([chunk.records])
                sizes += [key for key in rows.column("key").to_pylist() if key is not None and key[:2] == b"\x00\x02"]
                audit.take(rows)
    assert len(sizes) > 20
    assert proofs.findings(SEVERITIES).num_rows == 0
