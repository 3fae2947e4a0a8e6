"""What-if on the log of one simulation against the log of another, which had the other setting from the same seed."""

import itertools
from dataclasses import replace
from pathlib import Path

import pytest

from sharelens.measures.early_draft_cost import draft_writes
from sharelens.measures.histories.numbers import Histories
from sharelens.parameters.filters import KeyFilter
from sharelens.questions.answers.measured import scope
from sharelens.source.request import CutChoice, Source
from sharelens.tables.opening import open_logs
from state_model.batches import coalesce, prune
from state_model.early_draft.replay import TERMINAL, apply
from state_model.share_records import StateBatch
from tests.what_if_runs import DRAINED, KEY, SMALL, answer_of, figures, simulated

pytestmark = pytest.mark.slow

INTERVALS = ((0, 10), (500, 60), (500, 5), (10, 40), (20, 3), (7, 500))
"""Updates between snapshots of two simulations; each history answers for the number of the other."""


BATCH = ("first_offset", "last_offset", "delivery_state", "delivery_count")


def seeds(seed_count):
    """Seeds of the test run, and many more for the soak."""
    return [pytest.param(seed, marks=() if seed < seed_count else pytest.mark.soak) for seed in range(200)]


def answers(capsys, option, evidence):
    """What-if by the value of the history and that of the question. `evidence`: words for each history."""
    return {
        (before, after): answer_of(capsys, "what-if", option, str(after), *words)
        for before, words in evidence.items()
        for after in evidence
    }


def with_config(folder, text, logs):
    """Words for the log directory of a simulation, with the broker's configuration in a file."""
    config = folder / f"{Path(logs).parent.name}.properties"
    config.write_text(text)
    return ("--broker-config", str(config), "--log-dir", logs)


def with_interval(records, seed):
    return simulated(replace(SMALL, snapshot_update_records=records), seed)


@pytest.mark.soak
@pytest.mark.parametrize("seed", seeds(2))
def test_another_snapshot_interval_gives_the_records_of_a_simulation_that_had_it(seed, capsys):
    pair = INTERVALS[seed % len(INTERVALS)]
    logs = {records: ("--log-dir", with_interval(records, seed)) for records in pair}
    answers_of = answers(capsys, "--snapshot-update-records", logs)
    for before, after in itertools.permutations(pair):
        assert all(row["in_history"] == row["at_least"] == row["at_most"] for row in answers_of[before, before])
        truth = figures(answers_of[after, after], "in_history")
        rows = figures(answers_of[before, after], "certainty", "at_least", "at_most")
        assert rows.keys() == truth.keys()
        certain = 0
        for key, (certainty, at_least, at_most) in rows.items():
            assert certainty == "inferred" or at_least <= truth[key][0] <= at_most, key
            assert certainty != "exact" or at_least == at_most
            certain += certainty == "exact"
        # A history without a cold snapshot does not show when the coordinator would have written some.
        assert certain > 0.9 * len(rows) or (before < after and any(key[3] == "cold_snapshots" for key in truth))


PLACES = ((3, 5), (1, 4), (8, 2), (50, 7))
"""Numbers of state partitions of two simulations."""


@pytest.mark.soak
@pytest.mark.parametrize("seed", seeds(2))
def test_another_number_of_state_partitions_places_as_a_simulation_that_had_it(seed, capsys):
    pair = PLACES[seed % len(PLACES)]
    logs = {count: simulated(replace(SMALL, state_partitions=count), seed) for count in pair}
    for before, after in itertools.permutations(pair):
        question = ("what-if", "--list", "--state-partitions", str(after), "--log-dir")
        truth = {
            tuple(row[name] for name in KEY): row["in_history"] for row in answer_of(capsys, *question, logs[after])
        }
        places = {
            tuple(row[name] for name in KEY): row["what_if"] for row in answer_of(capsys, *question, logs[before])
        }
        assert places == truth != {}
        balance, of_after = (
            answer_of(capsys, "what-if", "--state-partitions", str(after), "--log-dir", logs[count])
            for count in (before, after)
        )
        counted = {row["state_partition"]: row["in_history"] for row in of_after if row["figure"] == "share_partitions"}
        assert {
            row["state_partition"]: row["what_if"]
            for row in balance
            if row["figure"] == "share_partitions" and row["what_if"]
        } == {number: count for number, count in counted.items() if count}


LIMITS = ((5, 3), (10, 2), (4, 2), (6, 5))
"""Delivery count limits of two simulations."""


@pytest.mark.one_in(2)
@pytest.mark.parametrize("seed", seeds(2))
def test_another_delivery_count_limit_gives_the_outcomes_of_a_simulation_that_had_it(seed, tmp_path, capsys):
    pair = LIMITS[seed % len(LIMITS)]
    evidence = {
        limit: with_config(
            tmp_path,
            f"group.share.delivery.count.limit={limit}\n",
            simulated(replace(DRAINED, delivery_count_limit=limit), seed),
        )
        for limit in pair
    }
    answers_of = answers(capsys, "--delivery-count-limit", evidence)
    for before, after in itertools.permutations(pair):
        assert all(row["in_history"] == row["at_least"] == row["at_most"] for row in answers_of[before, before])
        truth = figures(answers_of[after, after], "in_history")
        rows = figures(answers_of[before, after], "certainty", "at_least", "at_most")
        compared = [key for key in rows if key[3] in ("archived_offsets", "deliveries")]
        assert compared
        for key in compared:
            certainty, at_least, at_most = rows[key]
            assert at_least <= truth[key][0] <= at_most, key
            assert certainty != "exact" or at_least == at_most
            assert certainty == "exact" or after > before


DURATIONS = ((15_000, 4_000), (15_000, 1_000), (3_000, 60_000))
"""Lock durations of two simulations."""


@pytest.mark.one_in(2)
@pytest.mark.parametrize("seed", seeds(2))
def test_outcomes_of_a_simulation_with_another_lock_duration_lie_inside_the_bounds(seed, tmp_path, capsys):
    pair = DURATIONS[seed % len(DURATIONS)]
    evidence = {
        lock_ms: with_config(
            tmp_path,
            f"group.share.record.lock.duration.ms={lock_ms}\ngroup.share.delivery.count.limit=5\n",
            simulated(replace(DRAINED, lock_duration_ms=lock_ms), seed),
        )
        for lock_ms in pair
    }
    answers_of = answers(capsys, "--lock-duration", evidence)
    for before, after in itertools.permutations(pair):
        same = [row for row in answers_of[before, before] if row["figure"] != "timed_out"]
        assert all(row["at_least"] == row["at_most"] == row["in_history"] for row in same)
        truth = figures(answers_of[after, after], "in_history")
        rows = figures(answers_of[before, after], "at_least", "at_most")
        assert rows.keys() == truth.keys()
        for key, (at_least, at_most) in rows.items():
            assert key[3] == "timed_out" or at_least <= truth[key][0] <= at_most, key


def test_the_offsets_that_a_lower_limit_gives_up_are_those_that_a_simulation_with_it_archived(capsys):
    first = simulated(replace(DRAINED, delivery_count_limit=6), 1)
    second = simulated(replace(DRAINED, delivery_count_limit=2), 1)
    listed = answer_of(capsys, "what-if", "--delivery-count-limit", "2", "--list", "--log-dir", first)
    assert {row["certainty"] for row in listed} == {"exact"}
    archived = answer_of(
        capsys, "poison", "--log-dir", second, "--columns", "group,topic_id,partition,offset,last_offset"
    )
    offsets = {(row["group_id"], row["topic_id"], row["partition"], row["offset"]) for row in archived}
    assert {"acknowledged", "archived"} >= {row["outcome"] for row in listed}
    for row in listed:
        for offset in range(row["first_offset"], row["last_offset"] + 1):
            assert (row["group_id"], row["topic_id"], row["partition"], offset) in offsets


@pytest.mark.soak
@pytest.mark.parametrize("seed", seeds(2))
def test_both_designs_hold_the_same_state_after_the_writes_of_a_simulation(seed, capsys):
    logs = with_interval(INTERVALS[seed % len(INTERVALS)][1], seed)
    compared = 0
    with open_logs(Source(log_dirs=(logs,))) as evidence:
        for part in scope(evidence, KeyFilter(), CutChoice()).parts:
            histories = Histories.of(part.history, part.deliveries)
            final = {}
            for place, _, records in draft_writes(histories, deltas_per_checkpoint=20):
                state = None
                for offset, record in enumerate(records):
                    state = apply(state, offset, record)
                final[tuple(histories.places.select(KEY).slice(place, 1).to_pylist()[0].values())] = state
            for row in answer_of(capsys, "state", "--log-dir", logs):
                state = final[tuple(row[name] for name in KEY)]
                batches = [StateBatch(*(batch[name] for name in BATCH)) for batch in row["state_batches"]]
                if state is None:
                    assert batches == []
                    continue
                assert state.delivered() == coalesce(prune(batches, state.start_offset))
                assert all(
                    batch.delivery_state in TERMINAL for batch in batches if batch.last_offset < state.start_offset
                )
                compared += 1
    assert compared > 0
