"""Worlds of random operations on share groups, all legal, and damages of one log or two of them.

Operations write what the coordinators write, in their order; damages change records and know no rule.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from hypothesis import strategies as st

from sharelens.broker.coordinators.assignor import assign
from tests.audit.world import World, ms
from tests.logs.cluster_logs import partition
from tests.logs.group_files import GroupEntry, epoch, lists
from tests.logs.metadata_logs import topic
from tests.logs.state_logs import ORDERS_ID, snapshot, tombstone, update

GROUPS: Final = ("orders", "payments", "mail", "search")
PARTITIONS: Final = 2
TOPIC_COUNT: Final = 1000
MEMBER, EPOCH, ASSIGNMENT_EPOCH, TARGET, ASSIGNMENT, LISTS = range(10, 16)
ROUND_TRIP_S: Final = 1
Row = dict[str, Any]


@dataclass
class _Group:
    """What the group coordinator knows of a group."""

    epoch: int = 0
    initialized: set[int] = field(default_factory=set)
    members: dict[str, set[tuple[str, int]]] = field(default_factory=dict)


@dataclass
class _State:
    """What the share coordinator and the leader know of a share partition."""

    state_epoch: int
    snapshot_epoch: int = 0
    leader_epoch: int = 0
    start: int = -1
    next_offset: int = 0


class Cluster:
    """Runs operations and keeps what the coordinators append."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.state: list[Row] = []
        self.groups: list[GroupEntry] = []
        self._groups: dict[str, _Group] = {}
        self._states: dict[tuple[str, int], _State] = {}

    def world(self) -> World:
        """The logs, each with a record of another group two minutes behind the last one; all four are known."""
        end_s = self.now_s + 121
        world = World()
        late = snapshot("late", **self._times(end_s), state_epoch=1, start=-1, delivery_complete_count=-1)
        world.state = {0: [*self.state, late]}
        end = GroupEntry(ms(end_s), EPOCH, epoch(1), "late")
        world.groups = {0: [*self.groups, end]}
        world.with_topic(count=TOPIC_COUNT, last_s=end_s + 60, leader_epoch=9, records_per_batch=1000)
        partitions = [(ms(0), partition(ORDERS_ID, 9, number)) for number in range(PARTITIONS)]
        world.metadata = [(ms(0), topic("orders", ORDERS_ID)), *partitions, (ms(end_s + 61), topic("new", OTHER))]
        return world

    def run(self, operation: str, group: str, number: int, wait_s: int) -> None:
        """One operation, and a pause."""
        getattr(self, f"_{operation}")(group, number)
        self.now_s += wait_s

    def _join(self, group: str, number: int) -> None:
        group_state = self._groups.setdefault(group, _Group())
        member = f"m{number}"
        if member in group_state.members:
            return
        group_state.members[member] = set()
        value = {
            "rack_id": None, "client_id": "c", "client_host": "/h", "subscribed_topic_names": ("orders",),
        }  # fmt: skip
        self._entry(group, MEMBER, value, member)
        self._rebalance(group, group_state, member)

    def _rebalance(self, group: str, group_state: _Group, *joined: str) -> None:
        """A new group epoch, and the targets that the assignor computes."""
        group_state.epoch += 1
        self._entry(group, EPOCH, epoch(group_state.epoch))
        targets = assign(
            {member: ["T"] for member in group_state.members},
            {"T": sorted(group_state.initialized)},
            group_state.members,
        )
        for member, target in targets.items():
            if target != group_state.members[member] or member in joined:
                group_state.members[member] = target
                self._entry(group, TARGET, {"topic_partitions": _topics(target)}, member)
        self._entry(group, ASSIGNMENT_EPOCH, {"assignment_epoch": group_state.epoch, "assignment_timestamp": 0})
        for member, target in group_state.members.items():
            value = {
                "member_epoch": group_state.epoch, "previous_member_epoch": group_state.epoch - 1, "state": 0,
                "assigned_partitions": _topics(target),
            }  # fmt: skip
            self._entry(group, ASSIGNMENT, value, member)

    def _leave(self, group: str, number: int) -> None:
        group_state, member = self._groups.get(group), f"m{number}"
        if group_state is None or member not in group_state.members:
            return
        del group_state.members[member]
        for kind in (ASSIGNMENT, TARGET, MEMBER):
            self._entry(group, kind, None, member)
        group_state.epoch += 1
        self._entry(group, EPOCH, epoch(group_state.epoch))

    def _create(self, group: str, number: int) -> None:
        """A partition is initialized, and goes to the members."""
        if group not in self._groups:
            self._join(group, 0)
        group_state = self._groups[group]
        if number in group_state.initialized:
            return
        self._lists(group, initializing=[number])
        self._initialize(group, number, -1)
        group_state.initialized.add(number)
        self._lists(group)
        if group_state.members:
            self._rebalance(group, group_state)

    def _initialize(self, group: str, number: int, start: int) -> None:
        self.now_s += ROUND_TRIP_S
        before = self._states.get((group, number))
        state = _State(self._groups[group].epoch, 0 if before is None else before.snapshot_epoch + 1, start=start)
        self._states[group, number] = state
        count = -1 if start == -1 else 0
        self.state.append(snapshot(
            group, number, epoch=state.snapshot_epoch, start=start, state_epoch=state.state_epoch,
            delivery_complete_count=count, **self._times(self.now_s)))  # fmt: skip
        self.now_s += ROUND_TRIP_S

    def _write(self, group: str, number: int) -> None:
        """The leader acknowledges ten records; a new one reads the state first."""
        state = self._states.get((group, number))
        if state is None:
            return
        if state.leader_epoch == 0:
            state.leader_epoch = 9
            count = -1 if state.start == -1 else 0
            self._update(group, number, state, delivery_complete_count=count)
        state.start = state.next_offset = max(state.next_offset, state.start, 0)
        if state.start + 10 <= TOPIC_COUNT:
            batch = (state.start, state.start + 9, 2, 1)
            state.next_offset = state.start + 10
            self._update(group, number, state, delivery_complete_count=10, batches=[batch])

    def _update(self, group: str, number: int, state: _State, **fields: Any) -> None:
        self.state.append(update(
            group, number, start=state.start, epoch=state.snapshot_epoch, leader_epoch=state.leader_epoch,
            at_ms=ms(self.now_s), **fields))  # fmt: skip

    def _reset(self, group: str, number: int) -> None:
        """AlterShareGroupOffsets: the group has no members, and the state epoch stays that of the group."""
        group_state = self._groups.get(group)
        if group_state is None or number not in group_state.initialized:
            return
        self._leave_all(group, group_state)
        self._lists(group, initializing=[number])
        self._initialize(group, number, 5)
        self._lists(group)

    def _leave_all(self, group: str, group_state: _Group) -> None:
        for member in list(group_state.members):
            self._leave(group, int(member[1:]))

    def _delete(self, group: str, number: int) -> None:
        """DeleteGroups."""
        group_state = self._groups.get(group)
        if group_state is None:
            return
        self._leave_all(group, group_state)
        deleting = {**lists(), "deleting_topics": ({"topic_id": ORDERS_ID, "topic_name": "orders"},)}
        self._entry(group, LISTS, deleting)
        self.now_s += ROUND_TRIP_S
        for place in sorted(group_state.initialized):
            self.state.append(tombstone(group, place, at_ms=ms(self.now_s)))
            del self._states[group, place]
        self.now_s += ROUND_TRIP_S
        for kind in (ASSIGNMENT_EPOCH, LISTS, EPOCH):
            self._entry(group, kind, None)
        del self._groups[group]

    def _lists(self, group: str, initializing: Sequence[int] = ()) -> None:
        self._entry(group, LISTS, lists(sorted(self._groups[group].initialized), initializing))

    def _entry(self, group: str, kind: int, value: Mapping[str, Any] | None, member: str | None = None) -> None:
        self.groups.append(GroupEntry(ms(self.now_s), kind, value, group, member))

    @staticmethod
    def _times(at_s: float) -> Row:
        return {name: ms(at_s) for name in ("at_ms", "create_timestamp_ms", "write_timestamp_ms")}


OTHER: Final = "AAAAAAAAAAAAAAAAAAAAZQ"


def _topics(target: set[tuple[str, int]]) -> tuple[Row, ...]:
    numbers = tuple(sorted(number for _, number in target))
    return ({"topic_id": ORDERS_ID, "partitions": numbers},) if numbers else ()


OPERATIONS: Final = st.lists(
    st.tuples(
        st.sampled_from(["create", "create", "write", "write", "join", "leave", "reset", "delete"]),
        st.sampled_from(GROUPS),
        st.integers(0, PARTITIONS - 1),
        st.sampled_from([0, 1, 59, 61, 130]),
    ),
    min_size=3,
    max_size=14,
)


def legal_world(operations: Sequence[tuple[str, str, int, int]]) -> World:
    """The logs of operations, behind the creation of a share partition of each group."""
    cluster = Cluster()
    for number, group in enumerate(GROUPS):
        cluster.run("create", group, number % PARTITIONS, 0)
    for operation in operations:
        cluster.run(*operation)
    return cluster.world()


Damage = Callable[[World, int, int], World]
"""Changes a world; the numbers choose the record and the size of the change."""


def _row(log: Sequence[Any], choice: int) -> int:
    """A record, not the last one, which says until when the log goes."""
    return choice % max(1, len(log) - 1)


def _without(log: list[Any], choice: int) -> list[Any]:
    row = _row(log, choice)
    return [*log[:row], *log[row + 1 :]] or log


def _state_without(world: World, choice: int, size: int) -> World:
    world.state[0] = _without(world.state[0], choice)
    return world


def _state_without_key(world: World, choice: int, size: int) -> World:
    chosen = world.state[0][_row(world.state[0], choice)]
    place = (chosen["group_id"], chosen["partition"])
    world.state[0] = [row for row in world.state[0] if (row["group_id"], row["partition"]) != place] or [chosen]
    return world


def _state_field(name: str) -> Damage:
    def damage(world: World, choice: int, size: int) -> World:
        rows = [row for row in world.state[0][:-1] if name in row]
        if rows:
            chosen = rows[choice % len(rows)]
            chosen[name] = max(-1 if name == "start_offset" else 0, chosen[name] + size)
        return world

    return damage


def _last_offset(world: World, choice: int, size: int) -> World:
    rows = [row for row in world.state[0] if row.get("state_batches")]
    if rows:
        batch = rows[choice % len(rows)]["state_batches"][-1]
        batch["last_offset"] = max(batch["first_offset"], batch["last_offset"] + size)
    return world


def _state_deleted(world: World, choice: int, size: int) -> World:
    row = _row(world.state[0], choice)
    chosen = world.state[0][row]
    ended = tombstone(chosen["group_id"], chosen["partition"], at_ms=chosen["timestamp_ms"])
    world.state[0].insert(row + 1, ended)
    return world


def _state_tail(world: World, choice: int, size: int) -> World:
    world.state[0] = world.state[0][: 1 + _row(world.state[0], choice)]
    return world


def _groups_without(world: World, choice: int, size: int) -> World:
    world.groups[0] = _without(world.groups[0], choice)
    return world


def _groups_twice(world: World, choice: int, size: int) -> World:
    row = _row(world.groups[0], choice)
    world.groups[0].insert(row, world.groups[0][row])
    return world


def _groups_exchanged(world: World, choice: int, size: int) -> World:
    row = _row(world.groups[0], choice)
    if len(world.groups[0]) < 2:
        return world
    first, second = world.groups[0][row : row + 2]
    world.groups[0][row : row + 2] = [
        second._replace(time_ms=first.time_ms), first._replace(time_ms=second.time_ms)]  # fmt: skip
    return world


def _groups_tail(world: World, choice: int, size: int) -> World:
    world.groups[0] = world.groups[0][: 1 + _row(world.groups[0], choice)]
    return world


def _number(world: World, choice: int, size: int) -> World:
    """An epoch or a member's state."""
    names = ("epoch", "assignment_epoch", "member_epoch", "state")
    places = [
        (row, name)
        for row, entry in enumerate(world.groups[0][:-1])
        for name in names
        if entry.value is not None and name in entry.value
    ]
    if not places:
        return world
    row, name = places[choice % len(places)]
    entry = world.groups[0][row]
    number = min(127, max(0, (entry.value or {})[name] + size))
    world.groups[0][row] = entry._replace(value={**(entry.value or {}), name: number})
    return world


def _emptied(world: World, choice: int, size: int) -> World:
    """A list of partitions or a target without any, or with another."""
    rows = [row for row, entry in enumerate(world.groups[0]) if entry.record_type in (LISTS, TARGET) and entry.value]
    if rows:
        row = rows[choice % len(rows)]
        entry = world.groups[0][row]
        other = lists([]) if entry.record_type == LISTS else {"topic_partitions": _topics({("T", abs(size) % 3)})}
        world.groups[0][row] = entry._replace(value=other)
    return world


def _renamed(world: World, choice: int, size: int) -> World:
    """The group coordinator's log of another cluster."""
    world.groups[0] = [entry._replace(group_id=f"other-{entry.group_id}") for entry in world.groups[0]]
    return world


def _topic_end(world: World, choice: int, size: int) -> World:
    world.topic["count"] = max(1, 10 * (choice % 5) + size)
    return world


def _topic_cut(world: World, choice: int, size: int) -> World:
    world.topic["leader_epoch"] += 1
    return _topic_end(world, choice, size)


def _topic_earlier(world: World, choice: int, size: int) -> World:
    world.topic["last_s"] -= 60 * (choice % 8)
    return world


def _topic_start(world: World, choice: int, size: int) -> World:
    world.topic["log_start"] = 5 * (choice % 5)
    return world


def _metadata_without(world: World, choice: int, size: int) -> World:
    """A partition, or all of the topic, missing or later in the metadata."""
    assert world.metadata is not None
    row = 1 + choice % PARTITIONS
    if len(world.metadata) < PARTITIONS + 2:
        return world
    value = world.metadata.pop(row)[1]
    if size > 0:
        at_ms = min(ms(10 * size), world.metadata[-1][0])
        world.metadata.insert(-1, (at_ms, value))
    return world


DAMAGES: Final[Mapping[str, Damage]] = {
    "record of the state log lost": _state_without,
    "share partition lost": _state_without_key,
    "state epoch": _state_field("state_epoch"),
    "leader epoch": _state_field("leader_epoch"),
    "start offset": _state_field("start_offset"),
    "delivery complete count": _state_field("delivery_complete_count"),
    "last offset": _last_offset,
    "share partition deleted": _state_deleted,
    "tail of the state log lost": _state_tail,
    "record of a group lost": _groups_without,
    "record of a group twice": _groups_twice,
    "records of groups exchanged": _groups_exchanged,
    "tail of the groups' log lost": _groups_tail,
    "number of a group": _number,
    "list of partitions": _emptied,
    "groups of another cluster": _renamed,
    "end of the topic": _topic_end,
    "end of the topic after an election": _topic_cut,
    "topic copied earlier": _topic_earlier,
    "log start of the topic": _topic_start,
    "partition not in the metadata": _metadata_without,
}
DAMAGED: Final = st.lists(
    st.tuples(st.sampled_from(sorted(DAMAGES)), st.integers(0, 200), st.sampled_from([-30, -3, -1, 1, 2, 7, 5000])),
    min_size=1,
    max_size=3,
)


def damaged_world(operations: Sequence[tuple[str, str, int, int]], damages: Sequence[tuple[str, int, int]]) -> World:
    """A legal world with some damages."""
    world = legal_world(operations)
    for name, choice, size in damages:
        world = DAMAGES[name](world, choice, size)
    return world
