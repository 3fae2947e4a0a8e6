"""Warnings about missing evidence, with the remedy; an answer never fails because of them."""

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from sharelens.measures.topics.extents import TopicPartition
from sharelens.output.wording import counted, listed
from sharelens.tables.cover import StatePartitionCover
from sharelens.tables.missing import MissingEvidence
from sharelens.tables.missing_topics import missing_user_partitions
from sharelens.tables.port import Tables
from state_model.topics import OFFSETS_TOPIC, STATE_TOPIC

if TYPE_CHECKING:
    from sharelens.evidence.metadata_events import MetadataHistory

HOW_TOPICS = (
    "copy the TOPIC-N folders, with replication-offset-checkpoint and partition.metadata, beside those of "
    "__share_group_state (for a lake: give them to `sharelens run`)"
)
COPY_FOLDERS = "copy their folders too (of a cluster: --user-topics all)"
HOW_NAMES = (
    "copy the topics' folders (partition.metadata alone will do) or __consumer_offsets-N, or give --topic-names FILE "
    "(for a lake, to `sharelens run`)"
)


def unnamed_topics(rows: pa.Table) -> list[str]:
    """At most one line, about rows whose topic has an id and no name."""
    if not {"topic_id", "topic"} <= set(rows.column_names):
        return []
    return nameless(len(rows.filter(pc.is_null(rows.column("topic"))).column("topic_id").drop_null().unique()))


def nameless(count: int) -> list[str]:
    """At most one line, about so many topics whose names are not known."""
    if count == 0:
        return []
    return [f"the names of {count} topics are not in the evidence, their ids are shown: {HOW_NAMES}"]


def unknown_ends(lag: pa.Table) -> list[str]:
    """At most one line, about LAG rows without an end offset."""
    from sharelens.measures.lag import NO_END

    without = lag.filter(pc.fill_null(pc.equal(lag.column("unknown_reason"), NO_END), False))
    count = without.select(["topic_id", "partition"]).group_by(["topic_id", "partition"]).aggregate([]).num_rows
    if count == 0:
        return []
    line = (
        f"no end offset of {count} user partitions is known, so their lag is unknown: copy their TOPIC-N folders and "
        "replication-offset-checkpoint too, or give --end-offsets FILE (the output of kafka-get-offsets), or "
        "--user-topics samples (for an evidence folder all)"
    )
    return [line]


def without_group_records(unknown: str) -> str:
    """One line: a fact that only the group coordinator's log has is unknown."""
    return (
        f"{unknown}, no record of the group is in {OFFSETS_TOPIC}: copy the brokers' {OFFSETS_TOPIC}-N folders too, "
        "if they have more"
    )


def unseen_stalls(evidence: Tables, user_partitions: Collection[TopicPartition], consequence: str) -> list[str]:
    """As `unseen`, without the user partitions whose first incomplete records can be sampled."""
    return unseen(evidence, set(user_partitions) - evidence.samples.partitions, consequence)


def unseen(evidence: Tables, user_partitions: Collection[TopicPartition], consequence: str) -> list[str]:
    """At most one line: the number of user partitions that live share partitions need and the evidence lacks, and the
    consequence.
    """
    count = len(missing_user_partitions(evidence, user_partitions))
    line = f"the answer is incomplete, {count} user partitions are not in the evidence: {consequence}"
    return [line] if count else []


def without_state(missing: MissingEvidence, groups: Collection[str]) -> list[str]:
    """At most one line, about initialized share partitions of some groups (none: of all) without state here."""
    of_groups = {group: count for group, count in missing.by_group.items() if not groups or group in groups}
    if not of_groups:
        return []
    count = counted(sum(of_groups.values()), "initialized share partition")
    remedy = "sharelens status says why"
    if missing.absent:
        remedy = f"copy {_state_folders(missing)}, from other disks and brokers too"
    about = f"{count} of {listed(sorted(of_groups))} without state here"
    return [f"{about}: sums over share partitions are lower bounds; {remedy}"]


def _state_folders(missing: MissingEvidence) -> str:
    absent = missing.state_partitions
    if not absent.items:
        return f"more {STATE_TOPIC}-N folders"
    omitted = absent.count - len(absent.items)
    more_text = f" and {omitted} more" if omitted else " and others" if missing.has_others else ""
    return ", ".join(f"{STATE_TOPIC}-{number}" for number in absent.items) + more_text


def held_back(cover: Iterable[StatePartitionCover]) -> list[str]:
    """At most one line, about records of the state log at or above the high watermark: of a broker that died."""
    count = sum(part.held_back for part in cover)
    if count == 0:
        return []
    line = (
        f"{counted(count, 'offset')} of the state log at or above the high watermark {'is' if count == 1 else 'are'} "
        "held back: nothing says that they are committed. Of a broker that is dead, --include-uncommitted takes them "
        "(for a lake, with `sharelens run`); if another replica has led since, it may have other records there"
    )
    return [line]


def without_contents(contents: Collection[str]) -> list[str]:
    """At most one line: a cut of a lake that lists no contents of its tables, whose lost commits would go unnoticed."""
    if contents:
        return []
    line = (
        "an older version of sharelens published this cut without the files of its tables, so lost commits go "
        "unnoticed until a run publishes again"
    )
    return [line]


def lacking(topics: Collection[str]) -> list[str]:
    """One line for each kind of topic that the evidence lacks."""
    lines = []
    if STATE_TOPIC not in topics:
        lines.append(
            f"no partition of {STATE_TOPIC}: the state of share groups is unknown; copy those folders from every broker"
        )
    if OFFSETS_TOPIC not in topics:
        lines.append(
            f"no partition of {OFFSETS_TOPIC}: members and states of groups are unknown, and names of topics without a "
            "folder; copy those folders too"
        )
    if not any(not topic.startswith("__") for topic in topics):
        lines.append(
            "no folder of a user topic: lags, ages, gaps and silent stalls are unknown; copy the TOPIC-N folders too, "
            "or give `lag` --end-offsets FILE"
        )
    return lines


def damaged_metadata(history: "MetadataHistory") -> list[str]:
    """At most one line, about damage and gaps of the metadata log."""
    if not history.problems:
        return []
    counts = ", ".join(f"{reason} {count}" for reason, count in history.problems)
    return [f"the metadata log has damage or gaps ({counts}): values that it may concern are incomplete"]
