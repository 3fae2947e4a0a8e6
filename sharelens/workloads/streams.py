"""The profile `streams`: an application of Kafka Streams scales out and in, is bounced and loses an instance.

Afterwards the group is deleted, and the same application id counts again in another topology.
"""

import struct
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition
from kio.schema.errors import ErrorCode

from sharelens.kafka_formats.messages.api_keys import ApiKey
from sharelens.workloads.admin import Admin, WorkloadError
from sharelens.workloads.application import COUNTING, INPUT, OTHER_COUNTING, OUTPUTS, Instance, Java
from sharelens.workloads.journal import Entry, Journal
from sharelens.workloads.load import Load
from sharelens.workloads.run import (
    IDS_A_LINE,
    LOOK_S,
    WorkloadOptions,
    in_background,
    produce,
    write_beginning,
    write_logs,
)
from sharelens.workloads.wire import ask

SETTLE_S: Final = 60.0
COUNTS_S: Final = 60.0
SHORTEST_MS: Final[Mapping[str, int]] = {"heartbeat.interval.ms": 500, "session.timeout.ms": 3_000}
SETTINGS: Final[Mapping[str, object]] = {
    "group.protocol": "streams",
    "processing.guarantee": "exactly_once_v2",
    "commit.interval.ms": 100,
    "auto.offset.reset": "earliest",
}
_COUNT: Final = struct.Struct(">q")


class StreamsWorkload:
    """A run. Raises WorkloadError, UnreachableError, or KafkaException when the cluster fails."""

    def __init__(self, options: WorkloadOptions, journal: Journal, java: Java) -> None:
        self._options, self._journal, self._java = options, journal, java
        self._admin = Admin(options.bootstrap)
        self._instances: dict[int, Instance] = {}
        self._settle_s = SETTLE_S
        self._produced: set[int] = set()
        self._lost_members: set[str] = set()
        journal.listen(self._note)

    def _note(self, entry: Entry) -> None:
        if entry["event"] == "produce" and entry["outcome"] == "acknowledged":
            self._produced.add(entry["id"])

    def run(self, is_over: Callable[[], bool] = lambda: False) -> None:
        """Set up, count what is produced until `is_over` at most while instances come and go, read the counts."""
        options = self._options
        write_beginning(self._journal, options, topic=INPUT, groups=(), application=options.group)
        self._set_up()
        load = Load(options.bootstrap, options.profile, INPUT, options.seed, self._journal.write)
        with tempfile.TemporaryDirectory(prefix="sharelens-streams-") as folder:
            try:
                with in_background(partial(produce, load, options.amount, is_over)) as produced:
                    self._come_and_go(Path(folder))
                    produced()
                self._write_counts()
                self._change_topology(Path(folder))
            finally:
                for instance in self._instances.values():
                    instance.kill()
        write_logs(self._journal, self._admin, (INPUT,))
        self._journal.write("end")

    def _set_up(self) -> None:
        options, admin = self._options, self._admin
        admin.create_topic(INPUT, options.profile.partitions)
        for output in OUTPUTS.values():
            admin.create_topic(output, 1)
        used = next((name for name in (INPUT, *OUTPUTS.values()) if any(admin.read(name).values())), None)
        if used is not None:
            raise WorkloadError(f"topic {used} has records; the profile streams needs it empty: delete the topic first")
        configs = {"streams.num.standby.replicas": "1"} | _times(admin.broker_configs())
        self._settle_s += 2 * int(configs["streams.session.timeout.ms"]) / 1000
        admin.configure_group(options.group, configs)

    # Instances

    def _come_and_go(self, folder: Path) -> None:
        """Scale out, lose an instance, bounce both, scale in."""
        self._start(1, COUNTING, folder)
        self._await_members(1)
        self._start(2, COUNTING, folder)
        self._await_members(2)
        self._kill(2)
        self._start(2, COUNTING, folder)
        self._await_members(2)
        for number in (1, 2):
            self._close(number)
            self._await_members(1)
            self._start(number, COUNTING, folder)
            self._await_members(2)
        self._close(2)
        self._await_members(1)

    def _change_topology(self, folder: Path) -> None:
        """A group keeps its topology, so the one of the new application needs a new group."""
        self._close(1)
        self._await_members(0)
        group = self._options.group
        (deleted,) = ask(self._options.bootstrap, ApiKey.DELETE_GROUPS, 2, {"groups_names": [group]}).results
        if deleted.error_code is not ErrorCode.none:
            raise WorkloadError(f"{self._options.bootstrap} does not delete {group}: {deleted.error_code.name}")
        self._journal.write("group_deleted", group=group)
        self._start(3, OTHER_COUNTING, folder)
        self._await_members(1)
        self._close(3)

    def _start(self, number: int, main_class: str, folder: Path) -> None:
        settings = {
            **SETTINGS,
            "application.id": self._options.group,
            "bootstrap.servers": self._options.bootstrap,
            "client.id": _client_id(number),
        }
        self._instances[number] = Instance(self._java, main_class, settings, folder / f"instance-{number}")
        self._write("joined", number)

    def _kill(self, number: int) -> None:
        """Kill an instance; its members stay in the group until their session expires."""
        members = () if (described := self._described()) is None else described.members
        name = _client_id(number)
        self._lost_members |= {member.member_id for member in members if member.client_id.startswith(f"{name}-")}
        self._instances.pop(number).kill()
        self._write("killed", number)

    def _close(self, number: int) -> None:
        self._instances.pop(number).close()
        self._write("left", number)

    def _write(self, event: str, number: int) -> None:
        self._journal.write(event, group=self._options.group, member=_client_id(number))

    def _await_members(self, count: int) -> None:
        """Wait until the group has so many members, none of a killed instance, and none has to wait for a task."""
        expected = "Stable" if count else "Empty"
        deadline_s = time.monotonic() + self._settle_s
        while (described := self._described()) is None or not self._is_settled(described, expected, count):
            for instance in self._instances.values():
                instance.check()
            if time.monotonic() > deadline_s:
                state = (
                    "unknown" if described is None else f"{described.group_state} with {len(described.members)} members"
                )
                raise WorkloadError(
                    f"{self._options.bootstrap}: group {self._options.group} is {state} after {self._settle_s:g} s; "
                    f"{expected} with {count} members is needed"
                )
            time.sleep(LOOK_S)
        self._journal.write(
            "settled", group=self._options.group, group_epoch=described.group_epoch, members=_task_counts(described)
        )

    def _is_settled(self, described: Any, state: str, count: int) -> bool:
        members = {member.member_id for member in described.members}
        return described.group_state == state and len(members) == count and not members & self._lost_members

    def _described(self) -> Any:
        body = {"group_ids": [self._options.group]}
        (described,) = ask(self._options.bootstrap, ApiKey.STREAMS_GROUP_DESCRIBE, 0, body).groups
        return described if described.error_code is ErrorCode.none else None

    # Records

    def _write_counts(self) -> None:
        """Write how often the application counted each record."""
        counts = _read_counts(self._options.bootstrap, OUTPUTS[COUNTING], self._produced)
        ids = sorted(counts)
        for begin in range(0, len(ids), IDS_A_LINE):
            part = ids[begin : begin + IDS_A_LINE]
            self._journal.write("counted", group=self._options.group, ids=part, counts=[counts[each] for each in part])
        self._journal.write("counts_read", group=self._options.group)


def _times(broker_configs: Mapping[str, str]) -> dict[str, str]:
    """Group configurations as short as the broker's bounds allow."""
    return {
        f"streams.{name}": str(max(shortest_ms, int(broker_configs.get(f"group.streams.min.{name}", shortest_ms))))
        for name, shortest_ms in SHORTEST_MS.items()
    }


def _client_id(number: int) -> str:
    return f"instance-{number}"


def _task_counts(described: Any) -> dict[str, Sequence[int]]:
    """The number of active and of standby tasks by the client id of a member."""
    return {
        member.client_id: [
            sum(len(each.partitions) for each in tasks)
            for tasks in (member.assignment.active_tasks, member.assignment.standby_tasks)
        ]
        for member in described.members
    }


def _read_counts(bootstrap: str, topic: str, expected: set[int]) -> dict[int, int]:
    """The last committed count of each record id, once each of the expected ones has one, or after a while.

    A record's value has its id as a word that no other record has.
    """
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "not-used",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "log_level": 0,
        }
    )
    counts: dict[int, int] = {}
    deadline_s = time.monotonic() + COUNTS_S
    try:
        consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
        while time.monotonic() < deadline_s and not expected <= counts.keys():
            message = consumer.poll(1.0)
            if message is not None and message.error() is None:
                counts.update(_count_of(message.key(), message.value()))
    finally:
        consumer.close()
    return counts


def _count_of(word: bytes | str | None, count: bytes | str | None) -> dict[int, int]:
    """The count of a record id; empty for the other words of records."""
    if isinstance(word, bytes) and word.isdigit() and isinstance(count, bytes) and len(count) == _COUNT.size:
        return {int(word): _COUNT.unpack(count)[0]}
    return {}
