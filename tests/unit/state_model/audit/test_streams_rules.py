"""The rules on streams groups: each finds what breaks it."""

from functools import partial

import pytest

from state_model.audit.streams_life_checks import misplaced_group
from state_model.audit.streams_rules import RULES, check_group
from state_model.audit.streams_steps import StreamsRecord
from state_model.group_records import GroupRecord
from state_model.streams.records import record_of
from state_model.streams.values import (
    NO_TASKS_BY_TYPE,
    GroupMetadata,
    MemberAssignment,
    MemberMetadata,
    Subtopology,
    TargetMetadata,
    TaskId,
    TasksByType,
    TopicInfo,
    Topology,
)

STANDBY = (("num.standby.replicas", "1"),)
FIRST, SECOND, UNKNOWN = TaskId("0", 0), TaskId("0", 1), TaskId("9", 0)
BOTH = frozenset({FIRST, SECOND})


def tasks(*active: TaskId, standby: tuple[TaskId, ...] = ()) -> TasksByType:
    return TasksByType(frozenset(active), frozenset(standby))


def member(name: str = "m", process: str = "p", epoch: int = 0) -> GroupRecord:
    return record_of(19, "g", MemberMetadata(None, None, "c", "/h", 1000, epoch, process), name)


def epoch(number: int, validated: int = 0, configs: tuple[tuple[str, str], ...] = STANDBY) -> GroupRecord:
    return record_of(17, "g", GroupMetadata(number, 7, validated, configs))


def target(own: TasksByType, name: str = "m") -> GroupRecord:
    return record_of(21, "g", own, name)


def assigned(
    number: int,
    before: int,
    own: TasksByType,
    *,
    name: str = "m",
    state: int = 1,
    left: TasksByType = NO_TASKS_BY_TYPE,
    since: int | None = None,
) -> GroupRecord:
    epochs = dict.fromkeys(own.active | left.active, number if since is None else since)
    return record_of(22, "g", MemberAssignment(state, number, before, own, epochs, left), name)


gone = partial(record_of, group_id="g", value=None)
TOPOLOGY = record_of(23, "g", Topology(0, (Subtopology("0", ("t",), state_changelog_topics=(TopicInfo("c"),)),)))
NEXT_TARGET = record_of(20, "g", TargetMetadata(3, 100))
JOINED = (
    member(), TOPOLOGY, epoch(2), target(tasks(FIRST, SECOND)), record_of(20, "g", TargetMetadata(2, 100)),
    assigned(2, 0, tasks(FIRST, SECOND)),
)  # fmt: skip
LEFT = (gone(22, member_id="m"), gone(21, member_id="m"), gone(19, member_id="m"), epoch(3))
DELETED = (gone(20), gone(17), gone(23))


def broken(*records: GroupRecord, step_ms: int = 1) -> list[str]:
    """The codes of the rules that the records break, in order, each once."""
    placed = [StreamsRecord(record, offset, 100 + step_ms * offset) for offset, record in enumerate(records)]
    return list(dict.fromkeys(finding.rule.code for finding in check_group(placed)))


def test_a_life_of_a_group_breaks_no_rule() -> None:
    assert broken(*JOINED, *LEFT, *DELETED, *JOINED) == []


@pytest.mark.parametrize(
    ("code", "records"),
    [
        ("ST-1", (member(), TOPOLOGY, epoch(3))),
        ("ST-2", (*JOINED, *LEFT[:3], epoch(4))),
        ("ST-3", (*JOINED, record_of(20, "g", TargetMetadata(2, 100)))),
        ("ST-4", (*JOINED, epoch(3), epoch(4), record_of(20, "g", TargetMetadata(3, 100)))),
        ("ST-5", (*JOINED, epoch(3), record_of(20, "g", TargetMetadata(3, 99)))),
        ("ST-6", (*JOINED, assigned(3, 2, tasks(FIRST, SECOND), since=2))),
        ("ST-7", (*JOINED, epoch(3), record_of(20, "g", TargetMetadata(3, 100)), assigned(2, 2, tasks(FIRST, SECOND)))),
        ("ST-8", (*JOINED, assigned(2, 1, tasks(FIRST, SECOND)))),
        ("ST-9", (*JOINED, assigned(1, 2, tasks(FIRST, SECOND)))),
        ("ST-10", (*JOINED, assigned(2, 2, tasks(FIRST, SECOND), state=4))),
        ("ST-11", (*JOINED, assigned(2, 2, tasks(FIRST), state=2))),
        ("ST-12", (*JOINED, assigned(2, 2, tasks(FIRST), state=2, left=tasks(FIRST)))),
        ("ST-13", (*JOINED, assigned(2, 2, tasks(FIRST)))),
        ("ST-14", (*JOINED, member("n", "q"), epoch(3), assigned(2, 0, tasks(FIRST), name="n", state=3))),
        ("ST-15", (*JOINED, member("n"), epoch(3), assigned(2, 0, tasks(standby=(FIRST,)), name="n", state=3))),
        (
            "ST-16",
            (*JOINED, member("n", "q"), epoch(3), target(tasks(FIRST), "n"), NEXT_TARGET),
        ),
        (
            "ST-17",
            (
                *JOINED, *(member("n", "q"), epoch(3), target(tasks(standby=(FIRST,)), "n")),
                *(member("o", "r"), epoch(4), target(tasks(standby=(FIRST,)), "o")),
                record_of(20, "g", TargetMetadata(4, 100)),
            ),
        ),
        ("ST-18", (*JOINED, member("n", "q"), epoch(3), record_of(20, "g", TargetMetadata(3, 100)))),
        ("ST-19", (*JOINED, target(TasksByType(BOTH, warmup=frozenset({FIRST}))))),
        ("ST-20", (*JOINED, assigned(2, 2, tasks(FIRST, SECOND), since=1))),
        ("ST-22", (*JOINED, epoch(3, validated=5))),
        ("ST-23", (*JOINED, epoch(3, validated=-1), record_of(20, "g", TargetMetadata(3, 100)))),
        ("ST-24", (*JOINED, target(tasks(FIRST, SECOND, UNKNOWN)))),
        ("ST-25", (*JOINED, TOPOLOGY)),
        ("ST-26", (*JOINED, member("n", "q", epoch=1))),
        ("ST-27", (*JOINED, member("n", ""))),
        ("ST-28", (*JOINED, member("n", "q"), target(tasks(), "n"))),
        ("ST-29", (*JOINED, LEFT[0], LEFT[2])),
        ("ST-30", (*JOINED, target(tasks(), "n"))),
        ("ST-31", (*JOINED, gone(17))),
        ("ST-32", (*JOINED, epoch(3, configs=(("num.standby.replicas", "9"),)))),
    ],
)  # fmt: skip
def test_a_rule_finds_what_breaks_it(code: str, records: tuple[GroupRecord, ...]) -> None:
    assert code in broken(*records)
    assert code not in broken(*records[:-1])


def test_unsorted_lists_break_a_rule() -> None:
    record = target(tasks(FIRST, SECOND))
    entries = ({"subtopology_id": "0", "partitions": (1, 0)},)
    value = dict(record.value or {}, active_tasks=entries)
    unsorted = GroupRecord(record_type=21, name=record.name, key=record.key, version=0, value=value)
    assert broken(*JOINED, unsorted) == ["ST-21"]


def test_a_revocation_that_outlasts_the_timeout_breaks_a_rule() -> None:
    records = (*JOINED, target(tasks(FIRST)), assigned(2, 2, tasks(FIRST), state=2, left=tasks(SECOND)), LEFT[0])
    assert "ST-34" in broken(*records, step_ms=2000)
    assert "ST-34" not in broken(*records, step_ms=900)


def test_topics_that_do_not_fit_for_a_minute_break_a_rule() -> None:
    records = (*JOINED, epoch(3, validated=-1), epoch(4, validated=-1))
    assert "ST-37" in broken(*records, step_ms=60_001)
    assert "ST-37" not in broken(*records, step_ms=60_000)


def test_a_group_belongs_to_one_partition() -> None:
    assert misplaced_group("app-wc", 2, 3) is None
    difference = misplaced_group("app-wc", 1, 3)
    assert difference is not None
    assert difference.expected == "partition 2"


def test_every_rule_of_the_specification_is_there() -> None:
    assert [rule.number for rule in RULES] == list(range(1, 38))
    assert [rule.number for rule in RULES if rule.check is None] == [33, 35, 36]
    assert all(rule.needs for rule in RULES if rule.check is None and rule.number != 36)
