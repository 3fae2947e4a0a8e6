"""What a cluster answers about its groups at a moment, between two equal ends of its log."""

import dataclasses
import enum
import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from typing import Any, Final

from py4j.protocol import Py4JJavaError

from sharelens.kafka_formats.messages.api_keys import ApiKey
from sharelens.workloads.wire import ask
from state_model.errors import SharelensError
from state_model.topics import OFFSETS_TOPIC
from state_model.uuids import uuid_text
from tools.record_groups.cluster import Cluster

MOMENT_TRIES: Final = 40
WAIT_S: Final = 60.0
PAUSE_S: Final = 0.05
READ_UNCOMMITTED: Final = 0
LATEST, EARLIEST = -1, -2


class UnstableError(SharelensError):
    """Raised when the log of the groups grows during each try of a moment, or a group does not become what it must."""


def json_of(value: Any) -> Any:
    """A message of kio as JSON with the names of Kafka's schemas; topic ids as text."""
    match value:
        case enum.Enum():
            return value.value
        case uuid.UUID():
            return uuid_text(value.bytes)
        case timedelta():
            return round(value.total_seconds() * 1000)
        case tuple():
            return [json_of(each) for each in value]
    if dataclasses.is_dataclass(value):
        return {_camel(field.name): json_of(getattr(value, field.name)) for field in dataclasses.fields(value)}
    return value


def _camel(name: str) -> str:
    head, *tail = name.split("_")
    return head + "".join(word.capitalize() for word in tail)


class Recorder:
    """The moments and notes of a recording, in order; `groups` are described at each moment."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.groups: set[str] = set()
        self.moments: list[dict[str, Any]] = []
        self.notes: list[tuple[int, str]] = []

    def note(self, text: str) -> None:
        """What happens now, for the journal."""
        self.notes.append((_now_ms(), text))

    def described(self, group: str) -> dict[str, Any]:
        """ConsumerGroupDescribe's entry of a group; an error code where it is not a consumer group."""
        return self._described(ApiKey.CONSUMER_GROUP_DESCRIBE, 1, group, {"group_ids": [group]})

    def _described_classic(self, group: str) -> dict[str, Any]:
        return self._described(ApiKey.DESCRIBE_GROUPS, 6, group, {"groups": [group]})

    def _described(self, api: ApiKey, version: int, group: str, body: dict[str, Any]) -> dict[str, Any]:
        (entry,) = ask(self._cluster.bootstrap, api, version, body | {"include_authorized_operations": False}).groups
        answer: dict[str, Any] = json_of(entry)
        for member in answer["members"]:
            # Bytes of the classic protocol, which no JSON holds as they are.
            for name in ("memberMetadata", "memberAssignment"):
                if name in member:
                    member[name] = member[name].hex()
        return answer

    def wait_until(self, group: str, is_reached: Callable[[dict[str, Any]], bool]) -> None:
        """Wait until a group's entry is as the caller wants it. Raises UnstableError after a minute."""
        self.groups.add(group)
        deadline_s = time.monotonic() + WAIT_S
        while not is_reached(entry := self.described(group)):
            if time.monotonic() > deadline_s:
                raise UnstableError(f"{group} is {entry}")
            time.sleep(PAUSE_S)

    def wait_until_stable(self, group: str, members: int, partitions: int | None = None) -> None:
        """Wait until a consumer group has so many members, all in its epoch, and partitions; None: any number."""

        def is_stable(entry: dict[str, Any]) -> bool:
            assigned = sum(_assigned(member) for member in entry["members"])
            return (
                entry["groupState"] == "Stable"
                and [member["memberEpoch"] for member in entry["members"]] == [entry["groupEpoch"]] * members
                and partitions in (None, assigned)
            )

        self.wait_until(group, is_stable)

    def wait_until_classic(self, group: str, members: int) -> None:
        """Wait until a classic group is stable with so many members."""
        self.groups.add(group)
        deadline_s = time.monotonic() + WAIT_S
        while True:
            entry = self._described_classic(group)
            if entry["groupState"] == "Stable" and len(entry["members"]) == members:
                return
            if time.monotonic() > deadline_s:
                raise UnstableError(f"{group} is {entry}")
            time.sleep(PAUSE_S)

    def moment(self, name: str) -> None:
        """Note what the cluster answers now. Raises UnstableError."""
        for number_of_try in range(1, MOMENT_TRIES + 1):
            begun_ms, end = _now_ms(), self._offsets_end()
            answers = {
                "groups": {group: self._answers(group) for group in sorted(self.groups)},
                "listGroups": self._listed_groups(),
                "topics": self._topics(),
            }
            if self._offsets_end() == end:
                self._keep(name, begun_ms, answers, {"tries": number_of_try, "consumerOffsetsEnd": end})
                return
            time.sleep(PAUSE_S)
        raise UnstableError(f"the log of the groups grows during each of {MOMENT_TRIES} tries of {name}")

    def _keep(self, name: str, begun_ms: int, answers: dict[str, Any], state: dict[str, Any]) -> None:
        number, state = len(self.moments), {"stable": True} | state
        self.moments.append({"checkpoint": number, "name": name, "wallMs": begun_ms, **answers, **state})
        states = {group: _summary(entry) for group, entry in answers["groups"].items()}
        self.note(
            f"checkpoint {name} tries={state['tries']} " + " ".join(f"{group}={text}" for group, text in states.items())
        )

    def _answers(self, group: str) -> dict[str, Any]:
        """Everything about one group."""
        return {
            "describe": self.described(group),
            "describeClassic": self._described_classic(group),
            "offsets": self._offsets(group),
            "admin": self._admin_description(group),
        }

    def _offsets(self, group: str) -> dict[str, Any]:
        """Admin.listConsumerGroupOffsets: the committed offsets by partition, as they are outside transactions."""
        cluster = self._cluster
        listed = cluster.wait_for(cluster.admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata())
        return {
            str(partition): {
                "offset": committed.offset(),
                "leaderEpoch": committed.leaderEpoch().orElse(None),
                "metadata": committed.metadata(),
            }
            for partition, committed in sorted(listed.items(), key=lambda each: str(each[0]))
            if committed is not None
        }

    def _admin_description(self, group: str) -> dict[str, Any] | None:
        """Admin.describeConsumerGroups; None where it raises GroupIdNotFoundException."""
        cluster = self._cluster
        future = cluster.admin.describeConsumerGroups([group]).describedGroups().get(group)
        try:
            described = cluster.wait_for(future)
        except Py4JJavaError as error:
            if "GroupIdNotFoundException" not in str(error.java_exception.getCause()):
                raise
            return None
        return {
            "type": str(described.type()),
            "state": str(described.groupState()),
            "isSimple": described.isSimpleConsumerGroup(),
            "groupEpoch": described.groupEpoch().orElse(None),
            "targetAssignmentEpoch": described.targetAssignmentEpoch().orElse(None),
            "partitionAssignor": described.partitionAssignor(),
            "coordinator": described.coordinator().id(),
            "members": sorted((_admin_member(each) for each in described.members()), key=lambda each: each["memberId"]),
        }

    def _listed_groups(self) -> list[dict[str, Any]]:
        cluster = self._cluster
        listed = cluster.wait_for(cluster.admin.listGroups().all())
        return sorted(
            (
                {
                    "groupId": each.groupId(),
                    "type": str(each.type().orElse(None)),
                    "protocol": each.protocol(),
                    "state": str(each.groupState().orElse(None)),
                }
                for each in listed
            ),
            key=lambda each: str(each["groupId"]),
        )

    def _topics(self) -> dict[str, Any]:
        """Ids and offsets of the user topics."""
        answer = ask(self._cluster.bootstrap, ApiKey.METADATA, 12, {"topics": None})
        topics = [topic for topic in answer.topics if not topic.is_internal]
        return {
            topic.name: {
                "id": uuid_text(topic.topic_id.bytes),
                "partitions": len(topic.partitions),
                "start": self._ends(topic.name, len(topic.partitions), EARLIEST),
                "end": self._ends(topic.name, len(topic.partitions), LATEST),
            }
            for topic in sorted(topics, key=lambda topic: topic.name)
        }

    def _offsets_end(self) -> dict[str, int]:
        partitions = int(str(self._cluster.settings["offsets.topic.num.partitions"]))
        return self._ends(OFFSETS_TOPIC, partitions, LATEST)

    def _ends(self, topic: str, partitions: int, timestamp: int) -> dict[str, int]:
        positions = [{"partition_index": number, "timestamp": timestamp} for number in range(partitions)]
        body = {
            "replica_id": -1, "isolation_level": READ_UNCOMMITTED, "topics": [{"name": topic, "partitions": positions}],
        }  # fmt: skip
        (answer,) = ask(self._cluster.bootstrap, ApiKey.LIST_OFFSETS, 7, body).topics
        return {str(each.partition_index): int(each.offset) for each in sorted(answer.partitions, key=_index)}


def _index(partition: Any) -> int:
    return int(partition.partition_index)


def _assigned(member: Mapping[str, Any]) -> int:
    return sum(len(topic["partitions"]) for topic in member["assignment"]["topicPartitions"])


def _admin_member(member: Any) -> dict[str, Any]:
    target = member.targetAssignment().orElse(None)
    return {
        "memberId": member.consumerId(),
        "instanceId": member.groupInstanceId().orElse(None),
        "rackId": member.rackId().orElse(None),
        "clientId": member.clientId(),
        "host": member.host(),
        "memberEpoch": member.memberEpoch().orElse(None),
        "upgraded": member.upgraded().orElse(None),
        "assignment": _texts(member.assignment().topicPartitions()),
        "targetAssignment": None if target is None else _texts(target.topicPartitions()),
    }


def _texts(values: Iterable[Any]) -> list[str]:
    return sorted(map(str, values))


def _summary(answers: Mapping[str, Any]) -> str:
    entry = answers["describe"]
    if entry["errorCode"]:
        return f"E{entry['errorCode']}/{answers['describeClassic']['groupState']}"
    return f"{entry['groupState']}/{entry['groupEpoch']}/{entry['assignmentEpoch']}/m{len(entry['members'])}"


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
