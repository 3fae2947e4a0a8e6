"""A small cluster whose logs all agree, for damages between logs: ten minutes of four groups on one user topic.

Times are seconds from its beginning. Nothing here knows a rule.
"""

import os
import tempfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from sharelens.parameters.filters import KeyFilter
from sharelens.questions.audits.audit import AuditChoice, audit
from sharelens.settings.files import NO_SETTINGS_FILES
from sharelens.settings.folder import with_single_files
from sharelens.source.request import Source
from sharelens.tables.logs.tables import open_log_tables
from sharelens.tables.where import Span
from tests.logs.cluster_logs import GROUPS, metadata
from tests.logs.group_files import OFFSETS_TOPIC_ID, GroupEntry, epoch, lists
from tests.logs.metadata_logs import write_metadata
from tests.logs.state_logs import (
    ORDERS_ID,
    START_MS,
    STATE_TOPIC,
    STATE_TOPIC_ID,
    encoded_records,
    snapshot,
    tombstone,
    update,
)
from tools.log_writer.writer import encode_log, record_columns, write_checkpoints, write_partition

END_S = 600
"""The last record of each log is of this time; the topic and the metadata log go on for a minute."""
CONFIG = "share.coordinator.cold.partition.snapshot.interval.ms=300000\n"
Row = dict[str, Any]


def ms(seconds: float) -> int:
    """The time in milliseconds."""
    return START_MS + round(1000 * seconds)


def created(group: str, number: int = 0, *, at_s: float = 0, **fields: Any) -> Row:
    """The snapshot of a creation."""
    times = {name: ms(at_s) for name in ("at_ms", "create_timestamp_ms", "write_timestamp_ms")}
    return snapshot(group, number, **{"state_epoch": 2, **times, **fields})


def written(group: str, *, at_s: float = END_S, **fields: Any) -> Row:
    """An update."""
    return update(group, **{"start": 2, "delivery_complete_count": 0, "at_ms": ms(at_s), **fields})


def deleted(group: str, *, at_s: float, number: int = 0) -> Row:
    """A tombstone."""
    return tombstone(group, number, at_ms=ms(at_s))


def of_group(
    group: str, record_type: int, value: Mapping[str, Any] | None, *, at_s: float = 0, member: str | None = None
) -> GroupEntry:
    """A record of the group coordinator."""
    return GroupEntry(ms(at_s), record_type, value, group, member)


class World:
    """The logs of the cluster. Each method changes one and returns the world."""

    def __init__(self) -> None:
        creations = [created(group) for group in GROUPS]
        self.state: dict[int, list[Row]] = {0: [*creations, *(written(group) for group in GROUPS)]}
        lives = [(of_group(group, 11, epoch(2)), of_group(group, 15, lists([0]))) for group in GROUPS]
        self.groups: dict[int, list[GroupEntry]] = {
            0: [*(entry for life in lives for entry in life), of_group("late", 11, epoch(1), at_s=END_S)]
        }
        self.metadata: list[tuple[int, bytes]] | None = metadata()
        self.topic = {"count": 10, "last_s": END_S + 60, "leader_epoch": 0, "records_per_batch": 1, "log_start": 0}
        self.config = CONFIG
        self.config_s: float = 0
        self.state_ids: dict[int, str] = {}
        self.damaged: dict[int, Callable[[bytes, bytes | None], tuple[bytes, bytes | None]]] = {}

    def with_state(self, *records: Row, number: int = 0) -> "World":
        """Records of the share coordinator before its writes at the end."""
        old = self.state.get(number, [])
        begin = next((row for row, record in enumerate(old) if record["record_type"] == "update"), len(old))
        self.state[number] = [*old[:begin], *records, *old[begin:]]
        return self

    def ending(self, *records: Row) -> "World":
        """Records of the share coordinator behind all others."""
        self.state[0] += records
        return self

    def without_state(self, group: str) -> "World":
        """No record of a group in the state log."""
        self.state[0] = [record for record in self.state[0] if record["group_id"] != group]
        return self

    def with_groups(self, *entries: GroupEntry) -> "World":
        """Records of the group coordinator, before its last one."""
        self.groups[0] = [*self.groups[0][:-1], *entries, self.groups[0][-1]]
        return self

    def without_group(self, group: str, *record_types: int) -> "World":
        """Some records of a group gone (no type: all)."""
        types = record_types or range(20)
        self.groups[0] = [
            entry for entry in self.groups[0] if entry.group_id != group or entry.record_type not in types
        ]
        return self

    def of_groups(self, entries: Iterable[GroupEntry]) -> "World":
        """Another log of the group coordinator."""
        self.groups[0] = [*entries, self.groups[0][-1]]
        return self

    def group_bytes(self, row: int, change: Callable[[bytes, bytes | None], tuple[bytes, bytes | None]]) -> "World":
        """Other bytes of a record of the group coordinator."""
        self.damaged[row] = change
        return self

    def with_topic(self, **changes: int) -> "World":
        """Another end or log start offset of the user topic."""
        self.topic |= changes
        return self

    def with_metadata(self, *values: bytes, at_s: float = 0) -> "World":
        """More records of the metadata log, before its last one."""
        assert self.metadata is not None
        self.metadata = [*self.metadata[:-1], *((ms(at_s), value) for value in values), self.metadata[-1]]
        return self

    def of_metadata(self, records: list[tuple[int, bytes]] | None) -> "World":
        """Another metadata log, or none."""
        self.metadata = records
        return self

    def configured(self, text: str, at_s: float = 0) -> "World":
        """A configuration of the brokers, whose file was written then."""
        self.config, self.config_s = text, at_s
        return self

    def write(self, folder: Path) -> Path:
        """Writes log directory and configuration; returns the log directory."""
        logs = folder / "logs"
        for number, records in self.state.items():
            keys, values, stamps = zip(*encoded_records(records), strict=True)
            log = encode_log(record_columns(keys, values, stamps), records_per_batch=1)
            write_partition(logs, STATE_TOPIC, number, log, topic_id=self.state_ids.get(number, STATE_TOPIC_ID))
        for number, entries in self.groups.items():
            pairs = [self.damaged.get(row, _same)(*entry.encoded()) for row, entry in enumerate(entries)]
            keys, values = zip(*pairs, strict=True)
            columns = record_columns(keys, values, [entry.time_ms for entry in entries])
            log = encode_log(columns, records_per_batch=1)
            write_partition(logs, "__consumer_offsets", number, log, topic_id=OFFSETS_TOPIC_ID)
        count = int(self.topic["count"])
        stamps = [START_MS] * (count - 1) + [ms(self.topic["last_s"])]
        log = encode_log(
            record_columns([None] * count, [b"v"] * count, stamps),
            records_per_batch=int(self.topic["records_per_batch"]), leader_epoch=int(self.topic["leader_epoch"]),
        )  # fmt: skip
        write_partition(logs, "orders", 0, log, topic_id=ORDERS_ID)
        write_checkpoints(logs, log_starts={("orders", 0): int(self.topic["log_start"])})
        if self.metadata is not None:
            write_metadata(logs, self.metadata)
        config = folder / "server.properties"
        config.write_text(self.config, encoding="utf-8")
        os.utime(config, (ms(self.config_s) / 1000,) * 2)
        return logs


def _same(key: bytes, value: bytes | None) -> tuple[bytes, bytes | None]:
    return key, value


def audited(world: World) -> list[dict[str, Any]]:
    """The findings of severity error and warning."""
    with tempfile.TemporaryDirectory(prefix="sharelens-world-") as folder:
        logs = world.write(Path(folder))
        files = with_single_files(NO_SETTINGS_FILES, None, str(Path(folder) / "server.properties"))
        with open_log_tables(Source(log_dirs=(str(logs),), settings_files=files)) as evidence:
            report = audit(evidence, KeyFilter(), Span(), AuditChoice(version="4.4"))
            rows: list[dict[str, Any]] = report.parts["findings"].table.to_pylist()
    return rows
