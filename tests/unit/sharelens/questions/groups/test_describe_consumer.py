"""A consumer group described from its records alone: without folders of topics their names and ends are unknown."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from sharelens.measures.settings.over_time import GroupSettings
from sharelens.output import Answer
from sharelens.parameters.filters import KeyFilter
from sharelens.questions.groups.describe import View, describe
from sharelens.questions.groups.rebalances import rebalances
from sharelens.questions.timelines.timeline import timeline
from sharelens.source.request import CutChoice, Source
from sharelens.tables.opening import open_evidence
from sharelens.tables.port import Tables
from sharelens.tables.where import Span
from state_model.errors import SharelensError, UsageError
from tests.logs.consumer_logs import DELETED, GROUP, REMOVED_B, SCALED_OUT, Entry, entries, joined, resolved
from tests.logs.group_files import write_group_partition
from tests.logs.state_logs import ORDERS_ID

GIVING_UP_MS = 100 + len(SCALED_OUT) - 3
"""The time of the record by which member a must give up partition 1."""
CLASSIC = {"session_timeout_ms": 45_000, "supported_protocols": ()}


@contextmanager
def evidence_of(folder: Path, log: Sequence[Entry]) -> Iterator[Tables]:
    write_group_partition(folder, entries(log))
    source = Source(log_dirs=(str(folder),), include_uncommitted=True, needs_state_log=False)
    with open_evidence(source) as evidence:
        yield evidence


@pytest.fixture
def evidence(tmp_path: Path) -> Iterator[Tables]:
    """A group that two members shared, one of them left, and that was deleted."""
    with evidence_of(tmp_path, (*SCALED_OUT, *REMOVED_B, *DELETED)) as tables:
        yield tables


def rows(answer: Answer) -> list[dict[str, Any]]:
    return list(answer.table.to_pylist())


def cell(answer: Answer, heading: str, row: int = 0) -> str:
    (column,) = (column for column in answer.columns if column.heading == heading)
    return column.cell(rows(answer)[row])


def test_a_member_has_what_it_must_give_up_until_it_has(evidence: Tables) -> None:
    answer = describe(evidence, GROUP, GIVING_UP_MS, View.MEMBERS)
    of_a, of_b = rows(answer)
    unnamed = {"topic": None, "topic_id": ORDERS_ID}
    assert of_a["assigned_partitions"] == of_a["target_partitions"] == [{**unnamed, "partitions": [0]}]
    assert of_a["pending_partitions"] == [{**unnamed, "partitions": [1]}]
    assert (of_a["partition_count"], of_b["partition_count"]) == (2, 0)
    assert cell(answer, "CURRENT-ASSIGNMENT") == f"{ORDERS_ID}:0,1"
    assert (of_b["member_state"], of_b["instance_id"]) == ("UNRELEASED_PARTITIONS", "i")
    offsets = rows(describe(evidence, GROUP, GIVING_UP_MS))
    assert [(row["topic"], row["topic_id"], row["partition"], row["member_id"]) for row in offsets] == [
        (None, ORDERS_ID, 0, "a"),
        (None, ORDERS_ID, 1, "a"),
    ]
    assert {(row["committed_offset"], row["lag"]) for row in offsets} == {(None, None)}
    assert not describe(evidence, GROUP, GIVING_UP_MS).warnings, "nothing is committed, so there is no lag to know"


def test_the_assignor_of_the_state_is_what_members_prefer(evidence: Tables) -> None:
    (row,) = rows(describe(evidence, GROUP, GIVING_UP_MS, View.STATE))
    assert (row["state"], row["group_epoch"], row["assignment_epoch"], row["server_assignor"]) == (
        *("RECONCILING", 3, 3),
        "range",
    )


def test_a_group_that_is_not_there_says_since_when_or_until_when(evidence: Tables) -> None:
    with pytest.raises(SharelensError, match="consumer group c has no record up to"):
        describe(evidence, GROUP, 99)
    with pytest.raises(SharelensError, match="consumer group c is deleted, or a classic group again: its tomb"):
        describe(evidence, GROUP)
    with pytest.raises(UsageError, match="c is a consumer group, which has no tasks"):
        describe(evidence, GROUP, GIVING_UP_MS, View.TASKS)


def test_moves_of_a_topic_without_a_name_have_its_id(evidence: Tables) -> None:
    answer = rebalances(evidence, GROUP, Span())
    assert cell(answer, "MOVED", 1) == f"{ORDERS_ID}:1 from c-a(a) to c-b(b)"
    assert [row["state"] for row in rows(answer)] == ["ASSIGNING", "ASSIGNING", "ASSIGNING", "DEAD"]


def test_a_timeline_says_what_the_records_prove(tmp_path: Path) -> None:
    log = (joined("a", classic_member_metadata=CLASSIC), *SCALED_OUT, resolved("o.*"), *DELETED)
    with evidence_of(tmp_path, log) as tables:
        key_filter = KeyFilter(groups=frozenset({GROUP}))
        answer = timeline(tables, key_filter, CutChoice(), Span(), GroupSettings(), 0)
    texts = [(row["event"], row["text"]) for row in rows(answer)]
    assert texts[0] == ("member_joined", "c-a(a) on /127.0.0.1, classic protocol")
    assert ("member_changed", "c-a(a) on /127.0.0.1") in texts, "it speaks the consumer protocol now"
    assert ("expression_resolved", "o.* matches no topic") in texts
    assert ("group_deleted", "or a classic group again") in texts
    assert sum(event == "rebalanced" for event, _ in texts) == 2
