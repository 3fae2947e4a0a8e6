"""Damages that many share partitions or groups show, each with the causes that the audit has to infer."""

import random
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from state_model.metadata.schemas import REMOVE_TOPIC
from tests.audit.between_mutations import clusters
from tests.audit.cluster import Cluster, Damage, Entry
from tests.audit.copy_damages import other_groups
from tests.audit.histories import History
from tests.audit.life_damages import deleted_group
from tests.audit.state_topic_damages import count_changed, without_stretch
from tests.audit.world import World, of_group, written
from tests.logs.cluster_logs import GROUPS, OTHER_ID, metadata
from tests.logs.group_files import epoch, lists
from tests.logs.metadata_logs import topic, value_of
from tests.logs.state_logs import ORDERS_ID, STATE_TOPIC

OPERATIONS: Final = 200
COUNT: Final = 50


class CauseCase(NamedTuple):
    """Logs with a damage: `write` makes the log directory; `causes`: by rule the cause that its findings must have."""

    name: str
    write: Callable[[Path], Path]
    causes: Mapping[str, str | None]


def planted(damage: Damage, number: int) -> Callable[[Path], Path]:
    """One of the clusters with a damage."""

    def write(folder: Path) -> Path:
        damage(clusters()[number], random.Random(number)).write(folder / "logs")
        return folder / "logs"

    return write


def lost_stretch(folder: Path) -> Path:
    """The log of a state partition that lost a stretch in an unclean election."""
    history = History(1).run(OPERATIONS)
    entries = [Entry(entry.timestamp_ms, entry.key, entry.value) for entry in history.entries]
    lost = without_stretch(entries, random.Random(2))
    logs = Cluster(
        state={history.state_partition: tuple(lost)}, groups={}, topics={}, group_count=COUNT, state_count=COUNT
    )  # fmt: skip
    logs.write(folder / "logs")
    return folder / "logs"


def lost_groups() -> World:
    """Four groups whose log lost a stretch: their epochs go on behind it."""
    rises = [of_group(group, 11, epoch(number), at_s=60 * number) for number in (3, 4, 6, 7) for group in GROUPS]
    return World().with_groups(*rises)


def removal(topic_id: str) -> bytes:
    """The record of the metadata log that deletes a topic."""
    return value_of(REMOVE_TOPIC, {"topic_id": topic_id})


def topic_deleted(*again: bytes) -> World:
    """The topic is deleted, the groups no longer list it, and its state stays; `again`: what comes after it."""
    unlisted = [of_group(group, 15, lists([]), at_s=100) for group in GROUPS]
    return World().with_groups(*unlisted).with_metadata(removal(ORDERS_ID), *again, at_s=99)


def short_topic() -> World:
    """All groups have state beyond the end of their topic."""
    batches = [(5, 8, 2, 1)]
    return World().ending(
        *(written(group, at_s=599, batches=batches, delivery_complete_count=4) for group in GROUPS)
    ).with_topic(count=5)  # fmt: skip


def strange_state() -> World:
    """A metadata log of another cluster, which knows the state topic by another id."""
    return World().of_metadata(metadata(state_id=OTHER_ID)).without_state(GROUPS[2])


def state_created_again() -> World:
    """The state topic deleted and created again: of three groups it has state, the fourth lists what is gone."""
    return World().without_state(GROUPS[2]).of_metadata(metadata(again=[(STATE_TOPIC, OTHER_ID)]))


def of_world(make: Callable[[], World]) -> Callable[[Path], Path]:
    """The logs of a small cluster."""
    return lambda folder: make().write(folder)


CHANGED = "state_partition_count_changed"
CASES: Final = (
    CauseCase("the state topic gets more partitions", planted(count_changed, 3),
        {"life_begins_oddly": CHANGED, "state_without_group": CHANGED, CHANGED: None}),
    CauseCase("a state partition lost a stretch of records", lost_stretch,
        {"snapshot_epoch_skips": "records_lost", "update_of_other_snapshot": "records_lost"}),
    CauseCase("__consumer_offsets lost a stretch of records", of_world(lost_groups),
        {"group_epoch_skips": "records_lost"}),
    CauseCase("a group deleted, its state left", planted(deleted_group(is_created_again=False), 1),
        {"state_after_group_deletion": "group_deleted"}),
    CauseCase("a group created again, old state left", planted(deleted_group(is_created_again=True), 1),
        {"left_state_fences_group": "group_created_again", "state_without_group": "group_created_again"}),
    CauseCase("a topic deleted, its state left", of_world(topic_deleted), {"state_without_group": "topic_deleted"}),
    CauseCase("a topic created again, the state of the old one left",
        of_world(lambda: topic_deleted(topic("orders", OTHER_ID[:-2] + "Qg"))),
        {"state_without_group": "topic_created_again"}),
    CauseCase("user topic ends before the states of all groups", of_world(short_topic),
        {"batch_beyond_end": "topic_records_lost", "negative_lag": "topic_records_lost"}),
    CauseCase("the state topic created again", of_world(state_created_again),
        {"initialized_without_state": "state_topic_created_again", "state_topic_created_again": None}),
    CauseCase("a metadata log of another cluster", of_world(strange_state),
        {"initialized_without_state": "log_of_other_cluster", "log_of_other_cluster": None}),
    CauseCase("group records of another cluster", planted(other_groups, 1), {"no_common_group": None}),
)  # fmt: skip
HEAD: Final = """## Causes

Damages that many share partitions or groups show, and what the audit infers as the cause of their findings
(`cause_inferred`), over log directories and over a lake; every other finding of these logs has a cause, too.

| damage | findings | cause |
|---|---|---|"""


def section() -> str:
    """The part of the page of detection about causes."""
    rows = [
        f"| {case.name} | {', '.join(f'`{rule}`' for rule, cause in case.causes.items() if cause == of)} | {name} |"
        for case in CASES
        for of in dict.fromkeys(case.causes.values())
        for name in [f"`{of}`" if of else "is one itself"]
    ]
    return "\n".join([HEAD, *rows, ""])
