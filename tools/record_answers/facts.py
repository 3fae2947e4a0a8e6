"""What the questions about a log name: groups, share partitions, offsets, moments; read with the command line."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tools.record_answers.calling import call
from tools.record_answers.logs import TimeRange

GROUPS, PARTITIONS, TOPICS = 2, 2, 1
"""Largest number of groups, share partitions and topics that are chosen by their order."""
NO_KEY = "no-such-key"


@dataclass(frozen=True, slots=True, kw_only=True)
class SharePartition:
    """A share partition and record offsets to trace; `topic` is the name, or the id where there is no name."""

    group: str
    topic: str
    partition: int
    offsets: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StateSpan:
    """A state partition with the first and the last third of its log offsets cut off."""

    state_partition: int
    from_offset: int
    to_offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """The parameters of the questions about one log. `keys`: a record's key by topic; `at_offset`: a past cut."""

    times: TimeRange
    groups: tuple[str, ...]
    share_partitions: tuple[SharePartition, ...]
    keys: tuple[tuple[str, str], ...]
    at_offset: str | None
    state_span: StateSpan | None
    settings: Path


def read_facts(logs: Path, data_set: Path, times: TimeRange, settings: Path) -> Facts:
    """The parameters for one log directory: sorted, the first ones, and the ones with the most deliveries."""
    source = ("--log-dir", str(logs))
    states = sorted(_rows("state", *source), key=_key)
    status = _document("status", *source)
    state_partitions = status.get("state_partitions", []) if isinstance(status, dict) else []
    busiest = max(states, key=_most_deliveries, default=None)
    share_partitions = [*states[:PARTITIONS], *([] if busiest is None else [busiest])]
    groups = sorted({str(row["group_id"]) for row in _rows("groups", *source)} | {row["group_id"] for row in states})
    chosen_groups = [*groups[:GROUPS], *([] if busiest is None else [busiest["group_id"]])]
    topics = dict.fromkeys(_topic(row) for row in states)
    return Facts(
        times=times,
        groups=tuple(dict.fromkeys(chosen_groups)),
        share_partitions=tuple(dict.fromkeys(_share_partition(row) for row in share_partitions)),
        keys=tuple((topic, _first_key(data_set, topic)) for topic in [*topics][:TOPICS]),
        at_offset=_at_offset(state_partitions),
        state_span=_state_span(state_partitions),
        settings=settings,
    )


def _document(*words: str) -> Any:
    """The JSON document of an answer; an empty list where the command fails."""
    printed = call([*words, "--output", "json"])
    return json.loads(printed.stdout) if printed.exit_code == "0" else []


def _rows(*words: str) -> list[dict[str, Any]]:
    document = _document(*words)
    return document if isinstance(document, list) else []


def _key(row: dict[str, Any]) -> tuple[str, str, int]:
    return row["group_id"], row["topic_id"], row["partition"]


def _topic(row: dict[str, Any]) -> str:
    return str(row.get("topic") or row["topic_id"])


def _most_deliveries(row: dict[str, Any]) -> int:
    return max((batch["delivery_count"] for batch in row["state_batches"] or ()), default=0)


def _share_partition(row: dict[str, Any]) -> SharePartition:
    """Offsets: the record before the start offset, and the first of the range that was delivered most."""
    start = max(0, int(row["start_offset"] or 0))
    busiest = max(row["state_batches"] or (), key=lambda batch: batch["delivery_count"], default=None)
    offsets = [max(0, start - 1), *([] if busiest is None else [busiest["first_offset"]])]
    return SharePartition(
        group=row["group_id"],
        topic=_topic(row),
        partition=row["partition"],
        offsets=tuple(dict.fromkeys(offsets)),
    )


def _first_key(data_set: Path, topic: str) -> str:
    """The key of the first record of a topic that has one."""
    path = data_set / "topics.jsonl"
    if path.is_file():
        with path.open(encoding="utf-8") as file:
            for row in map(json.loads, file):
                if row.get("topic") == topic and row.get("key"):
                    return str(row["key"])
    return NO_KEY


def _at_offset(state_partitions: Sequence[dict[str, Any]]) -> str | None:
    """A cut in the middle of every state partition, as --at-offset takes it."""
    middles = {
        row["state_partition"]: (row["first_log_offset"] + row["end_log_offset_exclusive"]) // 2
        for row in state_partitions
        if row["end_log_offset_exclusive"] > row["first_log_offset"]
    }
    return ",".join(f"{partition}:{offset}" for partition, offset in sorted(middles.items())) or None


def _state_span(state_partitions: Sequence[dict[str, Any]]) -> StateSpan | None:
    for row in sorted(state_partitions, key=lambda row: int(row["state_partition"])):
        first, end = row["first_log_offset"], row["end_log_offset_exclusive"]
        if end > first:
            third = (end - first) // 3
            return StateSpan(state_partition=row["state_partition"], from_offset=first + third, to_offset=end - third)
    return None
