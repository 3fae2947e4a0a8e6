"""Scripted members of a consumer group: they send requests to a broker and note what it answers, in comparable form."""

import dataclasses
import enum
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from sharelens.kafka_formats.messages.api_keys import ApiKey
from sharelens.workloads.admin import Admin
from sharelens.workloads.wire import ask
from state_model.group_records import decode_record
from state_model.topics import OFFSETS_TOPIC
from state_model.uuids import uuid_text
from tests.datasets import raw_records_of

REBALANCE_TIMEOUT_MS = 60_000
WAIT_S = 60
PAUSE_S = 0.1
GROUP_RESOURCE, SET, DELETE = 32, 0, 1
REASON = " is not a valid regular expression: "
LOADING = (14, 15, 16)
NOT_COMPARED = {"throttle_time"}
TIMES = {"assignment_timestamp", "timestamp", "version", "metadata_hash"}
"""Fields of records that differ between brokers: times, versions of the metadata, hashes of topic ids."""
TOPIC_LISTS = ("topic_partitions", "assigned_partitions", "partitions_pending_revocation")
MEMBER, MEMBER_TARGET, ASSIGNMENT, RESOLVED_EXPRESSION = 5, 7, 8, 16
WRITTEN_LATER = (15,)
"""Types of records that follow an answer at a time of their own: the initialization of a share group's partitions."""
UNSET = {
    "instance_id": None, "rack_id": None, "rebalance_timeout": -1, "subscribed_topic_names": None,
    "subscribed_topic_regex": None, "server_assignor": None, "topic_partitions": None,
}  # fmt: skip


class Script:
    """The members of a group, each with its epoch and the partitions that it owns; `answers` are comparable.

    `has_ties`: assignments are compared by their number of partitions, because ids of topics decide which they are.
    """

    def __init__(self, bootstrap: str, group: str, *, has_ties: bool = False) -> None:
        self._bootstrap, self.group, self._has_ties = bootstrap, group, has_ties
        self._epochs: dict[str, int] = {}
        self._owned: dict[str, list[dict[str, Any]]] = {}
        self._ids: dict[str, str] = {}
        self._labels: dict[str, str] = {}
        self.answers: list[Any] = []
        self._names: dict[str, str] = {}
        self._find_coordinator()

    def connect(self, bootstrap: str) -> None:
        """Go on with a broker that was started again."""
        self._bootstrap = bootstrap
        self._find_coordinator()

    def _find_coordinator(self) -> None:
        """Until the broker coordinates the group: Kafka creates the topic of the groups first."""
        keys = {"key_type": 0, "coordinator_keys": [self.group]}

        def is_ready() -> bool:
            coordinator = self._ask(ApiKey.FIND_COORDINATOR, 4, **keys).coordinators[0]
            return not coordinator.error_code.value and self._describe().error_code.value not in LOADING

        self._wait(is_ready)

    def _describe(self) -> Any:
        body = {"group_ids": [self.group], "include_authorized_operations": False}
        (described,) = self._ask(ApiKey.CONSUMER_GROUP_DESCRIBE, 1, **body).groups
        return described

    def _ask(self, api: int, version: int, **body: Any) -> Any:
        return ask(self._bootstrap, api, version, body)

    @staticmethod
    def _wait(is_reached: Callable[[], bool]) -> None:
        deadline_s = time.monotonic() + WAIT_S
        while not is_reached():
            assert time.monotonic() < deadline_s
            time.sleep(PAUSE_S)

    # Topics and time.

    def topic(self, name: str, partitions: int) -> str:
        """Create a topic of this group's own, or let it grow; its name."""
        topic = f"{self.group}-{name}"
        if Admin(self._bootstrap).create_topic(topic, partitions) < partitions:
            growing = [{"name": topic, "count": partitions, "assignments": None}]
            self._ask(ApiKey.CREATE_PARTITIONS, 3, topics=growing, timeout=10_000, validate_only=False)
        self._wait(lambda: self._assigned_to_probe(topic) == partitions)
        return topic

    def delete_topic(self, topic: str) -> None:
        """Delete a topic."""
        self._ask(ApiKey.DELETE_TOPICS, 6, topics=[{"name": topic, "topic_id": None}], timeout=10_000)
        self._wait(lambda: self._assigned_to_probe(topic) == 0)

    def _assigned_to_probe(self, topic: str) -> int:
        """The partitions of a topic that the coordinator knows: those that it assigns to a group of one member."""
        fields = UNSET | {"group_id": f"{self.group}-probe", "member_id": "p"}
        joining = {
            "subscribed_topic_names": [topic], "rebalance_timeout": REBALANCE_TIMEOUT_MS, "topic_partitions": []
        }  # fmt: skip
        joined = self._ask(ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, **fields | {"member_epoch": 0} | joining)
        self._ask(ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, **fields | {"member_epoch": -1})
        return sum(len(each.partitions) for each in joined.assignment.topic_partitions)

    def configure(self, **configs: object) -> None:
        """Set configurations of the group."""
        texts = {f"consumer.{name.replace('_', '.')}": str(value) for name, value in configs.items()}
        Admin(self._bootstrap).configure_group(self.group, texts)

    def wait(self, seconds: float) -> None:
        """Let time pass."""
        time.sleep(seconds)

    # Heartbeats.

    def join(self, member: str, *topics: str, **fields: Any) -> Any:
        """A member joins, or joins again, without partitions."""
        self._owned[member] = []
        joining = {"subscribed_topic_names": topics, "rebalance_timeout": REBALANCE_TIMEOUT_MS, "topic_partitions": []}
        return self.send(member, 0, **joining | fields)

    def beat(self, member: str, *, owned: bool = False, **fields: Any) -> Any:
        """A heartbeat in the member's epoch, with the partitions that it owns if it says so."""
        return self.send(
            member, self._epochs[member], **({"topic_partitions": self._owned[member]} if owned else {}), **fields
        )

    def settle(self, *members: str, rounds: int = 4) -> None:
        """All members report what they own until nothing moves."""
        for _ in range(rounds):
            for member in members:
                self.beat(member, owned=True)

    def beat_until(self, member: str, is_reached: Callable[[Any], bool]) -> None:
        """Heartbeats until an answer is as the caller wants it; only that one is noted."""

        def is_last() -> bool:
            noted = len(self.answers)
            answer = self.beat(member, owned=True)
            if not is_reached(answer):
                del self.answers[noted:]
                return False
            return True

        self._wait(is_last)

    def send(self, member: str, epoch: int, *, version: int = 1, **fields: Any) -> Any:
        """Any heartbeat; the member owns the partitions of an answer at once."""
        body = UNSET | {"group_id": self.group, "member_id": self.member_id(member), "member_epoch": epoch} | fields
        if version == 0:
            del body["subscribed_topic_regex"]
        answer = self._ask(ApiKey.CONSUMER_GROUP_HEARTBEAT, version, **body)
        if answer.error_code.value == 0:
            if answer.member_id and answer.member_id != self.member_id(member):
                self.label(answer.member_id, member)
            self._epochs[member] = answer.member_epoch
            if answer.assignment is not None:
                self._owned[member] = [
                    {"topic_id": each.topic_id, "partitions": list(each.partitions)}
                    for each in answer.assignment.topic_partitions
                ]
        self.answers.append([f"{member} {epoch}", self._comparable(answer)])
        return answer

    def label(self, member_id: str, member: str) -> None:
        """Give a member that the broker made an id for its name in all that is compared."""
        self._ids[member] = member_id
        self._labels[member_id] = f"{member}, id of {len(member_id)}"

    def member_id(self, member: str) -> str:
        """The id that the broker made for a member; else its name."""
        return self._ids.get(member, member)

    def epoch(self, member: str) -> int:
        """The epoch that a member knows."""
        return self._epochs[member]

    def owned(self, member: str) -> list[dict[str, Any]]:
        """The partitions of a member, in the form of a request."""
        return self._owned[member]

    def partitions(self, member: str) -> list[int]:
        """The numbers of a member's partitions, ascending."""
        return sorted(number for topic in self._owned[member] for number in topic["partitions"])

    # Other requests.

    def request(self, label: str, api: int, version: int, **body: Any) -> Any:
        """Any other request, with its whole answer."""
        answer = self._ask(api, version, **body)
        self.answers.append([label, self._comparable(answer)])
        return answer

    def name_last_answer_again(self, answer: Any) -> None:
        """Compare the last answer once more, after `label`."""
        self.answers[-1][1] = self._comparable(answer)

    def commit(self, label: str, member: str, epoch: int, topic: str, partition: int, **fields: Any) -> None:
        """An OffsetCommit of one partition; `version`, and `by_id` from version 10."""
        version = fields.pop("version", 9)
        partitions = [{"partition_index": partition, "committed_offset": 0, "committed_metadata": ""}]
        named = {"name": topic} if version < 10 else {"topic_id": self.topic_id(topic)}
        self.request(
            label, ApiKey.OFFSET_COMMIT, version, group_id=self.group, member_id=self.member_id(member),
            generation_id_or_member_epoch=epoch, topics=[named | {"partitions": partitions}], **fields,
        )  # fmt: skip

    def fetch(self, label: str, member: str | None, epoch: int, **fields: Any) -> None:
        """An OffsetFetch of all offsets, or of the first partition of `topic`; `version`, `require_stable`."""
        version, topic = fields.get("version", 9), fields.get("topic")
        named: dict[str, Any] = {"name": topic} if version < 10 else {"topic_id": topic and self.topic_id(topic)}
        topics = None if topic is None else [named | {"partition_indexes": [0]}]
        group: dict[str, Any] = {"group_id": self.group, "topics": topics}
        if version >= 9:
            group |= {"member_id": None if member is None else self.member_id(member), "member_epoch": epoch}
        is_stable = fields.get("require_stable", False)
        self.request(label, ApiKey.OFFSET_FETCH, version, groups=[group], require_stable=is_stable)

    def begin_transaction(self, transactional_id: str) -> None:
        """Let a producer of this group's own send offsets of the group in a transaction."""
        identity = {"transactional_id": f"{self.group}-{transactional_id}"}
        started: list[Any] = []

        def is_started() -> bool:
            keys = [identity["transactional_id"]]
            self._ask(ApiKey.FIND_COORDINATOR, 4, key_type=1, coordinator_keys=keys)  # creates the topic on Kafka
            answer = self._ask(
                ApiKey.INIT_PRODUCER_ID, 4, transaction_timeout=60_000, producer_id=-1, producer_epoch=-1, **identity
            )
            started.append(answer)
            return not answer.error_code.value

        self._wait(is_started)
        self._producer = identity | {
            "producer_id": started[-1].producer_id, "producer_epoch": started[-1].producer_epoch
        }  # fmt: skip
        self.request("add offsets", ApiKey.ADD_OFFSETS_TO_TXN, 3, group_id=self.group, **self._producer)

    def commit_in_transaction(self, label: str, member: str, epoch: int, topic: str, partition: int) -> None:
        """A TxnOffsetCommit of one partition."""
        partitions = [{"partition_index": partition, "committed_offset": 0, "committed_metadata": ""}]
        self.request(
            label, ApiKey.TXN_OFFSET_COMMIT, 3, group_id=self.group, member_id=self.member_id(member),
            generation_id=epoch, topics=[{"name": topic, "partitions": partitions}], **self._producer,
        )  # fmt: skip

    def end_transaction(self) -> None:
        """Commit the transaction, and wait until its offsets are the group's."""
        self.request("end", ApiKey.END_TXN, 3, committed=True, **self._producer)

        def is_complete() -> bool:
            groups = [{"group_id": self.group, "topics": None, "member_id": None, "member_epoch": -1}]
            (group,) = self._ask(ApiKey.OFFSET_FETCH, 9, groups=groups, require_stable=True).groups
            codes = {partition.error_code.value for topic in group.topics for partition in topic.partitions}
            return codes == {0}

        self._wait(is_complete)

    def describe(self, label: str = "describe") -> None:
        """ConsumerGroupDescribe."""
        body = {"group_ids": [self.group], "include_authorized_operations": True}
        self.request(label, ApiKey.CONSUMER_GROUP_DESCRIBE, 1, **body)

    def describe_classic(self) -> None:
        """DescribeGroups."""
        body = {"groups": [self.group], "include_authorized_operations": False}
        self.request("describe classic", ApiKey.DESCRIBE_GROUPS, 6, **body)

    def list_entry(self, states: Sequence[str] = (), types: Sequence[str] = ()) -> None:
        """This group's entries in ListGroups."""
        answer = self._ask(ApiKey.LIST_GROUPS, 5, states_filter=states, types_filter=types)
        entries = [self._comparable(each) for each in answer.groups if each.group_id == self.group]
        self.answers.append([f"list {states} {types}", entries])

    def alter_config(self, name: str, text: str | None) -> None:
        """Set a configuration of the group, or delete it; the light broker's reasons say more than Kafka's."""
        operation = {"name": name, "config_operation": SET if text is not None else DELETE, "value": text}
        resources = [{"resource_type": GROUP_RESOURCE, "resource_name": self.group, "configs": [operation]}]
        self.request(f"{name}={text}", ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, resources=resources, validate_only=False)
        for response in self.answers[-1][1]["responses"]:
            del response["error_message"]

    def describe_configs(self, prefix: str) -> None:
        """The values of the group's configurations that begin with a prefix, and where they come from."""
        resources = [
            {"resource_type": GROUP_RESOURCE, "resource_name": self.group, "configuration_keys": None}
        ]  # fmt: skip
        body = {"resources": resources, "include_synonyms": False, "include_documentation": False}
        (result,) = self._ask(ApiKey.DESCRIBE_CONFIGS, 4, **body).results
        configs = {each.name: [each.value, each.config_source] for each in result.configs}
        self.answers.append(["configs", {name: configs[name] for name in sorted(configs) if name.startswith(prefix)}])

    def leave_by_admin(self, label: str, **identity: Any) -> None:
        """LeaveGroup, as the Admin client's removal of members sends it."""
        member = {"member_id": "", "group_instance_id": None, "reason": None} | identity
        self.request(label, ApiKey.LEAVE_GROUP, 5, group_id=self.group, members=[member])

    def delete_group(self) -> None:
        """DeleteGroups."""
        self.request("delete group", ApiKey.DELETE_GROUPS, 2, groups_names=[self.group])

    # What is compared.

    def topic_id(self, topic: str) -> uuid.UUID:
        """The id of a topic; of no topic: an id that none has."""
        (described,) = self._ask(
            ApiKey.METADATA, 12, topics=[{"topic_id": None, "name": topic}], allow_auto_topic_creation=False,
            include_topic_authorized_operations=False,
        ).topics  # fmt: skip
        topic_id: uuid.UUID | None = described.topic_id
        return topic_id or uuid.UUID(int=99)

    def _comparable(self, value: Any) -> Any:
        match value:
            case enum.Enum():
                return value.value
            case uuid.UUID():
                return self._topic_name(uuid_text(value.bytes))
            case timedelta():
                return round(value.total_seconds() * 1000)
            case bytes():
                return value.hex()
            case str():
                return self._text(value)
            case tuple() | list():
                return in_order([self._comparable(each) for each in value])
            case Mapping():
                return self._fields(value)
        if dataclasses.is_dataclass(value):
            return self._fields({field.name: getattr(value, field.name) for field in dataclasses.fields(value)})
        return value

    def _text(self, text: str) -> str:
        """A text with names for ids that the broker made, and without a library's reason for an invalid expression."""
        for member_id, label in self._labels.items():
            text = text.replace(member_id, label)
        return text.partition(REASON)[0]

    def _fields(self, value: Mapping[str, Any]) -> dict[str, Any]:
        fields = {name: self._comparable(each) for name, each in value.items() if name not in NOT_COMPARED | TIMES}
        for name in TOPIC_LISTS:
            if self._has_ties and fields.get(name) is not None:
                fields[name] = sum(len(topic["partitions"]) for topic in fields[name])
        return fields

    def _topic_name(self, topic_id: str) -> str:
        if topic_id not in self._names:
            topics = self._ask(ApiKey.METADATA, 12, topics=None).topics
            self._names |= {uuid_text(topic.topic_id.bytes): topic.name for topic in topics}
        return self._names.get(topic_id, "unknown")

    def records(self, log: Sequence[Any]) -> list[Any]:
        """The records of the group without what differs between brokers; `log`: as `decoded_log` gives it."""
        records = [
            [each.record_type, self._comparable(each.key), self._record_value(each)]
            for each in log
            if each.group_id == self.group and each.record_type not in WRITTEN_LATER
        ]
        # A broker resolves expressions at a time of its own.
        resolved = [record for record in records if record[0] == RESOLVED_EXPRESSION]
        return _with_members_in_order([each for each in records if each not in resolved]) + in_order(resolved)

    def _record_value(self, record: Any) -> Any:
        if record.is_tombstone:
            return None
        if record.value is None:
            return f"version {record.version}"
        value = dict(record.value)
        for name in ("assigned_partitions", "partitions_pending_revocation"):
            if name in value:
                value[name] = [_pairs(topic) for topic in value[name]]
        return self._by_name(self._comparable(value))

    def _by_name(self, value: Any) -> Any:
        """Ids of topics in the trees of records are text."""
        if isinstance(value, dict):
            return {
                name: self._topic_name(each) if name == "topic_id" else self._by_name(each)
                for name, each in value.items()
            }
        return in_order([self._by_name(each) for each in value]) if isinstance(value, list) else value


def decoded_log(log_dir: Path) -> list[Any]:
    """The records of all groups, by partition and offset."""
    return [decode_record(*raw) for _, raw in sorted(raw_records_of(log_dir, OFFSETS_TOPIC).items())]


def in_order(values: list[Any]) -> list[Any]:
    """The values of a list in an order of their own: Kafka's are those of hash tables."""
    return sorted(values, key=repr)


def _pairs(topic: Mapping[str, Any]) -> dict[str, Any]:
    """The partitions of a topic, each with its assignment epoch."""
    epochs = topic["assignment_epochs"] or [None] * len(topic["partitions"])
    pairs = [f"{number} since {epoch}" for number, epoch in zip(topic["partitions"], epochs, strict=True)]
    return {"topic_id": topic["topic_id"], "partitions": pairs}


def _with_members_in_order(records: list[Any]) -> list[Any]:
    """Neighbouring targets of members, and neighbouring tombstones of a type, by their members' ids.

    Kafka writes them in the order of a hash table.
    """
    ordered: list[Any] = []
    for record in records:
        index = len(ordered)
        while index and _is_in_hash_order(ordered[index - 1], record):
            if ordered[index - 1][1]["member_id"] <= record[1]["member_id"]:
                break
            index -= 1
        ordered.insert(index, record)
    return ordered


def _is_in_hash_order(record: Any, following: Any) -> bool:
    are_tombstones = record[2] is None and following[2] is None
    return record[0] == following[0] and (
        record[0] == MEMBER_TARGET or (are_tombstones and record[0] in (MEMBER, ASSIGNMENT))
    )
