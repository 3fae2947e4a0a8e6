"""Cases of the rules between logs: state log against configuration, user topics, metadata and the groups' records."""

from collections.abc import Sequence
from typing import Any, Final

from state_model.java import partition_for
from tests.audit.rule_cases.cases import Table
from tests.audit.world import GROUPS, World, created, lists, of_group, written
from tests.logs.cluster_logs import OTHER_ID, metadata, partition
from tests.logs.metadata_logs import topic
from tests.logs.state_logs import ORDERS_ID, STATE_TOPIC, STATE_TOPIC_ID

FOURTH = GROUPS[3]
FAR = 1_000_000
LIMIT = "share.coordinator.snapshot.update.records.per.snapshot="
EVERY_SECOND = "share.coordinator.cold.partition.snapshot.interval.ms=1000\n"
LOCKS = "group.share.partition.max.record.locks=100\n"
AVAILABLE, ACKNOWLEDGED, ARCHIVED = 0, 2, 4
PASSING_S = 100
ENDS_S = 600


def near_end(**fields: Any) -> World:
    """A last write of a share partition with other fields."""
    return World().ending(written(FOURTH, **fields))


def placed(count: int, *moved: int, groups: Sequence[str] = (), other_count: int = 0, extra_groups: int = 0) -> World:
    """Share partitions of many groups in the places of their hashes among so many state partitions.

    `moved`: those that lie one place further. `extra_groups`: so many more, placed among `other_count`.
    """
    world = World().of_metadata(None)
    world.state, world.groups = {}, {}
    names = [*groups, *(f"group-{number}" for number in range(40))]
    for number, name in enumerate(names):
        place = partition_for(name, ORDERS_ID, 0, count)
        world.with_state(created(name), number=1 + (place + (number in moved)) % max(count, 2))
    for number in range(extra_groups):
        name = f"other-{number}"
        world.with_state(created(name), number=1 + partition_for(name, ORDERS_ID, 0, other_count))
    world.state = {number - 1: records for number, records in world.state.items()}
    return world


PLACES: Final[Table[World]] = {
    "misplaced_share_partition": (
        {
            "one in the next state partition": lambda: placed(4, 7),
            "two": lambda: placed(4, 7, 9),
            "one of 50 state partitions": lambda: placed(50, 3),
        },
        {
            "none": lambda: placed(4),
            "names of four-byte letters": lambda: placed(4, groups=["😀", "🂡🂢", "é"]),
            "50 state partitions": lambda: placed(50),
        },
    ),
    "state_partition_count_changed": (
        {
            "4, then 7": lambda: placed(4, other_count=7, extra_groups=12),
            "4, then 50": lambda: placed(4, other_count=50, extra_groups=12),
            "50, then 4": lambda: placed(50, other_count=4, extra_groups=12),
        },
        {
            "4 all the time": lambda: placed(4, other_count=4, extra_groups=12),
            "50 all the time": lambda: placed(50, other_count=50, extra_groups=12),
            "7 all the time": lambda: placed(7, other_count=7, extra_groups=12),
        },
    ),
    "state_topic_created_again": (
        {
            "in the metadata": lambda: World().of_metadata(metadata(again=[(STATE_TOPIC, OTHER_ID)])),
            "in the metadata, before": lambda: World().of_metadata(
                [*metadata(state_id=OTHER_ID), *metadata()][:-1]),
            "in the folders": lambda: two_incarnations(OTHER_ID),
        },
        {
            "once": World,
            "another topic created again": lambda: World().of_metadata(metadata(again=[("mail", OTHER_ID)])),
            "folders of one incarnation": lambda: two_incarnations(STATE_TOPIC_ID),
        },
    ),
}  # fmt: skip


def two_incarnations(topic_id: str) -> World:
    """A second state partition of a state topic with this id; without metadata and groups."""
    world = World().of_metadata(None)
    world.groups = {}
    world.state[1] = [created("more", number) for number in range(2)]
    world.state_ids[1] = topic_id
    return world


def updated(*rows: object, text: str = "3", at_s: float = 0) -> World:
    """A new share partition: U an update, C a cold snapshot, I a reset, W a write snapshot; a minute apart."""
    world, snapshot_epoch, base_s = World().configured(f"{LIMIT}{text}\n{EVERY_SECOND}", at_s), 0, 60
    records = [created("mail", 1, at_s=base_s)]
    for number, kind in enumerate(rows, 1):
        now_s = base_s + 60 * number
        batch = {"batches": [(number, number, ACKNOWLEDGED, 1)], "delivery_complete_count": number}
        if kind == "U":
            update = {**written("mail", at_s=now_s, epoch=snapshot_epoch, **{**batch, "start": 0}), "partition": 1}
            records.append(update)
            continue
        snapshot_epoch += 1
        times = {"create_timestamp_ms": records[0]["timestamp_ms"]} if kind == "C" else {}
        records.append(created("mail", 1, at_s=now_s, epoch=snapshot_epoch, start=0, **times,
            **(snapshot_fields(records, batch) if kind in "CW" else {})))  # fmt: skip
    listing = of_group("mail", 15, lists([0, 1]), at_s=60)
    return world.with_state(*records).with_groups(listing).with_metadata(second())


def snapshot_fields(records: Sequence[dict[str, Any]], batch: dict[str, Any]) -> dict[str, Any]:
    """Batches and delivery complete count of a snapshot behind records."""
    batches: list[tuple[int, int, int, int]] = []
    for record in records:
        batches += [tuple(each.values()) for each in record["state_batches"]]  # type: ignore[misc]
    if not batches:
        return {}
    first, last = batches[0][0], batches[-1][1]
    return {"batches": [(first, last, ACKNOWLEDGED, 1)], "delivery_complete_count": last - first + 1}


def cold_at(later_ms: int, text: str = "", at_s: float = 0) -> World:
    """A cold snapshot so long behind the creation."""
    world = World()
    if text or at_s:
        world.configured(text or world.config, at_s)
    begin = created("mail")["write_timestamp_ms"]
    cold = {"write_timestamp_ms": begin + later_ms, "create_timestamp_ms": begin}
    ended = [record for record in world.state[0] if record["record_type"] != "update" or record["group_id"] != "mail"]
    world.state[0] = ended
    return world.ending(created("mail", at_s=ENDS_S, epoch=1, **cold))


CONFIGURED: Final[Table[World]] = {
    "more_updates_than_configured": (
        {
            "4 of 3": lambda: updated(*"UUUU"),
            "5 of 3": lambda: updated(*"UUUUU"),
            "4 of 3 behind a snapshot": lambda: updated(*"UUUCUUUU"),
        },
        {
            "3 of 3": lambda: updated(*"UUU"),
            "4 of 4": lambda: updated(*"UUUU", text="4"),
            "4 before the file was written": lambda: updated(*"UUUU", at_s=ENDS_S),
        },
    ),
    "update_over_limit": (
        {
            "the fourth, behind a cold snapshot": lambda: updated(*"UUCUU"),
            "the fourth, behind a reset": lambda: updated(*"UIUUU"),
            "the fourth": lambda: updated(*"UUUU"),
        },
        {
            "the third, behind a cold snapshot": lambda: updated(*"UUCU"),
            "the third, behind a reset": lambda: updated(*"UIUU"),
            "the fourth, behind a snapshot at the limit": lambda: updated(*"UUUWUUU"),
        },
    ),
    "cold_snapshot_too_early": (
        {
            "by 1 ms": lambda: cold_at(299_999),
            "by 4 minutes": lambda: cold_at(60_000),
            "by 1 ms of 1 s": lambda: cold_at(999, text=EVERY_SECOND),
        },
        {
            "at the interval": lambda: cold_at(300_000),
            "at an interval of 1 s": lambda: cold_at(
                1000, text=EVERY_SECOND),
            "before the file was written": lambda: cold_at(60_000, at_s=ENDS_S + 1),
        },
    ),
}  # fmt: skip


def passing(*writes: dict[str, Any], **changes: int) -> World:
    """Writes of a share partition that begins at 0, a second apart; the topic has ten records."""
    world = World().with_topic(**changes)
    world.state[0] = [row for row in world.state[0] if (row["record_type"], row["group_id"]) != ("update", FOURTH)]
    return world.with_state(*(written(FOURTH, at_s=PASSING_S + row, **fields) for row, fields in enumerate(writes)))


def undetermined(*writes: dict[str, Any]) -> World:
    """The same of one that begins where its leader says."""
    world = passing(*writes)
    creation = next(row for row in world.state[0] if row["group_id"] == FOURTH)
    creation |= {"start_offset": -1, "delivery_complete_count": -1}
    return world


def at_end(**changes: int) -> World:
    """A write that names the last offset of the topic, and another end of it."""
    return near_end(batches=[(9, 9, ACKNOWLEDGED, 1)], delivery_complete_count=1).with_topic(**changes)


def beyond(last: int, **changes: int) -> World:
    """A write whose last offset is this; the topic has ten."""
    return near_end(batches=[(9, last, ACKNOWLEDGED, 1)], delivery_complete_count=8).with_topic(**changes)


def window(last: int, *, text: str = LOCKS, span: int = 1) -> World:
    """A window up to this offset, of 100 record locks; the topic has 1000."""
    world = near_end(start=2, batches=[(2, last, ACKNOWLEDGED, 1)], delivery_complete_count=last - 1)
    return world.with_topic(count=1000, records_per_batch=span).configured(text)


def with_epoch(leader_epoch: int) -> World:
    """A record of a new leader."""
    return near_end(leader_epoch=leader_epoch)


TOPICS: Final[Table[World]] = {
    "leader_epoch_beyond_topic": (
        {str(number): lambda number=number: with_epoch(number) for number in (1, 5, 900)},
        {
            "the topic's": lambda: with_epoch(1).with_metadata(partition(ORDERS_ID, 1)),
            "the topic's, 59 s later": lambda: with_epoch(1).with_metadata(partition(ORDERS_ID, 1), at_s=ENDS_S + 59),
            "larger in the topic": lambda: with_epoch(1).with_metadata(partition(ORDERS_ID, 2)),
        },
    ),
    "start_offset_beyond_end": (
        {str(start): lambda start=start: near_end(start=start) for start in (11, 12, FAR)},
        {
            "at the end": lambda: near_end(start=10),
            "below the end": lambda: near_end(start=9),
            "a topic copied a minute earlier": lambda: near_end(start=11).with_topic(last_s=ENDS_S + 59),
        },
    ),
    "start_offset_passes_record": (
        {
            "offsets that were never settled": lambda: passing({"start": 2}),
            "an available offset": lambda: passing(
                {"start": 0, "batches": [(0, 0, ACKNOWLEDGED, 1), (1, 1, AVAILABLE, 1)], "delivery_complete_count": 1},
                {"start": 2}),
            "one of ten": lambda: passing(
                {"start": 0, "batches": [(0, 3, ACKNOWLEDGED, 1), (5, 9, ACKNOWLEDGED, 1)],
                    "delivery_complete_count": 9},
                {"start": 10}),
            "one above the log start": lambda: passing({"start": 2}, log_start=1),
        },
        {
            "acknowledged and archived ones": lambda: passing(
                {"start": 0, "batches": [(0, 0, ACKNOWLEDGED, 1), (1, 1, ARCHIVED, 1)], "delivery_complete_count": 2},
                {"start": 2}),
            "below the log start": lambda: passing({"start": 2}, log_start=2),
            "a topic known for a minute less": lambda: passing({"start": 2}, last_s=PASSING_S + 119),
            "by a reset": lambda: passing().with_state(created(FOURTH, at_s=PASSING_S, epoch=1, start=2)),
            "a start offset that was not determined": lambda: undetermined({"start": 2}),
        },
    ),
    "batch_beyond_end": (
        {str(last): lambda last=last: beyond(last) for last in (10, 11, FAR)},
        {
            "up to the end": lambda: beyond(9),
            "up to an end one further": lambda: beyond(10, count=11),
            "a topic copied a minute earlier": lambda: beyond(10, last_s=ENDS_S + 59),
        },
    ),
    "batch_beyond_cut_end": (
        {str(last): lambda last=last: beyond(last, leader_epoch=1) for last in (10, 11, FAR)},
        {
            "up to the end": lambda: beyond(9, leader_epoch=1),
            "up to an end one further": lambda: beyond(10, leader_epoch=1, count=11),
            "a topic copied a minute earlier": lambda: beyond(10, leader_epoch=1, last_s=ENDS_S + 59),
        },
    ),
    "window_over_locks": (
        {str(last - 1): lambda last=last: window(last) for last in (102, 103, 900)},
        {
            "100": lambda: window(101),
            "109, of log batches of 10": lambda: window(110, span=10),
            "101 of 2000": lambda: window(102, text="group.share.partition.max.record.locks=2000\n"),
        },
    ),
    "complete_count_beyond_end": (
        {str(count): lambda count=count: near_end(delivery_complete_count=count) for count in (9, 10, FAR)},
        {
            "all of the topic": lambda: near_end(delivery_complete_count=8),
            "all but one": lambda: near_end(delivery_complete_count=7),
            "a topic copied a minute earlier": lambda: near_end(delivery_complete_count=9).with_topic(
                last_s=ENDS_S + 59),
        },
    ),
    "negative_lag": (
        {
            "by 1": lambda: near_end(delivery_complete_count=9),
            "by 1, an election since": lambda: near_end(delivery_complete_count=9).with_topic(leader_epoch=1),
            "by 1, of the start offset": lambda: near_end(start=11),
        },
        {
            "0": lambda: near_end(delivery_complete_count=8),
            "0 at the end": lambda: near_end(start=10),
            "a topic copied a minute earlier": lambda: near_end(delivery_complete_count=9).with_topic(
                last_s=ENDS_S + 59),
        },
    ),
    "unknown_topic_partition": (
        {
            "no such partition": lambda: with_partition(1),
            "no such topic": lambda: with_partition(0, topic_id=OTHER_ID[:-2] + "Qg"),
            "no such partition for 2 minutes": lambda: with_partition(1).with_metadata(second(), at_s=121),
        },
        {
            "a partition": lambda: with_partition(1).with_metadata(second()),
            "a partition 59 s later": lambda: with_partition(1).with_metadata(second(), at_s=59),
            "no metadata": lambda: with_partition(1).of_metadata(None),
        },
    ),
    "log_of_other_cluster": (
        {
            "the state topic": lambda: World().of_metadata(metadata(state_id=OTHER_ID)),
            "__consumer_offsets": lambda: World().of_metadata(metadata(offsets_id=OTHER_ID)),
            "both": lambda: World().of_metadata(metadata(state_id=OTHER_ID, offsets_id=OTHER_ID[:-2] + "Qg")),
        },
        {
            "neither": World,
            "a topic with another name": lambda: World().with_metadata(topic("more", OTHER_ID[:-2] + "Qg")),
            "internal topics not in the metadata": lambda: World().of_metadata(
                [record for row, record in enumerate(metadata()) if row > 1]),
        },
    ),
}  # fmt: skip


def with_partition(number: int, topic_id: str = ORDERS_ID) -> World:
    """A share partition of another user partition, which its group lists."""
    listed = {"topic_id": topic_id, "topic_name": "orders", "partitions": (number,)}
    group_lists = lists([0])
    group_lists["initialized_topics"] = (*group_lists["initialized_topics"], listed)
    return World().with_state(created("mail", number, topic_id=topic_id)).with_groups(of_group("mail", 15, group_lists))


def second() -> bytes:
    """The metadata record of partition 1 of the user topic."""
    return partition(ORDERS_ID, number=1)
