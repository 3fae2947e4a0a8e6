"""A scripted member of streams groups: it sends StreamsGroupHeartbeats to a broker and notes what it answers."""

import time
from collections.abc import Mapping, Sequence
from typing import Any

from sharelens.workloads.wire import ask
from tests.broker_parts.broker_messages import plain

HEARTBEAT, DESCRIBE, FIND_COORDINATOR, OFFSET_COMMIT, OFFSET_FETCH = 88, 89, 10, 8, 9
TASK_LISTS = ("active_tasks", "standby_tasks", "warmup_tasks")
UNSET = dict.fromkeys((*TASK_LISTS, "task_offsets", "task_end_offsets", "client_tags"))
NO_TASKS: Mapping[str, Any] = dict.fromkeys(TASK_LISTS, ())
REBALANCE_TIMEOUT_MS = 60_000
COORDINATOR_TIMEOUT_S = 120
LOADING = (14, 15, 16)


def topology(*subtopologies: Mapping[str, Any], epoch: int = 0) -> dict[str, Any]:
    """A topology; subtopologies without an id are numbered."""
    numbered = [{"subtopology_id": str(number)} | dict(each) for number, each in enumerate(subtopologies)]
    return {"epoch": epoch, "subtopologies": numbered}


def internal(name: str, partitions: int = 0, replication_factor: int = -1, **configs: str) -> dict[str, Any]:
    """A repartition or changelog topic of a topology."""
    pairs = [{"key": key.replace("_", "."), "value": value} for key, value in configs.items()]
    return {
        "name": name, "partitions": partitions, "replication_factor": replication_factor, "topic_configs": pairs
    }  # fmt: skip


class Script:
    """The members of a group, each with its epoch and the tasks that it owns; `answers` are comparable."""

    def __init__(self, bootstrap: str, group: str) -> None:
        self._bootstrap, self.group = bootstrap, group
        self._epochs: dict[str, int] = {}
        self._tasks: dict[str, Mapping[str, Any]] = {}
        self.answers: list[tuple[str, dict[str, Any]]] = []
        self._find_coordinator()

    def _find_coordinator(self) -> None:
        """Until the broker coordinates the group: Kafka creates the topic of the groups first."""
        deadline_s = time.monotonic() + COORDINATOR_TIMEOUT_S
        keys = {"key_type": 0, "coordinator_keys": [self.group]}
        while ask(self._bootstrap, FIND_COORDINATOR, 4, keys).coordinators[0].error_code.value or self._is_loading():
            assert time.monotonic() < deadline_s
            time.sleep(0.1)

    def _is_loading(self) -> bool:
        return bool(self.describe()["error_code"].value in LOADING)

    def join(self, member: str, joined: Mapping[str, Any], process: str | None = None, **fields: Any) -> Any:
        """A member joins, or joins again, without tasks."""
        fields = {
            "topology": joined, "process_id": process or f"p-{member}", "rebalance_timeout": REBALANCE_TIMEOUT_MS,
            "client_tags": (), **NO_TASKS, **fields,
        }  # fmt: skip
        self._tasks[member] = NO_TASKS
        return self.send(member, 0, **fields)

    def beat(self, member: str, *, owned: bool = False, **fields: Any) -> Any:
        """A heartbeat in the member's epoch, with the tasks that it owns if it says so."""
        return self.send(member, self._epochs[member], **(self._tasks[member] if owned else {}), **fields)

    def settle(self, *members: str, rounds: int = 4) -> None:
        """All members report what they own until nothing moves."""
        for _ in range(rounds):
            for member in members:
                self.beat(member, owned=True)

    def send(self, member: str, epoch: int, **fields: Any) -> Any:
        """Any heartbeat; the member owns the tasks of an answer at once."""
        body = UNSET | {"group_id": self.group, "member_id": member, "member_epoch": epoch} | fields
        answer = plain(ask(self._bootstrap, HEARTBEAT, 0, body))
        if answer["error_code"].value == 0:
            self._epochs[member] = answer["member_epoch"]
            if answer["active_tasks"] is not None:
                self._tasks[member] = {name: answer[name] for name in TASK_LISTS}
        self.answers.append((f"{member} {epoch}", _comparable(answer)))
        return answer

    def owned(self, member: str) -> list[tuple[str, int]]:
        """The active tasks of a member."""
        lists = self._tasks[member]["active_tasks"]
        return [(each["subtopology_id"], partition) for each in lists for partition in each["partitions"]]

    def lists(self, member: str) -> Mapping[str, Any]:
        """The tasks of a member, in the form of a request."""
        return self._tasks[member]

    def knows(self, member: str) -> bool:
        """Whether a member has joined and not left."""
        return self._epochs.get(member, -1) > 0

    def epoch(self, member: str) -> int:
        """The epoch that a member knows."""
        return self._epochs[member]

    def other(self, label: str, api: int, version: int, **body: Any) -> None:
        """Any other request about the group, with its whole answer."""
        answer = plain(ask(self._bootstrap, api, version, body))
        answer.pop("throttle_time", None)
        self.answers.append((label, {"error_message": None} | answer))

    def commit(self, label: str, member: str, epoch: int, topic: str, partition: int) -> None:
        """An OffsetCommit of one partition."""
        partitions = [{"partition_index": partition, "committed_offset": 0}]
        body = {"group_id": self.group, "member_id": member, "generation_id_or_member_epoch": epoch}
        topics = [{"name": topic, "partitions": partitions}]
        answer = plain(ask(self._bootstrap, OFFSET_COMMIT, 9, body | {"topics": topics}))
        (committed,) = answer["topics"][0]["partitions"]
        self.answers.append((label, {"error_message": None, "code": committed["error_code"]}))

    def fetch(self, label: str, member: str | None, epoch: int) -> None:
        """An OffsetFetch of all offsets: its error, and their number; which partitions they are of depends on ties."""
        groups = [{"group_id": self.group, "member_id": member, "member_epoch": epoch, "topics": None}]
        (group,) = plain(ask(self._bootstrap, OFFSET_FETCH, 9, {"groups": groups}))["groups"]
        offsets = sum(len(topic["partitions"]) for topic in group["topics"])
        self.answers.append((label, {"error_message": None, "code": group["error_code"], "offsets": offsets}))

    def describe(self) -> dict[str, Any]:
        """StreamsGroupDescribe's entry of the group."""
        (described,) = plain(ask(self._bootstrap, DESCRIBE, 0, {"group_ids": [self.group]}))["groups"]
        return dict(described)


def _comparable(answer: Mapping[str, Any]) -> dict[str, Any]:
    """What brokers must agree on: all but the choice among equally loaded members, so tasks as their number."""
    compared_fields = {name: value for name, value in answer.items() if name not in ("throttle_time", *TASK_LISTS)}
    for endpoint in compared_fields["partitions_by_user_endpoint"] or ():
        endpoint |= {name: _count(endpoint[name]) for name in ("active_partitions", "standby_partitions")}
    return compared_fields | {name: None if answer[name] is None else _count(answer[name]) for name in TASK_LISTS}


def _count(tasks: Sequence[Mapping[str, Any]]) -> int:
    return sum(len(each["partitions"]) for each in tasks)
