"""The changes that a metadata record makes to the cluster's metadata (metadata-log §4): keys with their new values.

A key names one thing: ("topic", id), ("partition", topic id, number), ("config", resource, name, key),
("feature", name), ("broker", id), ("controller", id), ("voters",). Its parent lists it, so that a removal finds it.
Neither epoch of a partition is in its change records: they are counted.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Protocol

from state_model.metadata import schemas
from state_model.metadata.records import MetadataRecord
from state_model.metadata.safe_settings import RESOURCE_NAMES
from state_model.schema import Value

Key = tuple[str | int, ...]
Content = Mapping[str, Value]
Change = tuple[Key, Content | None]
TOPIC, PARTITION, CONFIG, FEATURE, BROKER = "topic", "partition", "config", "feature", "broker"
CONTROLLER, VOTERS = "controller", "voters"
PARTITION_FIELDS = (
    "replicas",
    "isr",
    "removing_replicas",
    "adding_replicas",
    "leader",
    "leader_recovery_state",
    "leader_epoch",
    "partition_epoch",
    "eligible_leader_replicas",
    "last_known_elr",
)
_LISTS = (
    "isr",
    "replicas",
    "removing_replicas",
    "adding_replicas",
    "eligible_leader_replicas",
    "last_known_elr",
)
_KRAFT_VERSION = "kraft.version"
_WRAP = 1 << 31


class Current(Protocol):
    """The metadata before a record."""

    def value(self, key: Key) -> Content | None:
        """The value of a key; None: there is none."""
        ...

    def children(self, parent: Key) -> Iterable[Key]:
        """The keys below a parent."""
        ...


def parent_of(key: Key) -> Key:
    """Topics lie below their name, partitions below their topic, settings below their resource, others below a kind."""
    return key[:-1]


def changes(record: MetadataRecord, current: Current) -> list[Change]:
    """The changes of a record, in order; none for a type that this history does not cover."""
    rules = _CONTROL_RULES if record.is_control else _RULES
    rule = rules.get(record.record_type)
    return [] if rule is None or record.value is None else list(rule(record.value, current))


def _number(value: Value) -> int:
    return value if isinstance(value, int) else -1


def _next_epoch(value: Value) -> int:
    """The epoch after one: an integer of 32 bits, which wraps as Java's does."""
    return (_number(value) + 1 + _WRAP) % (2 * _WRAP) - _WRAP


def _topic(tree: Content, current: Current) -> Iterator[Change]:
    key = (TOPIC, str(tree["topic_id"]))
    yield key, {"name": tree["name"]}
    yield ("name", str(tree["name"]), key[1]), {}


def _remove_topic(tree: Content, current: Current) -> Iterator[Change]:
    topic_id = str(tree["topic_id"])
    topic = current.value((TOPIC, topic_id))
    for key in list(current.children((PARTITION, topic_id))):
        yield key, None
    if topic is not None:
        name = str(topic["name"])
        for key in list(current.children((CONFIG, "topic", name))):
            yield key, None
        yield ("name", name, topic_id), None
        yield (TOPIC, topic_id), None


def _partition(tree: Content, current: Current) -> Iterator[Change]:
    content = {name: tree.get(name) for name in PARTITION_FIELDS}
    for name in ("eligible_leader_replicas", "last_known_elr"):
        content[name] = content[name] or ()
    yield (PARTITION, str(tree["topic_id"]), _number(tree["partition_id"])), content


def _partition_change(tree: Content, current: Current) -> Iterator[Change]:
    key = (PARTITION, str(tree["topic_id"]), _number(tree["partition_id"]))
    before = current.value(key)
    if before is None:
        return
    content = {**before, "partition_epoch": _next_epoch(before["partition_epoch"])}
    content.update({name: tree[name] for name in _LISTS if tree.get(name) is not None})
    if tree["leader"] != schemas.UNCHANGED_LEADER:
        content["leader"] = tree["leader"]
        content["leader_epoch"] = _next_epoch(before["leader_epoch"])
    if tree["leader_recovery_state"] != schemas.UNCHANGED_RECOVERY:
        content["leader_recovery_state"] = tree["leader_recovery_state"]
    yield key, content


def _clear_elr(tree: Content, current: Current) -> Iterator[Change]:
    """Clears the eligible leader replicas of a topic by name, or of all topics."""
    if tree["topic_name"]:
        topics = [str(key[2]) for key in current.children(("name", str(tree["topic_name"])))]
    else:
        topics = [str(key[1]) for key in current.children((TOPIC,))]
    for topic_id in topics:
        for key in list(current.children((PARTITION, topic_id))):
            before = current.value(key)
            if before is not None and (before["eligible_leader_replicas"] or before["last_known_elr"]):
                epoch = _next_epoch(before["partition_epoch"])
                yield key, {**before, "eligible_leader_replicas": (), "last_known_elr": (), "partition_epoch": epoch}


def _config(tree: Content, current: Current) -> Iterator[Change]:
    resource_type = _number(tree["resource_type"])
    resource = RESOURCE_NAMES.get(resource_type, f"type {resource_type}")
    key = (CONFIG, resource, str(tree["resource_name"]), str(tree["name"]))
    is_removal = tree["value"] is None and tree["hidden"] is None
    yield key, None if is_removal else {"value": tree["value"], "hidden": tree["hidden"]}


def _feature(tree: Content, current: Current) -> Iterator[Change]:
    name, level = str(tree["name"]), _number(tree["feature_level"])
    if name != _KRAFT_VERSION:
        yield (FEATURE, name), {"level": level} if level or name == "metadata.version" else None


def _register_broker(tree: Content, current: Current) -> Iterator[Change]:
    yield (
        (BROKER, _number(tree["broker_id"])),
        {
            "broker_epoch": tree["broker_epoch"],
            "incarnation_id": tree["incarnation_id"],
            "rack": tree["rack"],
            "end_points": tree["end_points"],
            "fenced": tree["fenced"],
            "in_controlled_shutdown": tree.get("in_controlled_shutdown", False),
        },
    )


def _unregister_broker(tree: Content, current: Current) -> Iterator[Change]:
    yield (BROKER, _number(tree["broker_id"])), None


def _broker_change(tree: Content, current: Current) -> Iterator[Change]:
    key = (BROKER, _number(tree["broker_id"]))
    before = current.value(key)
    if before is None or before["broker_epoch"] != tree["broker_epoch"]:
        return
    content = dict(before)
    if tree["fenced"]:
        content["fenced"] = tree["fenced"] == 1
    if tree.get("in_controlled_shutdown"):
        content["in_controlled_shutdown"] = True
    yield key, content


def _fencing(fenced: bool) -> Callable[[Content, Current], Iterator[Change]]:
    def rule(tree: Content, current: Current) -> Iterator[Change]:
        return _broker_change({**tree, "fenced": 1 if fenced else -1}, current)

    return rule


def _controller(tree: Content, current: Current) -> Iterator[Change]:
    content = {"incarnation_id": tree["incarnation_id"], "end_points": tree["end_points"]}
    yield (CONTROLLER, _number(tree["controller_id"])), content


def _unregister_controller(tree: Content, current: Current) -> Iterator[Change]:
    yield (CONTROLLER, _number(tree["controller_id"])), None


def _kraft_version(tree: Content, current: Current) -> Iterator[Change]:
    yield (FEATURE, _KRAFT_VERSION), {"level": tree["k_raft_version"]}


def _voters(tree: Content, current: Current) -> Iterator[Change]:
    yield (VOTERS, "kraft"), {"ids": _voter_ids(tree["voters"])}


def _static_voters(tree: Content, current: Current) -> Iterator[Change]:
    yield (VOTERS, "static"), {"ids": _voter_ids(tree["voters"])}


def _voter_ids(voters: Value) -> tuple[Value, ...]:
    entries = voters if isinstance(voters, tuple) else ()
    return tuple(sorted(_number(voter["voter_id"]) for voter in entries if isinstance(voter, Mapping)))


_RULES: Mapping[int, Callable[[Content, Current], Iterator[Change]]] = {
    schemas.TOPIC: _topic,
    schemas.REMOVE_TOPIC: _remove_topic,
    schemas.PARTITION: _partition,
    schemas.PARTITION_CHANGE: _partition_change,
    schemas.CLEAR_ELR: _clear_elr,
    schemas.CONFIG: _config,
    schemas.FEATURE_LEVEL: _feature,
    schemas.REGISTER_BROKER: _register_broker,
    schemas.UNREGISTER_BROKER: _unregister_broker,
    schemas.BROKER_CHANGE: _broker_change,
    schemas.FENCE_BROKER: _fencing(True),
    schemas.UNFENCE_BROKER: _fencing(False),
    schemas.REGISTER_CONTROLLER: _controller,
    schemas.UNREGISTER_CONTROLLER: _unregister_controller,
}
_CONTROL_RULES: Mapping[int, Callable[[Content, Current], Iterator[Change]]] = {
    schemas.KRAFT_VERSION: _kraft_version,
    schemas.KRAFT_VOTERS: _voters,
    schemas.LEADER_CHANGE: _static_voters,
}
