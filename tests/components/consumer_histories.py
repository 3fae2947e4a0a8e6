"""Random histories of a consumer group, each step on both sides: by our rules, and by Kafka's own coordinator."""

import random
from typing import Any

from state_model.consumer import coordinator
from state_model.consumer.group import apply
from state_model.consumer.group_values import ConsumerGroup, PartitionMetadata, ResolvedExpression
from state_model.consumer.heartbeat import ErrorCode, Heartbeat, HeartbeatError, check
from state_model.consumer.reconciliation import Partition, Partitions
from state_model.consumer.records import record_of
from state_model.consumer.soft_state import Settings, SoftState
from state_model.group_records import GroupRecord
from state_model.group_topics import TopicMetadata
from state_model.uuids import uuid_text
from tests.components.kafka_group_coordinator import Kafka, comparable

MEMBERS = (("a", "b", "c", "d"), ("c", "d"), ("b", "c", "d"))
"""The members of a history: c and d have one instance id and follow each other, b has one in some of its requests."""
OPERATIONS = (
    ["join"] * 5 + ["beat"] * 10 + ["work"] * 5 + ["leave"] * 2 + ["expire", "topic", "wait", "resolve", "old", "bad"]
)

BAD_FIELDS: tuple[dict[str, Any], ...] = (
    *({name: value} for name in ("group_id", "instance_id", "rack_id", "member_id") for value in ("", " ")),
    {"member_epoch": -3},
    {"member_epoch": -2, "instance_id": None},
    {"rebalance_timeout_ms": -1},
    {"owned": frozenset({Partition(uuid_text(b"\1" * 16), 0)})},
    {"subscribed_topic_names": None, "subscribed_topic_regex": None},
    {"server_assignor": "none"},
)
"""Fields that make some requests invalid for any group."""


class History:
    """One group on both sides, and its clients: epochs and partitions as the last answers said."""

    def __init__(self, kafka: Kafka, settings: Settings, dice: random.Random) -> None:
        self.kafka, self.dice, self.settings = kafka, dice, settings
        self.topics: dict[str, TopicMetadata] = {}
        self.group: ConsumerGroup | None = None
        self.soft = SoftState()
        self.clients: dict[str, tuple[int, Partitions]] = {}
        self.members = dice.choice(MEMBERS)
        self.preferred = dice.choice(["range", "uniform"])
        self.revocations: dict[str, tuple[int, int]] = {}
        self.codes: set[ErrorCode] = set()
        self.log: list[GroupRecord] = []
        self.incarnation = 0
        for name in ("t1", "t2"):
            self.change_topic(name, 2)

    def change_topic(self, name: str, partitions: int) -> None:
        """Create a topic, add partitions or (0) delete it."""
        old, new = self.topics.pop(name, None), None
        if partitions:
            self.incarnation += old is None
            topic_id = old.topic_id if old else bytes([1, self.incarnation]).ljust(16, b"\1")
            partitions = max(partitions, old.partitions if old else 0)
            new = self.topics[name] = TopicMetadata(name, topic_id, partitions)
        self.kafka.change_topic(old, new)
        if self.group is not None and name in self.group.topic_names and new != old:
            self.soft = SoftState()

    def step(self) -> str:
        """A random step on both sides, with equal results; its text."""
        member_id, operation = self.dice.choice(self.members), self.dice.choice(OPERATIONS)
        self.kafka.clock.now_ms += 100
        self.take(operation, member_id)
        return operation

    def take(self, operation: str, member_id: str) -> None:
        """A step of a member of the consumer protocol, or of the world."""
        dice = self.dice
        match operation:
            case "join" | "beat" | "leave":
                self.send(self.request(operation, member_id))
            case "bad":
                request = self.request(dice.choice(["join", "beat", "leave"]), member_id)
                self.send(request._replace(**dice.choice(BAD_FIELDS)))
            case "work":
                for name, (epoch, partitions) in list(self.clients.items()):
                    self.send(Heartbeat("g", name, epoch, "c", "/127.0.0.1", self.instance(name), owned=partitions))
            case "expire":
                self.expire(dice.choice(["session", "rebalance"]), member_id)
            case "topic":
                self.change_topic(dice.choice(["t1", "t2"]), dice.randint(0, 4) and dice.randint(4, 6))
            case "wait":
                self.kafka.clock.now_ms += 11_000
            case "resolve":
                self.resolve()
            case "old" if self.group is not None:
                record = record_of(4, "g", PartitionMetadata())
                self.kafka.replay_record(record)
                self.log.append(record)
                self.group = apply(self.group, record)

    def instance(self, member_id: str) -> str | None:
        instances = {"c": ["i"], "d": ["i"], "b": [None, None, "j"]}
        return self.dice.choice(instances.get(member_id, [None]))

    def request(self, operation: str, member_id: str) -> Heartbeat:
        dice = self.dice
        epoch, partitions = self.clients.get(member_id, (0, frozenset[Partition]()))
        request = Heartbeat("g", member_id, epoch, "c", "/127.0.0.1", self.instance(member_id))
        if operation == "leave":
            return request._replace(member_epoch=dice.choice([-1, -2, -2]) if request.instance_id else -1)
        names = dice.choice([None, None, frozenset[str](), frozenset({"t1"}), frozenset({"t1", "t2", "t3"})])
        regex = dice.choice([None, None, None, "t1.*", "t.*", "", "("])
        request = request._replace(subscribed_topic_names=names, subscribed_topic_regex=regex)
        request = request._replace(
            rack_id=dice.choice([None, None, "r"]), server_assignor=dice.choice([None, self.preferred])
        )
        if operation == "join":
            names = frozenset({"t1"}) if names is None and regex is None else names
            return request._replace(
                member_epoch=0, rebalance_timeout_ms=60_000, owned=frozenset(), subscribed_topic_names=names
            )
        if dice.random() < 0.7:
            request = request._replace(subscribed_topic_names=None, subscribed_topic_regex=None)
        timeout_ms = dice.choice([-1, -1, 60_000])
        epoch = dice.choice([epoch, epoch, epoch, epoch, max(1, epoch - 1), epoch + 1])
        return request._replace(
            member_epoch=epoch, rebalance_timeout_ms=timeout_ms, owned=dice.choice([None, partitions, frozenset()])
        )

    def send(self, request: Heartbeat) -> None:
        self.kafka.timers.calls.clear()
        outcome = self.outcome_of(request)
        result = self.kafka.heartbeat(request)
        records = () if isinstance(result, int) else self.kafka.replay(result)
        if isinstance(outcome, ErrorCode) or isinstance(result, int):
            assert outcome == result, request
            self.codes.add(ErrorCode(result))
            self.clients.pop(request.member_id, None)
            return
        self.accept(outcome, records, request.member_id)
        assert tuple(outcome.answer) == self.answer(result.response())
        self.clients[request.member_id] = (
            outcome.answer.member_epoch,
            self.clients.get(request.member_id, (0, frozenset()))[1]
            if outcome.answer.assigned is None
            else outcome.answer.assigned,
        )
        if request.member_epoch < 0:
            self.clients.pop(request.member_id)

    def outcome_of(self, request: Heartbeat) -> coordinator.Outcome | ErrorCode:
        """By our rules, with our assignors; an error's code."""
        now_ms = self.kafka.clock.now_ms
        try:
            check(request, 1, self.settings.assignors)
            if request.member_epoch < 0:
                return coordinator.leave(self.group, self.soft, request, self.topics.get)
            return coordinator.heartbeat(self.group, self.soft, request, self.topics.get, self.settings, now_ms)
        except HeartbeatError as error:
            return error.code

    def accept(self, outcome: coordinator.Outcome, records: tuple[GroupRecord, ...], member_id: str) -> None:
        """Compare records and timers, and go on with the group after them."""
        assert comparable(outcome.records) == comparable(records)
        self.log += outcome.records
        key = f"rebalance-timeout-g-{member_id}"
        calls = [delay for name, delay in self.kafka.timers.calls if name == key]
        expected = [outcome.revocation[1]] if outcome.revocation else [None] if outcome.ends_revocation else []
        assert calls == expected
        if outcome.revocation is not None:
            self.revocations[member_id] = outcome.revocation
        self.group, self.soft = outcome.group, outcome.soft

    def answer(self, response: Any) -> tuple[Any, ...]:
        assignment = response.assignment()
        partitions = None
        if assignment is not None:
            topics = assignment.topicPartitions()
            partitions = {Partition(each.topicId().toString(), part) for each in topics for part in each.partitions()}
        return response.memberId(), response.memberEpoch(), response.heartbeatIntervalMs(), partitions

    def expire(self, timer: str, member_id: str) -> None:
        operation = self.kafka.timers.operations.pop(f"{timer}-timeout-g-{member_id}", None)
        if operation is None:
            return
        self.kafka.timers.calls.clear()
        records = self.kafka.replay(operation.generateRecords())
        if timer == "session":
            outcome = coordinator.expire_session("g", self.group, self.soft, member_id, self.topics.get)
        else:
            epoch = self.revocations[member_id][0]
            outcome = coordinator.expire_revocation("g", self.group, self.soft, member_id, epoch, self.topics.get)
        if outcome is None:
            assert records == ()
        else:
            self.accept(self.after_removal(outcome), records, member_id)

    def after_removal(self, outcome: coordinator.Outcome) -> coordinator.Outcome:
        """The outcome when members are removed, by the members that stay."""
        return outcome

    def resolve(self) -> None:
        task, operation = self.kafka.executor.tasks.pop("g-regex", (None, None))
        if task is None or self.group is None:
            return
        matches = task.run()
        records = self.kafka.replay(operation.onComplete(matches, None))
        expressions = {
            regex: ResolvedExpression(frozenset(each.topics()), each.version(), each.timestamp())
            for regex, each in matches.items()
        }
        now_ms = self.kafka.clock.now_ms
        outcome = coordinator.resolve("g", self.group, self.soft, expressions, self.topics.get, now_ms)
        assert sorted(comparable(outcome.records), key=str) == sorted(comparable(records), key=str)
        self.log += outcome.records
        self.group, self.soft = outcome.group, outcome.soft
