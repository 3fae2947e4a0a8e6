"""A scripted classic consumer: JoinGroup, SyncGroup, Heartbeat and LeaveGroup with the subscription of a consumer."""

from collections.abc import Sequence
from typing import Any

from kio.schema.consumer_protocol_assignment.v1.data import ConsumerProtocolAssignment
from kio.schema.consumer_protocol_subscription.v1.data import ConsumerProtocolSubscription

from sharelens.kafka_formats.messages.api_keys import ApiKey
from sharelens.kafka_formats.messages.reader import read
from sharelens.kafka_formats.messages.writer import write
from tests.broker.consumers.consumer_script import Script

VERSION = (1).to_bytes(2, "big")
MEMBER_ID_REQUIRED = 79


class ClassicMember:
    """A member of the script's group, by name; its generation and partitions are those of the last answers."""

    def __init__(self, script: Script, name: str, *topics: str, **fields: Any) -> None:
        self._script, self.name, self._topics = script, name, topics
        self._instance_id = fields.get("instance_id")
        self._timeouts = {"session_timeout": fields.get("session_timeout", 30_000)} | {
            "rebalance_timeout": fields.get("rebalance_timeout", 60_000)
        }
        self._member_id = ""
        self.generation = -1
        self.owned: list[dict[str, Any]] = []

    def join(self, protocols: Sequence[str] = ("range",), protocol_type: str = "consumer", **fields: Any) -> Any:
        """Join, or join again: a second time with the id where the broker makes one first."""
        subscription = {"topics": fields.pop("topics", self._topics), "user_data": None, "owned_partitions": self.owned}
        metadata = VERSION + write(ConsumerProtocolSubscription, subscription)
        body = {
            "protocol_type": protocol_type, "protocols": [{"name": name, "metadata": metadata} for name in protocols],
            "group_instance_id": self._instance_id, "reason": None,
        }  # fmt: skip
        answer = self._request("join", ApiKey.JOIN_GROUP, 9, **body | self._timeouts | fields)
        if answer.member_id and not self._member_id:
            self._member_id = answer.member_id
            self._script.label(answer.member_id, self.name)
            self._script.name_last_answer_again(answer)
        if answer.error_code.value == MEMBER_ID_REQUIRED:
            return self.join(protocols, protocol_type, **fields)
        if answer.error_code.value == 0:
            self.generation = answer.generation_id
        return answer

    def sync(self, assigned: dict[str, Sequence[int]] | None = None, **fields: Any) -> Any:
        """Ask for the assignment; the leader of a classic group gives itself `assigned`."""
        topics = [{"topic": topic, "partitions": numbers} for topic, numbers in (assigned or {}).items()]
        assignment = VERSION + write(ConsumerProtocolAssignment, {"assigned_partitions": topics, "user_data": None})
        assignments = [] if assigned is None else [{"member_id": self._member_id, "assignment": assignment}]
        body = {
            "generation_id": self.generation, "group_instance_id": self._instance_id, "protocol_type": "consumer",
            "protocol_name": "range", "assignments": assignments,
        }  # fmt: skip
        answer = self._request("sync", ApiKey.SYNC_GROUP, 5, **body | fields)
        if answer.error_code.value == 0 and answer.assignment:
            consumer_assignment, _ = read(ConsumerProtocolAssignment, answer.assignment, len(VERSION))
            self.owned = sorted(
                (
                    {"topic": each.topic, "partitions": sorted(each.partitions)}
                    for each in consumer_assignment.assigned_partitions
                ),
                key=repr,
            )
            # Kafka lists partitions in the order of a hash table.
            self._script.answers[-1][1]["assignment"] = self.owned
        return answer

    def beat(self, **fields: Any) -> Any:
        """A Heartbeat in the member's generation."""
        body = {"generation_id": self.generation, "group_instance_id": self._instance_id} | fields
        return self._request("heartbeat", ApiKey.HEARTBEAT, 4, **body)

    def follow(self, *members: str, rounds: int = 6) -> None:
        """Report to the group, and join again where it rebalances, while members of the new protocol do."""
        for _ in range(rounds):
            if self.beat().error_code.value:
                self.join()
                self.sync()
            self._script.settle(*members, rounds=1)

    def leave(self) -> None:
        """Leave the group."""
        members = [{"member_id": self._member_id, "group_instance_id": self._instance_id, "reason": None}]
        self._script.request(f"{self.name} leave", ApiKey.LEAVE_GROUP, 5, group_id=self._script.group, members=members)

    def commit(self, label: str, generation: int, topic: str, partition: int, **fields: Any) -> None:
        """An OffsetCommit of one partition."""
        self._script.commit(label, self.name, generation, topic, partition, **fields)

    def _request(self, label: str, api: int, version: int, **body: Any) -> Any:
        fields = {"group_id": self._script.group, "member_id": self._member_id} | body
        return self._script.request(f"{self.name} {label}", api, version, **fields)
