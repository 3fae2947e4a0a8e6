"""Consumers of the classic protocol: what they subscribe to, and what they know of their group."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from state_model.consumer.classic_group import Protocols
from state_model.consumer.classic_members import ClassicCall, Join
from state_model.consumer.heartbeat import ErrorCode
from state_model.consumer_protocol import NamedPartitions, read_assignment, read_subscription, read_version
from tests.consumer_subscriptions import subscription_bytes


@dataclass(slots=True)
class ClassicClient:
    """A consumer. `member_id` is empty and `generation` -1 while it has no place in the group."""

    instance_id: str | None = None
    member_id: str = ""
    generation: int = -1
    protocols: Protocols = ()
    owned: NamedPartitions = frozenset()
    leads: tuple[str, ...] = ()
    """The members for which it makes the assignment."""
    protocol_name: str | None = None
    must_join: bool = True
    is_synced: bool = False
    answers: list[tuple[str, Any]] = field(default_factory=list)
    """Answers that it waits for: of what request, and the Java future."""

    def forget(self) -> None:
        """Lose its place in the group."""
        self.member_id, self.generation, self.owned, self.leads, self.must_join = "", -1, frozenset(), (), True

    def joined(self, response: Any) -> None:
        """The answer to a JoinGroup."""
        self.member_id, self.generation = response.memberId(), response.generationId()
        self.protocol_name = response.protocolName()
        self.leads = tuple(each.memberId() for each in response.members())
        self.must_join = self.is_synced = False

    def collect_answers(self) -> None:
        """Read the answers of a classic group that came since."""
        done = [(request, future.get()) for request, future in self.answers if future.isDone()]
        self.answers = [each for each in self.answers if not each[1].isDone()]
        for request, response in done:
            code = response.errorCode()
            if request == "join":
                self.joined(response)
            elif code == 0:
                self.got_assignment(bytes(response.assignment()))
            if code in (ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.MEMBER_ID_REQUIRED):
                self.must_join = True
            elif code:
                self.forget()

    def got_assignment(self, assignment: bytes) -> None:
        """The answer to a SyncGroup."""
        self.owned = read_assignment(assignment).partitions if assignment else frozenset()
        self.is_synced = True


def join_request(client: ClassicClient, dice: random.Random, strangers: Sequence[str], *, is_random: bool) -> Join:
    """The next JoinGroup of a client, with the partitions that it has; a random one changes what it subscribes to."""
    if is_random or not client.protocols:
        names = dice.choice([("range",), ("range", "roundrobin"), ("roundrobin", "range"), ("range", "sticky")])
        topics = dice.choice([("t1",), ("t1", "t2", "t3"), ()])
        subscription = subscription_bytes(dice.randint(0, 3), topics, client.owned, dice.choice([None, "r", ""]))
    else:
        names = tuple(name for name, _ in client.protocols)
        last = client.protocols[0][1]
        subscription = subscription_bytes(read_version(last), read_subscription(last).topics, client.owned)
    client.protocols = tuple((name, subscription) for name in names)
    request = Join(
        "g", client.member_id or "new", dice.choice([6_000, 10_000]), 60_000, "consumer", client.protocols,
        "c", "/127.0.0.1", client.instance_id, is_new_id=not client.member_id,
        needs_known_id=dice.choice([True, False]),
    )  # fmt: skip
    if not is_random or dice.random() > 0.3:
        return request
    return request._replace(**dice.choice([
        {"member_id": dice.choice(["nobody", *strangers]), "is_new_id": False}, {"protocol_type": "connect"},
        {"protocols": (("other", subscription),)}, {"protocols": ()},
        {"protocols": tuple((name, b"\0") for name in names)},
    ]))  # fmt: skip


def call_of(client: ClassicClient, dice: random.Random) -> ClassicCall:
    """What a client says of itself in a SyncGroup or a Heartbeat."""
    protocol_type, name = dice.choice([(None, None), ("consumer", client.protocol_name)])
    return ClassicCall("g", client.member_id, client.generation, client.instance_id, protocol_type, name)


def random_call(client: ClassicClient, dice: random.Random, strangers: Sequence[str]) -> ClassicCall:
    """The same, perhaps with a mistake."""
    return call_of(client, dice)._replace(**dice.choice([
        {}, {"member_id": "nobody"}, {"generation": 77}, {"instance_id": "i"}, {"instance_id": "x"},
        {"protocol_type": "connect"}, {"protocol_name": "other"}, {"member_id": dice.choice(strangers)},
    ]))  # fmt: skip
