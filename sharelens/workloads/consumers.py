"""The profile `consumer`: a classic group becomes a consumer group (KIP-848); members come, go, are killed and bounced.

The last one subscribes by a regular expression, which finds a second topic too.
"""

import re
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from kio.schema.errors import ErrorCode

from sharelens.kafka_formats.messages.api_keys import ApiKey
from sharelens.workloads.admin import Admin, WorkloadError
from sharelens.workloads.journal import Entry, Journal
from sharelens.workloads.load import Amount, Load
from sharelens.workloads.processes import MemberProcess
from sharelens.workloads.reader import ReaderOrders, command
from sharelens.workloads.run import LOOK_S, WorkloadOptions, in_background, produce, write_beginning, write_logs
from sharelens.workloads.wire import UnreachableError, ask

SETTLE_S: Final = 60.0
SHORTEST_MS: Final[Mapping[str, int]] = {"heartbeat.interval.ms": 500, "session.timeout.ms": 6_000}
SECOND_TOPIC_RECORDS: Final = 100
CLASSIC: Final = ("classic-1", "classic-2")
"""The members of the classic protocol, which the others replace."""
PLACES: Final = ("place-1", "place-2")
"""The static members."""
_REMOVED: Final = frozenset({ErrorCode.none, ErrorCode.unknown_member_id})
_At = tuple[str, int, int]


class ConsumerWorkload:
    """A run. Raises WorkloadError, UnreachableError, or KafkaException when the cluster fails."""

    def __init__(self, options: WorkloadOptions, journal: Journal) -> None:
        self._options, self._journal = options, journal
        self._admin = Admin(options.bootstrap)
        self._members: dict[str, MemberProcess] = {}
        self._topics = (options.topic, f"{options.topic}-more")
        self._settle_s = SETTLE_S
        self._unread: set[_At] = set()
        self._read: set[_At] = set()
        self._last_problem = "none"
        self._fatal_problem: str | None = None
        journal.listen(self._note)

    def _note(self, entry: Entry) -> None:
        match entry["event"]:
            case "produce" if entry["outcome"] == "acknowledged":
                self._unread |= {(entry["topic"], entry["partition"], entry["offset"])} - self._read
            case "read":
                places = {(entry["topic"], entry["partition"], offset) for offset in entry["offsets"]}
                self._read |= places
                self._unread -= places
            case "problem":
                self._last_problem = entry["error"]
                if "fatal" in entry:
                    self._fatal_problem = f"{entry['member']} can't go on: {entry['fatal']}"

    def run(self, is_over: Callable[[], bool] = lambda: False) -> None:
        """Set up, produce until `is_over` at most while members come and go, read all records."""
        options = self._options
        write_beginning(self._journal, options, topics=self._topics)
        self._set_up()
        loads = [
            Load(options.bootstrap, options.profile, name, options.seed, self._journal.write) for name in self._topics
        ]
        try:
            with in_background(partial(produce, loads[0], options.amount, is_over)) as produced:
                loads[1].run(Amount(records=SECOND_TOPIC_RECORDS), is_over)
                self._come_and_go()
                produced()
                self._drain()
                self._close("pattern-1")
                self._settle()
        finally:
            for member in self._members.values():
                member.kill()
        write_logs(self._journal, self._admin, self._topics)
        self._journal.write("end")

    def _set_up(self) -> None:
        for topic in self._topics:
            self._admin.create_topic(topic, self._options.profile.partitions)
        bounds = self._admin.broker_configs()
        configs = {
            f"consumer.{name}": max(shortest_ms, int(bounds.get(f"group.consumer.min.{name}", shortest_ms)))
            for name, shortest_ms in SHORTEST_MS.items()
        }
        self._settle_s += 2 * configs["consumer.session.timeout.ms"] / 1000
        self._admin.configure_group(self._options.group, {name: str(value) for name, value in configs.items()})

    # Members

    def _come_and_go(self) -> None:
        """Migrate, scale out, lose a member, fence one, scale in, bounce static members, subscribe by an expression."""
        for name in CLASSIC:
            self._start(name, protocol="classic")
        self._await(self._is_classic, f"a stable classic group with {', '.join(CLASSIC)}")
        self._start("member-1")
        self._settle(*CLASSIC, "member-1")
        for name in CLASSIC:
            self._close(name)
            self._settle(*self._members)
        for name in ("member-2", "member-3"):
            self._start(name)
            self._settle(*self._members)
        self._kill("member-3")
        self._settle("member-1", "member-2")
        self._pause("member-2")
        self._settle("member-1")
        self._resume("member-2")
        self._settle("member-1", "member-2")
        self._close("member-2")
        self._settle("member-1")
        for name in PLACES:
            self._start(name, instance_id=name)
        self._close("member-1")
        self._settle(*PLACES)
        for name in PLACES:
            self._close(name)
            self._start(name, instance_id=name)
            self._settle(*PLACES)
        self._start("pattern-1", subscription=f"^{re.escape(self._options.topic)}(-more)?$")
        self._settle(*PLACES, "pattern-1")
        for name in PLACES:
            self._close(name)
            self._remove(name)
        self._settle("pattern-1")

    def _start(
        self, name: str, subscription: str | None = None, instance_id: str | None = None, protocol: str = "consumer"
    ) -> None:
        orders = ReaderOrders(
            bootstrap=self._options.bootstrap,
            group=self._options.group,
            subscription=subscription or self._options.topic,
            member=name,
            instance_id=instance_id,
            protocol=protocol,
        )
        self._members[name] = MemberProcess(command(orders), self._journal.write)

    def _pause(self, name: str) -> None:
        """Stop a member until the group fences it; it has records that it has not read yet."""
        self._journal.write("paused", group=self._options.group, member=name)
        self._members[name].pause()

    def _resume(self, name: str) -> None:
        """Let a fenced member go on: what it reads until it knows that can't be committed."""
        self._members[name].resume()
        self._journal.write("resumed", group=self._options.group, member=name)

    def _kill(self, name: str) -> None:
        """Kill a member; it stays in the group until its session expires."""
        self._members.pop(name).kill()
        self._journal.write("killed", group=self._options.group, member=name)

    def _close(self, name: str) -> None:
        """A member leaves; a static one keeps its place for a while."""
        self._members.pop(name).close()

    def _remove(self, instance_id: str) -> None:
        """An administrator removes a static member; one that is unknown was removed by a request without an answer."""
        self._await(lambda: self._is_removed(instance_id), f"without {instance_id}")
        self._journal.write("removed", group=self._options.group, member=instance_id)

    def _is_removed(self, instance_id: str) -> bool:
        members = [{"member_id": "", "group_instance_id": instance_id, "reason": None}]
        answer = self._ask(ApiKey.LEAVE_GROUP, 5, {"group_id": self._options.group, "members": members})
        codes = [] if answer is None else [answer.error_code, *(member.error_code for member in answer.members)]
        return bool(codes) and all(code in _REMOVED for code in codes)

    def _is_classic(self) -> bool:
        """Whether the group is a classic one, and all its members have their assignment."""
        answer = self._ask(ApiKey.DESCRIBE_GROUPS, 5, {"groups": [self._options.group]})
        if answer is None:
            return False
        (described,) = answer.groups
        return (described.group_state, len(described.members)) == ("Stable", len(CLASSIC))

    def _settle(self, *names: str) -> None:
        """Wait until the group has exactly these members and each of them has its target."""
        described = self._await(lambda: self._settled(names), f"settled with {', '.join(names) or 'no members'}")
        self._journal.write(
            "settled",
            group=self._options.group,
            clock_ms=int(time.time() * 1000),
            group_epoch=described.group_epoch,
            members={member.client_id: _counts(member.assignment) for member in described.members},
        )

    def _settled(self, names: tuple[str, ...]) -> Any:
        """The group's description if it is as expected, else None."""
        body = {"group_ids": [self._options.group], "include_authorized_operations": False}
        answer = self._ask(ApiKey.CONSUMER_GROUP_DESCRIBE, 0, body)
        if answer is None:
            return None
        (described,) = answer.groups
        is_settled = (
            described.group_state == ("Stable" if names else "Empty")
            and sorted(member.client_id for member in described.members) == sorted(names)
            and all(
                (member.member_epoch, _counts(member.assignment))
                == (described.group_epoch, _counts(member.target_assignment))
                for member in described.members
            )
        )
        return described if is_settled else None

    def _drain(self) -> None:
        """Wait until all produced records are read."""
        self._await(lambda: not self._unread, "through with all records")

    def _ask(self, api_key: ApiKey, version: int, body: Mapping[str, object]) -> Any:
        """The answer to a request; None without one, as while the broker starts."""
        try:
            return ask(self._options.bootstrap, api_key, version, body)
        except UnreachableError as error:
            self._last_problem = str(error)
            return None

    def _await(self, condition: Callable[[], Any], state: str) -> Any:
        """What the condition returns when that is true. Raises WorkloadError when it isn't in time."""
        deadline_s = time.monotonic() + self._settle_s
        while not (value := condition()):
            if self._fatal_problem is not None:
                raise WorkloadError(f"{self._options.bootstrap}: {self._fatal_problem}")
            if time.monotonic() > deadline_s:
                raise WorkloadError(
                    f"{self._options.bootstrap}: group {self._options.group} is not {state} after "
                    f"{self._settle_s:g} s; the last problem: {self._last_problem}"
                )
            time.sleep(LOOK_S)
        return value


def _counts(assignment: Any) -> dict[str, int]:
    """The number of partitions of each topic."""
    return {each.topic_name: len(each.partitions) for each in assignment.topic_partitions}
