"""Random histories of a group with consumers and classic members, which changes its protocol both ways.

While the group is a classic one, only Kafka's coordinator goes on; the next upgrade begins with the group that it has.
"""

import random
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from state_model.consumer import classic_members, coordinator
from state_model.consumer.classic_group import classic_session_timeout_ms
from state_model.consumer.classic_members import ClassicCall, Join
from state_model.consumer.coordinator import Outcome
from state_model.consumer.heartbeat import Answer, ErrorCode, Heartbeat, HeartbeatError, check
from state_model.consumer.migration import CLASSIC_GROUP, join_classic_group, with_downgrade
from state_model.consumer.soft_state import Settings, SoftState
from state_model.consumer_protocol import read_assignment, read_version, write_assignment
from state_model.group_records import GroupRecord, group_record
from state_model.uuids import uuid_text
from tests.components.classic_clients import ClassicClient, call_of, join_request, random_call
from tests.components.consumer_histories import OPERATIONS, History
from tests.components.kafka_group_coordinator import Kafka
from tests.components.mixed_comparisons import TIMERS, compare_downgrade, in_runs, is_classic_timer, is_consumer_timer

CLASSIC_OPERATIONS = (
    ["go on"] * 16 + ["join as classic"] * 4 + ["sync", "tell", "quit", "quit", "remove", "timer", "classic timer"]
)
MIXED_OPERATIONS = [*OPERATIONS, *CLASSIC_OPERATIONS]
T = TypeVar("T")
SESSION_MS = 45_000
"""That of members of the consumer protocol."""


class MixedHistory(History):
    """One group on both sides. Classic clients k and l are dynamic; m and n have the instance id of c and d."""

    def __init__(self, kafka: Kafka, settings: Settings, dice: random.Random) -> None:
        self.remembered_names: frozenset[str] = frozenset()
        super().__init__(kafka, settings, dice)
        self.preferred = "range"
        self.members = dice.choice([("a", "b"), ("a", "c", "d"), ("c", "d")])
        names = dice.choice([("k",), ("k", "l"), ("k", "m"), ("k", "l", "m", "n"), ("m", "n")])
        self.classic = {name: ClassicClient(instance_id="i" if name in ("m", "n") else None) for name in names}
        self.events: list[str] = []
        self.upgraded_members: dict[str, int] = {}

    def step(self) -> str:
        operation = self.dice.choice(MIXED_OPERATIONS)
        names_before = frozenset() if self.group is None else self.group.topic_names
        self.kafka.clock.now_ms += 100
        self.take_mixed(operation, self.classic[self.dice.choice(list(self.classic))])
        for each in self.classic.values():
            each.collect_answers()
        self.remember(names_before)
        group = self.kafka.group()
        is_consumer_group = group is not None and group.type().name() == "CONSUMER"
        assert is_consumer_group == (self.group is not None), operation
        return operation

    def take_mixed(self, operation: str, client: ClassicClient) -> None:
        """A step of a member of either protocol."""
        match operation:
            case "go on":
                if any(each.answers for each in self.classic.values()) and self.dice.random() < 0.5:
                    self.fire(is_classic=True)
                self.go_on(client)
            case "join as classic":
                self.join(client, join_request(client, self.dice, self.members, is_random=True))
            case "sync":
                self.sync(client, random_call(client, self.dice, self.members))
            case "tell":
                self.tell(client, random_call(client, self.dice, self.members))
            case "quit":
                self.leave([(client.member_id, client.instance_id)])
                client.forget()
            case "remove":
                names = [*self.members, *(each.member_id for each in self.classic.values()), "nobody", ""]
                self.leave([(self.dice.choice(names), self.dice.choice([None, None, "i"])) for _ in range(3)])
            case "timer":
                self.fire(is_classic=False)
            case "classic timer":
                self.fire(is_classic=True)
            case _:
                member_id = self.dice.choice(self.members)
                is_outside = operation == "beat" and member_id not in self.clients
                self.take("join" if is_outside and self.dice.random() < 0.6 else operation, member_id)

    def remember(self, names_before: frozenset[str]) -> None:
        """The topics of a group that is downgraded: Kafka still looks at them when it is a consumer group again."""
        if self.group is None:
            self.remembered_names |= names_before
        else:
            self.remembered_names -= names_before - self.group.topic_names

    def change_topic(self, name: str, partitions: int) -> None:
        """See History."""
        before = self.topics.get(name)
        super().change_topic(name, partitions)
        if self.topics.get(name) != before and name in self.remembered_names and self.group is not None:
            self.soft = SoftState()

    # Both protocols

    def outcome_of(self, request: Heartbeat) -> Outcome | ErrorCode:
        group = self.kafka.group()
        self.upgraded_members = {}
        if group is None or group.type().name() != "CLASSIC":
            outcome = super().outcome_of(request)
            return outcome if isinstance(outcome, ErrorCode) else self.after_removal(outcome)
        assert self.group is None
        is_replaced = group.isEmpty() and request.member_epoch == 0
        try:
            check(request, 1, self.settings.assignors)
            if request.member_epoch < 0:
                return coordinator.leave(None, self.soft, request, self.topics.get)
            now_ms = self.kafka.clock.now_ms
            if is_replaced:
                outcome = coordinator.heartbeat(None, SoftState(), request, self.topics.get, self.settings, now_ms)
                self.events.append("replaced classic")
                return outcome._replace(records=(group_record(CLASSIC_GROUP, "g", None), *outcome.records))
            classic = self.kafka.classic_group()
            assert classic is not None
            outcome = join_classic_group(classic, request, self.topics.get, self.settings, now_ms)
        except HeartbeatError as error:
            self.events.append(f"not upgraded {error.code.name}")
            return error.code
        self.upgraded_members = {each.member_id: each.session_timeout_ms for each in classic.members}
        self.events.append(f"upgraded {len(classic.members)}")
        return outcome

    def after_removal(self, outcome: Outcome) -> Outcome:
        if self.group is None:
            return outcome
        return with_downgrade("g", self.group, outcome, self.topic_name, self.settings, self.kafka.clock.now_ms)

    def topic_name(self, topic_id: str) -> str | None:
        return next((each.name for each in self.topics.values() if uuid_text(each.topic_id) == topic_id), None)

    def accept(self, outcome: Outcome, records: tuple[GroupRecord, ...], member_id: str) -> None:
        expected = self.expected_timers(outcome, member_id)
        self.compare(outcome, records, expected)

    def expected_timers(self, outcome: Outcome, member_id: str) -> list[tuple[str, int | None]]:
        """The timers of a heartbeat or of the end of a member, as an outcome's description says."""
        if outcome.downgrade is not None or outcome.answer.member_epoch == -2:
            return []
        if member_id not in outcome.group.members:
            return [
                (f"{timer}-g-{member_id}", None) for timer in ("session-timeout", "rebalance-timeout", "join", "sync")
            ]
        upgraded = [(f"session-timeout-g-{name}", timeout_ms) for name, timeout_ms in self.upgraded_members.items()]
        session = (f"session-timeout-g-{member_id}", SESSION_MS)
        return [*upgraded, *self.revocation_calls(outcome, member_id), session]

    def revocation_calls(self, outcome: Outcome, member_id: str) -> list[tuple[str, int | None]]:
        if outcome.revocation is not None:
            self.revocations[member_id] = outcome.revocation
            return [(f"rebalance-timeout-g-{member_id}", outcome.revocation[1])]
        return [(f"rebalance-timeout-g-{member_id}", None)] if outcome.ends_revocation else []

    def compare(
        self, outcome: Outcome, records: tuple[GroupRecord, ...], timers: Iterable[tuple[str, int | None]]
    ) -> None:
        """Compare records and timers, and go on with the group after them."""
        stored: tuple[GroupRecord, ...] = ()
        if outcome.downgrade is not None:
            compare_downgrade(outcome.downgrade, records[-1], self.kafka)
            self.events.append(f"downgraded, rebalances {outcome.downgrade.rebalances}")
            self.group, self.soft = None, SoftState()
            stored, records = records[-1:], records[:-1]
        else:
            assert sorted(self.consumer_timers(), key=str) == sorted(timers, key=str)
            self.group, self.soft = outcome.group, outcome.soft
        assert in_runs(outcome.records) == in_runs(records)
        self.log += [*outcome.records, *stored]

    def consumer_timers(self) -> list[tuple[str, int | None]]:
        """The calls for timers of consumer groups."""
        return [call for call in self.kafka.timers.calls if is_consumer_timer(call[0])]

    # Classic members

    def go_on(self, client: ClassicClient) -> None:
        """The next request of a client that follows the protocol."""
        if client.answers:
            return
        if client.must_join:
            self.join(client, join_request(client, self.dice, self.members, is_random=False))
        elif client.generation >= 0 and not client.is_synced:
            self.sync(client, call_of(client, self.dice))
        else:
            self.tell(client, call_of(client, self.dice))

    def is_consumer_group(self) -> bool:
        return self.group is not None and bool(self.group.members)

    def join(self, client: ClassicClient, request: Join) -> None:
        self.kafka.timers.calls.clear()
        version = 4 if request.needs_known_id else 1
        is_ours = self.is_consumer_group()
        group = self.group
        result, future = self.kafka.join(request, version)
        records = () if isinstance(result, int) else self.kafka.replay(result)
        client.answers.clear()
        if not is_ours:
            self.go_on_as_classic(group, records)
            client.answers.append(("join", future))
            return
        assert group is not None
        response = future.get() if future.isDone() else None
        if request.is_new_id and response is not None:
            request = request._replace(member_id=response.memberId())
        code = result if isinstance(result, int) else response.errorCode()
        outcome = self.ours(
            classic_members.join,
            *(group, self.soft, request, self.topics.get, self.topic_name, self.settings, self.kafka.clock.now_ms),
        )
        if isinstance(outcome, ErrorCode) or code:
            assert outcome == code, request
            if code == ErrorCode.MEMBER_ID_REQUIRED:
                client.member_id = request.member_id
            else:
                client.forget()
            return
        timers = [
            (f"join-g-{request.member_id}", None),
            (f"session-timeout-g-{request.member_id}", request.session_timeout_ms),
            (f"sync-g-{request.member_id}", request.rebalance_timeout_ms),
        ]
        self.compare(outcome, records, timers)
        assert outcome.answer == Answer(response.memberId(), response.generationId())
        assert (response.protocolName(), response.leader(), list(response.members())) == (
            request.protocols[0][0],
            "",
            [],
        )
        client.joined(response)
        self.events.append("joined")

    def go_on_as_classic(self, before: Any, records: tuple[GroupRecord, ...]) -> None:
        """After an operation on a classic group: the end of an empty consumer group is ours."""
        if before is not None and self.kafka.group() is None:
            # The join of an unknown member: Kafka forgets the empty group, and its records stay.
            assert records == ()
            self.group, self.soft = None, SoftState()
        elif before is not None and self.kafka.classic_group() is not None:
            tombstones = coordinator.group_tombstones("g", before)
            assert in_runs(tombstones) == in_runs(records[: len(tombstones)])
            self.group, self.soft = None, SoftState()
            self.events.append("replaced consumer")
        self.log += records

    def sync(self, client: ClassicClient, call: ClassicCall) -> None:
        self.kafka.timers.calls.clear()
        had_join_timer = f"join-g-{call.member_id}" in self.kafka.timers.operations
        version = self.dice.randint(0, 3)
        assignments = {
            name: self.dice.choice([write_assignment(version, [("t1", index), ("t3", 0)]), b""])
            for index, name in enumerate(client.leads)
        }
        result, future = self.kafka.sync(call, assignments)
        records = () if isinstance(result, int) else self.kafka.replay(result)
        if not self.is_consumer_group():
            self.log += records
            client.answers.append(("sync", future))
            return
        assert self.group is not None
        assert records == ()
        response = future.get() if future.isDone() else None
        code = result if isinstance(result, int) else response.errorCode()
        assignment = self.ours(classic_members.sync, self.group, call, self.topic_name)
        if isinstance(assignment, ErrorCode) or code:
            assert assignment == code, call
            timers: list[tuple[str, int | None]] = []
            if code == ErrorCode.REBALANCE_IN_PROGRESS:
                timers = [] if had_join_timer else [(f"join-g-{call.member_id}", self.rebalance_timeout_ms(call))]
            assert self.consumer_timers() == timers
            client.must_join = True
            return
        session_ms = classic_session_timeout_ms(self.group.members[call.member_id])
        assert self.consumer_timers() == [
            (f"sync-g-{call.member_id}", None),
            (f"session-timeout-g-{call.member_id}", session_ms),
        ]
        theirs = bytes(response.assignment())
        assert (read_assignment(assignment), read_version(assignment)) == (
            read_assignment(theirs),
            read_version(theirs),
        )
        client.got_assignment(theirs)
        self.events.append("synced")

    def rebalance_timeout_ms(self, call: ClassicCall) -> int:
        assert self.group is not None
        metadata = self.group.members[call.member_id].metadata
        assert metadata is not None
        return metadata.rebalance_timeout_ms

    def tell(self, client: ClassicClient, call: ClassicCall) -> None:
        """A Heartbeat."""
        self.kafka.timers.calls.clear()
        had_join_timer = f"join-g-{call.member_id}" in self.kafka.timers.operations
        result = self.kafka.classic_heartbeat(call)
        code = result if isinstance(result, int) else result.response().errorCode()
        if not isinstance(result, int):
            assert self.kafka.replay(result) == ()
        if self.group is not None:
            must_join = self.ours(classic_members.must_rejoin, self.group, call)
            if isinstance(must_join, ErrorCode):
                assert must_join == code, call
            else:
                assert code == (ErrorCode.REBALANCE_IN_PROGRESS if must_join else 0)
                session_ms = classic_session_timeout_ms(self.group.members[call.member_id])
                expected = [(f"session-timeout-g-{call.member_id}", session_ms)]
                if must_join and not had_join_timer:
                    expected.append((f"join-g-{call.member_id}", self.rebalance_timeout_ms(call)))
                assert self.consumer_timers() == expected
                self.events.append(f"rejoin {must_join}")
        if code == ErrorCode.REBALANCE_IN_PROGRESS:
            client.must_join = True
        elif code and call.member_id == client.member_id and call.generation == client.generation:
            client.forget()

    def leave(self, members: list[tuple[str, str | None]]) -> None:
        """A LeaveGroup, of members of both protocols."""
        self.kafka.timers.calls.clear()
        result = self.kafka.leave(members)
        records = () if isinstance(result, int) else self.kafka.replay(result)
        if self.group is None:
            self.log += records
            return
        assert not isinstance(result, int)
        codes, removed = [], []
        for member_id, instance_id in members:
            named = self.ours(classic_members.named_member, "g", self.group, member_id, instance_id)
            codes.append(named if isinstance(named, ErrorCode) else 0)
            if not isinstance(named, ErrorCode):
                removed.append(named)
        assert codes == [each.errorCode() for each in result.response().members()]
        removed = list(dict.fromkeys(removed))
        for name in removed:
            self.clients.pop(name, None)
        if not removed:
            assert records == ()
            return
        outcome = coordinator.fence_all("g", self.group, self.soft, removed, self.topics.get)
        outcome = self.after_removal(outcome)
        timers = [(f"{timer}-g-{name}", None) for timer in TIMERS for name in removed]
        if len(removed) > 1:  # in the order of a hash table
            assert len(records) == len(outcome.records) + (outcome.downgrade is not None)
            records = records if outcome.downgrade else tuple(sorted(records, key=outcome.records.index))
        self.compare(outcome, records, timers)

    def ours(self, operation: Callable[..., T], *arguments: Any) -> T | ErrorCode:
        """The result by our rules; an error's code."""
        try:
            return operation(*arguments)
        except HeartbeatError as error:
            self.codes.add(error.code)
            return error.code

    # Timers

    def fire(self, *, is_classic: bool) -> None:
        is_due = is_classic_timer if is_classic else is_consumer_timer
        keys = [key for key in self.kafka.timers.operations if is_due(key)]
        if not keys:
            return
        key = self.dice.choice(sorted(keys, key=self.without_random_ids))
        operation = self.kafka.timers.operations.pop(key)
        self.kafka.timers.calls.clear()
        records = self.kafka.replay(operation.generateRecords())
        if is_classic:
            self.log += records
            return
        timer, member_id = key.split("-g-", 1)
        outcome = None
        if timer == "rebalance-timeout":
            epoch = self.revocations[member_id][0]
            outcome = coordinator.expire_revocation("g", self.group, self.soft, member_id, epoch, self.topics.get)
        else:
            outcome = coordinator.expire_session("g", self.group, self.soft, member_id, self.topics.get)
        if outcome is None:
            assert records == ()
        else:
            self.upgraded_members = {}
            self.compare(outcome := self.after_removal(outcome), records, self.expected_timers(outcome, member_id))
            self.events.append(f"expired {timer}")

    def without_random_ids(self, key: str) -> str:
        """The key of a timer with names of clients instead of the ids that Kafka made."""
        for name, client in self.classic.items():
            key = key.replace(client.member_id or key, name)
        return key
