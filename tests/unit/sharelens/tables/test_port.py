"""Losses, covers and states are those of the copies, whether a lake or the directories answer, in any order."""

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sharelens.evidence.as_of import WHOLE_LOG, LogPrefix
from sharelens.evidence.clock_steps import ClockStep
from sharelens.lake.scan import open_lake
from sharelens.source.request import Source
from sharelens.tables.cover import StatePartitionCover
from sharelens.tables.logs.tables import open_log_tables
from sharelens.tables.opening import open_cut
from sharelens.tables.port import STATES, Tables
from sharelens.tables.reading import read, read_states
from sharelens.tables.where import Keys, Where
from state_model.columnar.keys import LOG_ORDER, SHARE_PARTITION_ORDER
from tests.logs.batch_files import broken, state_batches, write_batches
from tests.logs.state_logs import START_MS, STATE_TOPIC, snapshot, update
from tests.processes.in_process import make_lake

pytestmark = pytest.mark.slow


def story(number: int) -> list[dict[str, Any]]:
    """The records of a state partition, about groups of its own."""
    g, h = f"g-{number}", f"h-{number}"
    return [
        snapshot(g),
        snapshot(h, 1, at_ms=START_MS + 600_000),
        *(update(g, batches=[(n, n, 2, 1)], at_ms=START_MS + n) for n in range(4)),
        update(h, 1, damage="value_version", at_ms=START_MS + 601_000),
        *(update(h, 1, batches=[(n, n + 1, 4, 2)], at_ms=START_MS + 602_000 + n) for n in range(3)),
    ]


Copy = tuple[int, int, frozenset[int], frozenset[int]]
"""Records [first, end), of which some are missing and some are broken."""
CASES: dict[str, list[Copy]] = {
    "whole": [(0, 10, frozenset(), frozenset())],
    "pruned": [(3, 10, frozenset(), frozenset())],
    "a hole": [(0, 10, frozenset({3, 4}), frozenset())],
    "a broken batch": [(0, 10, frozenset(), frozenset({4}))],
    "broken batches side by side, and a hole": [(0, 10, frozenset({8}), frozenset({2, 3}))],
    "holes that the other copy fills in part": [
        (0, 10, frozenset({2, 3}), frozenset()),
        (0, 10, frozenset({3, 6}), frozenset()),
    ],
    "a copy that begins late and one that ends early": [
        (4, 10, frozenset(), frozenset({5})),
        (1, 6, frozenset(), frozenset({2})),
    ],
}


PREFIXES = [
    WHOLE_LOG,
    LogPrefix(as_of_ms=START_MS + 2),
    LogPrefix(as_of_ms=START_MS + 600_000),
    *(LogPrefix(at_offsets=dict.fromkeys(range(len(CASES)), last)) for last in (-1, 1, 3, 4, 6, 8)),
]
COPIES = max(len(copies) for copies in CASES.values())
Answer = dict[str, tuple[StatePartitionCover, list[list[dict[str, object]]]]]
"""Case -> the cover of its state partition, and the states after each of PREFIXES."""
Expected = tuple[Answer, Sequence[ClockStep]]
MOMENT_MS = START_MS + 2


@pytest.fixture(scope="module")
def directories(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Log directories with a copy of the state partition of each case, as far as the case has so many."""
    folder = tmp_path_factory.mktemp("copies")
    for number, copies in enumerate(CASES.values()):
        batches = state_batches(story(number))
        for place, (first, end, missing, damaged) in enumerate(copies):
            kept_batches = [
                broken(batches[offset]) if offset in damaged else batches[offset]
                for offset in range(first, end)
                if offset not in missing
            ]
            write_batches(folder / f"copy-{place}" / f"{STATE_TOPIC}-{number}", kept_batches)
    return [folder / f"copy-{place}" for place in range(COPIES)]


def answer_of(evidence: Tables) -> Answer:
    """Covers are without the counts of problem rows, which are as many as there are copies."""
    covers = {cover.state_partition: replace(cover, quarantined=0) for cover in evidence.cover()}
    assert len(covers) == len(CASES)
    states = [states_of(evidence, prefix) for prefix in PREFIXES]
    return {
        case: (covers[number], [[row for row in rows if row["state_partition"] == number] for rows in states])
        for number, case in enumerate(CASES)
    }


def states_of(evidence: Tables, prefix: LogPrefix) -> list[dict[str, object]]:
    states = read_states(evidence, Keys(), prefix)
    scalars = [name for name in states.column_names if name != "state_batches"]
    assert read(evidence, STATES, scalars, Where(cut=prefix)).equals(states.select(scalars))
    return states.sort_by([*LOG_ORDER, *SHARE_PARTITION_ORDER]).to_pylist()  # type: ignore[no-any-return]


def of_directories(directories: Iterable[Path]) -> Tables:
    return open_log_tables(Source(log_dirs=tuple(map(str, directories))))


@pytest.fixture(scope="module")
def expected(directories: list[Path]) -> Expected:
    """What the directories answer, in their order."""
    evidence = of_directories(directories)
    answer = answer_of(evidence)
    assert all(any(states) for _, states in answer.values())
    return answer, evidence.clock_steps(MOMENT_MS)


def assert_answers(evidence: Tables, expected: Expected) -> None:
    answer, steps = expected
    actual = answer_of(evidence)
    for case in CASES:
        assert actual[case] == answer[case], case
    assert evidence.clock_steps(MOMENT_MS) == steps != []


def test_a_lake_and_the_directories_agree_in_any_order_of_the_copies(
    directories: list[Path], expected: Expected, tmp_path: Path
) -> None:
    for number, order in enumerate(itertools.permutations(directories)):
        make_lake(tmp_path / f"lake-{number}", *order)
        assert_answers(open_cut(open_lake(str(tmp_path / f"lake-{number}")), None), expected)
        if number:
            assert_answers(of_directories(order), expected)


@pytest.mark.soak
def test_copies_that_come_one_run_after_the_other_lack_the_same_records(
    directories: list[Path], expected: Expected, tmp_path: Path
) -> None:
    for number, order in enumerate(itertools.permutations(directories)):
        for directory in order:
            make_lake(tmp_path / f"lake-{number}", directory)
        assert_answers(open_cut(open_lake(str(tmp_path / f"lake-{number}")), None), expected)
