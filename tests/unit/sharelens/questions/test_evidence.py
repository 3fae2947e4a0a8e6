"""Losses, covers and states are those of the copies, whether a lake or the directories answer, in any order."""

import itertools
from dataclasses import replace
from pathlib import Path

import pytest

from evidence.as_of import WHOLE_LOG, LogPrefix
from sharelens.questions.evidence import Evidence, Keys, StatePartitionCover
from sharelens.questions.lake_evidence import open_lake_evidence
from sharelens.questions.log_evidence import open_log_evidence
from sharelens.request import Source
from state_model.columnar.keys import LOG_ORDER, SHARE_PARTITION_ORDER
from tests.batch_files import broken, state_batches, write_batches
from tests.in_process import make_lake
from tests.state_logs import START_MS, STATE_TOPIC, snapshot, update

pytestmark = pytest.mark.slow

STORY = [
    snapshot(),
    snapshot("h", 1, at_ms=START_MS + 600_000),
    *(update(batches=[(n, n, 2, 1)], at_ms=START_MS + n) for n in range(4)),
    update("h", 1, damage="value_version", at_ms=START_MS + 601_000),
    *(update("h", 1, batches=[(n, n + 1, 4, 2)], at_ms=START_MS + 602_000 + n) for n in range(3)),
]
PREFIXES = [
    WHOLE_LOG,
    LogPrefix(as_of_ms=START_MS + 2),
    LogPrefix(as_of_ms=START_MS + 600_000),
    *(LogPrefix(at_offsets={0: last}) for last in (-1, 1, 3, 4, 6, 8)),
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


def write_copies(folder: Path, copies: list[Copy]) -> list[Path]:
    batches = state_batches(STORY)
    directories = []
    for number, (first, end, missing, damaged) in enumerate(copies):
        kept = [
            broken(batches[offset]) if offset in damaged else batches[offset]
            for offset in range(first, end)
            if offset not in missing
        ]
        directories.append(folder / f"copy-{number}")
        write_batches(directories[-1] / f"{STATE_TOPIC}-0", kept)
    return directories


def cover_of(evidence: Evidence) -> list[StatePartitionCover]:
    """The cover without the counts of problem rows, which are as many as there are copies."""
    return [replace(part, quarantined=0) for part in evidence.cover()]


def states_of(evidence: Evidence, prefix: LogPrefix) -> list[dict[str, object]]:
    states = evidence.states(Keys(), prefix)
    return states.sort_by([*LOG_ORDER, *SHARE_PARTITION_ORDER]).to_pylist()  # type: ignore[no-any-return]


@pytest.mark.parametrize("case", CASES)
def test_a_lake_and_the_directories_agree_in_any_order_of_the_copies(case: str, tmp_path: Path) -> None:
    directories = write_copies(tmp_path, CASES[case])
    answers = []
    for number, order in enumerate(itertools.permutations(directories)):
        make_lake(tmp_path / f"lake-{number}", *order)
        evidences = (
            open_lake_evidence(str(tmp_path / f"lake-{number}"), None),
            open_log_evidence(Source(log_dirs=tuple(map(str, order)))),
        )
        for evidence in evidences:
            states = [states_of(evidence, prefix) for prefix in PREFIXES]
            steps = evidence.clock_steps(START_MS + 2)
            answers.append((cover_of(evidence), states, steps))
    assert all(answer == answers[0] for answer in answers)


@pytest.mark.parametrize("case", [case for case, copies in CASES.items() if len(copies) > 1])
def test_copies_that_come_one_run_after_the_other_lack_the_same_records(case: str, tmp_path: Path) -> None:
    directories = write_copies(tmp_path, CASES[case])
    expected = open_log_evidence(Source(log_dirs=tuple(map(str, directories))))
    for number, order in enumerate(itertools.permutations(directories)):
        for directory in order:
            make_lake(tmp_path / f"lake-{number}", directory)
        evidence = open_lake_evidence(str(tmp_path / f"lake-{number}"), None)
        assert cover_of(evidence) == cover_of(expected)
        for prefix in PREFIXES:
            assert states_of(evidence, prefix) == states_of(expected, prefix)
