"""gold.dlq_reconciliation: incremental and full say the same, whatever comes in which order."""

import itertools
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.measure import letter_causes
from jobs.upkeep.maintain import MaintainOptions, maintain
from sharelens.kafka_log.dead_letter_records import DeadLetterTopics
from sharelens.lake.lake import Lake
from sharelens.lake.scan import open_lake
from tests.depths import examples, in_soak, rows_in_soak
from tests.lakes import assert_same
from tests.logs.dead_letter_logs import MESSAGES, Record, letter_headers, write_cut_letters, write_letters
from tests.logs.state_logs import START_MS, snapshot, update, write_log_directory, write_state_partition
from tests.logs.user_topics import write_orders
from tests.once import made_once
from tests.processes.in_process import TO_MEASURES, TO_SILVER, make_lake

pytestmark = pytest.mark.slow

HOUR_MS = 3_600_000

STATE = [
    snapshot(at_ms=START_MS),
    update(start=0, batches=[(3, 4, 3, 1)], at_ms=START_MS + 10),
    update(start=0, batches=[(3, 4, 4, 1)], at_ms=START_MS + 20),
    update(start=0, batches=[(7, 7, 3, 2)], at_ms=START_MS + 30),
    snapshot("other", at_ms=START_MS + 40),
    update(start=0, batches=[(7, 7, 4, 2)], at_ms=START_MS + 50),
]
LETTERS = [(None, b"v", letter_headers(offset)) for offset in (3, 9)]


def directory(folder: Path, records=STATE, letters=LETTERS) -> Path:
    """Group g gave up orders-0 @ 3, 4 and 7; dead letters speak of 3 and 9."""
    write_log_directory(folder, records)
    write_orders(folder)
    if letters:
        write_letters(folder, letters)
    return folder


def judged(lake: Path) -> list[tuple[int, int, str]]:
    rows = open_lake(lake).scan("gold.dlq_reconciliation").sort_by("first_offset").to_pylist()
    return [(row["first_offset"], row["last_offset"], row["status"]) for row in rows]


def whole_lake(logs: Path) -> Path:
    """The lake of one run over the directory."""
    return made_once("lakes/reconcile", lambda lake: make_lake(lake, logs))


def causes(lake: Path) -> list[tuple[int, int, str, str | None]]:
    """The given up records of a lake with their causes."""
    rows = open_lake(lake).scan("gold.poison_record").sort_by("first_offset").to_pylist()
    return [(row["first_offset"], row["last_offset"], row["cause"], row["cause_source"]) for row in rows]


ALL = [(3, 3, "matched"), (4, 4, "missing"), (7, 7, "missing"), (9, 9, "unexpected")]


def test_each_record_is_judged(tmp_path: Path) -> None:
    assert judged(whole_lake(directory(tmp_path / "logs"))) == ALL


@pytest.mark.soak
@pytest.mark.parametrize("ends", [(5, 25, 45), *in_soak((15, 45))])
def test_a_run_in_parts_is_a_run_in_one(tmp_path: Path, ends: tuple[int, ...]) -> None:
    logs = directory(tmp_path / "logs")
    for end in ends:
        make_lake(tmp_path / "parts", logs, until_ms=START_MS + end)
    make_lake(tmp_path / "parts", logs)
    assert judged(tmp_path / "parts") == ALL
    assert_same(tmp_path / "parts", whole_lake(logs))


def test_dead_letters_that_come_later_are_held_against_what_was_there(tmp_path: Path) -> None:
    make_lake(tmp_path / "parts", directory(tmp_path / "first", letters=[]), stages=TO_MEASURES)
    assert judged(tmp_path / "parts") == [(3, 4, "unknown"), (7, 7, "unknown")]
    make_lake(tmp_path / "parts", directory(tmp_path / "logs"), stages=TO_MEASURES)
    assert judged(tmp_path / "parts") == ALL


TWICE = [
    snapshot(at_ms=START_MS),
    update(start=0, batches=[(3, 9, 3, 2)], at_ms=START_MS + 10),
    update(start=0, batches=[(3, 9, 4, 2)], at_ms=START_MS + 20),
]
"""Offsets 3 to 9 are given up at their second delivery: rejected, or by a limit that nothing tells."""


TWICE_LETTERS: list[Record] = [
    (None, b"v", letter_headers(offset, message=MESSAGES[cause]))
    for offset, cause in ((4, "rejected"), (5, "rejected"), (7, "delivery_limit"))
]
"""Dead letters of three of them."""


@pytest.mark.soak
@pytest.mark.parametrize("first", [TWICE_LETTERS[:1], *in_soak([], TWICE_LETTERS[:2], TWICE_LETTERS)])
def test_rows_of_given_up_records_have_the_causes_of_dead_letters_whenever_these_come(
    tmp_path: Path, first: list[Record]
) -> None:
    make_lake(tmp_path / "parts", directory(tmp_path / "first", TWICE, first), stages=TO_MEASURES)
    assert (causes(tmp_path / "parts") == [(3, 9, "unknown", None)]) == (not first)
    make_lake(tmp_path / "parts", directory(tmp_path / "logs", TWICE, TWICE_LETTERS), stages=TO_MEASURES)
    assert causes(tmp_path / "parts") == [
        (3, 3, "unknown", None),
        (4, 5, "rejected", "dead_letter"),
        (6, 6, "unknown", None),
        (7, 7, "delivery_limit", "dead_letter"),
        (8, 9, "unknown", None),
    ]
    one_run_lake = made_once(
        "lakes/letter-causes",
        lambda lake: make_lake(lake, directory(tmp_path / "one", TWICE, TWICE_LETTERS), stages=TO_MEASURES),
    )
    assert_same(tmp_path / "parts", one_run_lake)


@pytest.mark.soak
def test_a_lake_of_a_version_that_told_no_causes_gets_them_in_the_next_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as older:
        older.setattr(letter_causes, "commit_causes", lambda *_: None)
        make_lake(tmp_path / "lake", directory(tmp_path / "logs", TWICE, TWICE_LETTERS), stages=TO_MEASURES)
    assert causes(tmp_path / "lake") == [(3, 9, "unknown", None)]
    later = [*TWICE, snapshot("other", at_ms=START_MS + 90)]
    make_lake(tmp_path / "lake", directory(tmp_path / "more", later, TWICE_LETTERS), stages=TO_MEASURES)
    assert [cause for _, _, cause, _ in causes(tmp_path / "lake")] == [
        *("unknown", "rejected", "unknown", "delivery_limit", "unknown")
    ]


@pytest.mark.soak
def test_state_that_comes_later_explains_dead_letters(tmp_path: Path) -> None:
    make_lake(tmp_path / "parts", directory(tmp_path / "first", records=STATE[:1]), stages=TO_MEASURES)
    assert judged(tmp_path / "parts") == [(3, 3, "unknown"), (9, 9, "unknown")]
    make_lake(tmp_path / "parts", directory(tmp_path / "logs"), stages=TO_MEASURES)
    assert judged(tmp_path / "parts") == ALL


@pytest.mark.soak
@pytest.mark.parametrize("rebuild", ["decode", *in_soak("replay", "measure")])
def test_starting_over_changes_nothing(tmp_path: Path, rebuild: str) -> None:
    one_run_lake = whole_lake(directory(tmp_path / "logs"))
    make_lake(shutil.copytree(one_run_lake, tmp_path / "again"), rebuild=rebuild)
    assert_same(tmp_path / "again", one_run_lake)


LATER_MS = START_MS + 10 * HOUR_MS
LONG = [
    *STATE[:3],
    snapshot(start=5, at_ms=LATER_MS),
    update(start=5, batches=[(7, 7, 3, 2)], at_ms=LATER_MS + 30),
    update(start=5, batches=[(7, 7, 4, 2)], at_ms=LATER_MS + 50),
    snapshot(start=8, at_ms=LATER_MS + 10 * HOUR_MS),
]
"""Dead letters long before the newest record."""


def long_lake() -> Path:
    """The lake of LONG; tests copy it."""

    def make(folder: Path) -> None:
        make_lake(folder / "lake", directory(folder / "logs", LONG), stages=TO_MEASURES)

    return made_once("reconcile/long", make) / "lake"


@pytest.mark.soak
@pytest.mark.parametrize("dropped", [["history", "measures"], *in_soak(["history"], ["measures"])])
def test_what_retention_takes_leaves_every_verdict_as_it_was(dropped: list[str], tmp_path: Path) -> None:
    lake = Path(shutil.copytree(long_lake(), tmp_path / "lake"))
    before = judged(lake)
    assert {status for _, _, status in before} == {"matched", "missing", "unexpected"}
    upkeep = maintain(MaintainOptions(lake=Lake(lake), dry_run=False, retain=dict.fromkeys(dropped, 5 * HOUR_MS)))
    assert sum(table.dropped_rows for table in upkeep.tables) > 0
    news = update(start=8, batches=[(9, 9, 1, 1)], at_ms=LATER_MS + 11 * HOUR_MS)
    make_lake(lake, directory(tmp_path / "second", [*LONG, news]), stages=TO_MEASURES)
    assert judged(lake) == before


def test_a_topic_of_the_prefix_without_dead_letters_is_named_and_not_taken(tmp_path: Path) -> None:
    logs = directory(tmp_path / "logs", letters=[(None, b"v", [("trace", b"1")])])
    summary = make_lake(tmp_path / "lake", logs, stages=TO_SILVER)
    assert summary.skipped == ["dlq.orders: 1 offsets without a dead letter (no header __dlq.errors.*): not taken"]
    rows = open_lake(tmp_path / "lake").scan("bronze.log_record")
    assert set(rows.column("topic").to_pylist()) == {"__share_group_state"}


@pytest.mark.soak
def test_a_topic_of_any_name_is_taken_when_it_is_named_and_from_then_on(tmp_path: Path) -> None:
    logs = directory(tmp_path / "logs", letters=[])
    write_letters(logs, LETTERS[:1], topic="letters")
    named = DeadLetterTopics(names=frozenset({"letters"}))
    first = make_lake(tmp_path / "lake", logs, dead_letter_topics=named, stages=TO_MEASURES)
    assert first.counts["silver.dlq_record"] == 1
    write_letters(logs, LETTERS, topic="letters")
    assert make_lake(tmp_path / "lake", logs, stages=TO_MEASURES).counts["silver.dlq_record"] == 1
    assert judged(tmp_path / "lake") == ALL


@pytest.mark.soak
def test_how_far_back_a_topic_reaches_does_not_hang_on_the_groups_with_news(tmp_path: Path) -> None:
    """Its oldest dead letter is of another group: a run over news of g alone judges as a run over all."""
    write_log_directory(tmp_path / "logs", STATE)
    write_orders(tmp_path / "logs")
    other_letters = [(None, b"v", letter_headers(1, group="other"))] * 4
    write_cut_letters(tmp_path / "logs", [*other_letters, (None, b"v", letter_headers(3))])
    make_lake(tmp_path / "parts", tmp_path / "logs", until_ms=START_MS + 45, stages=TO_MEASURES)
    make_lake(tmp_path / "parts", tmp_path / "logs", stages=TO_MEASURES)
    make_lake(tmp_path / "whole", tmp_path / "logs", stages=TO_MEASURES)
    verdicts = judged(tmp_path / "whole")
    assert [row for row in verdicts if row[0] > 1] == [(3, 3, "matched"), (4, 4, "missing"), (7, 7, "missing")]
    assert judged(tmp_path / "parts") == verdicts


@pytest.mark.soak
@pytest.mark.parametrize(("base_offset", "status"), [(5, "unknown"), *rows_in_soak((0, "unexpected"))])
def test_a_state_partition_that_gets_records_later_begins_with_its_log_or_hides_records(
    base_offset: int, status: str, tmp_path: Path
) -> None:
    """A dead letter of a group without state; Kafka has pruned the later state partition, or it begins at offset 0."""
    logs = directory(tmp_path / "logs", letters=[(None, b"v", letter_headers(9, group="ghost"))])
    make_lake(tmp_path / "parts", logs, stages=TO_MEASURES)
    assert (9, 9, "unexpected") in judged(tmp_path / "parts")
    write_state_partition(logs, [snapshot("late", at_ms=START_MS + HOUR_MS)], number=1, base_offset=base_offset)
    make_lake(tmp_path / "parts", logs, stages=TO_MEASURES)
    make_lake(tmp_path / "whole", logs, stages=TO_MEASURES)
    verdicts = judged(tmp_path / "whole")
    assert (9, 9, status) in verdicts
    assert judged(tmp_path / "parts") == verdicts


GROUPS = ("g", "h")
SPOKEN_OF = ("g0", "h0", "g1", "h1", "ghost")
"""Groups of dead letters; a share partition lies in one state partition, whose number its group's name ends with."""
CHANGES = st.one_of(
    st.builds(snapshot, st.sampled_from(GROUPS), start=st.just(0)),
    st.builds(
        update,
        st.sampled_from(GROUPS),
        start=st.just(0),
        batches=st.tuples(st.integers(0, 9), st.sampled_from([0, 2, 3, 4])).map(lambda at: [(at[0], at[0], at[1], 1)]),
    ),
)


@pytest.mark.soak
@examples("lake")
@given(
    stories=st.lists(st.lists(CHANGES, min_size=1, max_size=8), min_size=1, max_size=3),
    begins=st.lists(st.sampled_from([0, 7]), min_size=3, max_size=3),
    steps_ms=st.lists(st.integers(0, 40), min_size=12, max_size=12),
    spoken_of=st.lists(st.tuples(st.sampled_from(SPOKEN_OF), st.integers(0, 9)), max_size=6),
    writes=st.sampled_from([write_letters, write_cut_letters]),
    cuts=st.lists(st.integers(-5, 250), min_size=2, max_size=2).map(sorted),
)
def test_dead_letters_of_any_intervals_are_judged_as_those_of_one_run(
    stories: list[list[dict[str, Any]]],
    begins: list[int],
    steps_ms: list[int],
    spoken_of: list[tuple[str, int]],
    writes: Callable[[Path, Sequence[Record]], object],
    cuts: list[int],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """State partitions begin with offset 0 or later, at different times; the topic for dead letters may be cut."""
    folder = tmp_path_factory.mktemp("letters")
    logs = folder / "logs"
    for number, story in enumerate(stories):
        times = itertools.accumulate(steps_ms[number:], initial=START_MS)
        timed = [
            record | {"timestamp_ms": at_ms, "group_id": f"{record['group_id']}{number}"}
            for record, at_ms in zip(story, times, strict=False)
        ]
        write_state_partition(logs, timed, number=number, base_offset=begins[number])
    write_orders(logs)
    if spoken_of:
        writes(logs, [(None, b"v", letter_headers(offset, group=group)) for group, offset in spoken_of])
    make_lake(folder / "whole", logs)
    for until_ms in (START_MS + cuts[0], START_MS + cuts[1], None):
        make_lake(folder / "parts", logs, until_ms=until_ms)
    assert_same(folder / "parts", folder / "whole")
