"""Simulations: they repeat themselves, and our pipeline reads from their logs what they say is true."""

import hashlib
import json
import os
import subprocess
import sys
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharelens.broker.simulator.settings import PROFILES, Habits, SimulationError, SimulationSettings, profile
from sharelens.broker.simulator.simulation import simulate
from sharelens.cli import main
from sharelens.cli.simulate import PROFILE_NAMES
from tests.compat.test_log_dir_answers import answerable, at_offsets, compare_states, first_offsets, lines
from tests.depths import examples
from tests.processes.in_process import make_lake

pytestmark = pytest.mark.slow

SMALL = {"records": 900, "state_partitions": 3, "partitions": 2, "groups": 4, "checkpoints": 3}
ACCEPT, REJECT = 1, 3


def digest(directory):
    """One hash of all names and bytes."""
    actual = hashlib.sha256()
    for path in sorted(directory.rglob("*")):
        if path.is_file():
            actual.update(f"{path.relative_to(directory)}\0{path.stat().st_size}\0".encode() + path.read_bytes())
    return actual.hexdigest()


def states(capsys, *words):
    assert main(["state", *words, "--output", "json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_equal_seeds_give_equal_files_and_other_seeds_others(tmp_path):
    requested = profile("admin", **SMALL)
    first, second, other = tmp_path / "first", tmp_path / "second", tmp_path / "other"
    simulate(requested, 5, first)
    simulate(requested, 5, second)
    simulate(requested, 6, other)
    assert digest(first) == digest(second) != digest(other)


@pytest.mark.soak
def test_files_do_not_depend_on_the_hashes_of_a_process(tmp_path):
    command = ["simulate", "--records", "500", "--seed", "3", "--profile", "admin"]
    for hash_seed in ("1", "2"):
        subprocess.run(
            [sys.executable, "-m", "sharelens", *command, "--log-dir", str(tmp_path / hash_seed)],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            check=True,
            capture_output=True,
        )
    assert digest(tmp_path / "1") == digest(tmp_path / "2")


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", PROFILES)
def test_the_pipeline_reads_what_the_coordinator_answered(name, tmp_path, capsys):
    logs = tmp_path / "logs"
    simulated = simulate(profile(name, **SMALL), 11, logs)
    assert simulated.counts.state_records >= SMALL["records"]
    first, compared = first_offsets(logs), 0
    checkpoints = list(lines(simulated.checkpoints))
    assert len(checkpoints) == SMALL["checkpoints"]
    for checkpoint in checkpoints:
        assert answerable(checkpoint, first)
        rows = states(capsys, "--log-dir", str(logs), "--at-offset", at_offsets(checkpoint, first))
        compared += compare_states(checkpoint, rows)
    assert compared > 0


@pytest.mark.soak
def test_a_lake_of_a_simulated_log_answers_the_same(tmp_path, capsys):
    logs, lake = tmp_path / "logs", tmp_path / "lake"
    simulated = simulate(profile("poison", restarts=2, **SMALL), 2, logs)
    make_lake(lake, logs)
    *_, last = lines(simulated.checkpoints)
    assert compare_states(last, states(capsys, "--lake", str(lake))) > 0


HABITS = st.builds(
    Habits,
    singly=st.sampled_from([0.0, 0.3]),
    mixed=st.sampled_from([0.0, 0.3]),
    forgets=st.sampled_from([0.0, 0.2]),
    renews=st.sampled_from([0.0, 0.2]),
    releases=st.sampled_from([0.0, 0.3]),
    rejects=st.sampled_from([0.0, 0.3]),
    dies=st.sampled_from([0.0, 0.05]),
    leaves=st.sampled_from([0.0, 0.05]),
)
SETTINGS = st.builds(
    SimulationSettings,
    records=st.integers(20, 300),
    groups=st.integers(1, 4),
    topics=st.integers(1, 2),
    partitions=st.integers(1, 3),
    members=st.integers(1, 3),
    state_partitions=st.integers(1, 3),
    batch_records=st.integers(1, 12),
    delivery_count_limit=st.integers(2, 5),
    kafka_version=st.sampled_from(["4.3", "4.4"]),
    admin_interval_ms=st.sampled_from([0, 500]),
    restarts=st.integers(0, 2),
    checkpoints=st.integers(1, 3),
    habits=HABITS,
)


@given(requested=SETTINGS, seed=st.integers(0, 1 << 32))
@examples("simulation")
def test_of_any_simulation_the_log_says_what_is_true(requested, seed, tmp_path_factory, capsys):
    logs = tmp_path_factory.mktemp("simulated") / "logs"
    simulated = simulate(requested, seed, logs)
    first = first_offsets(logs)
    for checkpoint in lines(simulated.checkpoints):
        if answerable(checkpoint, first):
            compare_states(
                checkpoint, states(capsys, "--log-dir", str(logs), "--at-offset", at_offsets(checkpoint, first))
            )


def test_nothing_is_delivered_again_once_its_end_was_confirmed(tmp_path):
    requested = profile("poison", admin_interval_ms=0, **SMALL)
    ended, deliveries = set(), 0
    for entry in lines(simulate(requested, 4, tmp_path / "logs").deliveries):
        if "e" in entry:
            continue
        group = entry["member"].rpartition("-")[0]
        place = (group, entry["topic"], entry["partition"])
        for first, last, count in entry.get("ranges", ()):
            assert count <= requested.delivery_count_limit
            output = {(*place, offset) for offset in range(first, last + 1)}
            assert not output & ended
            deliveries += len(output)
        for first, last, types in entry.get("batches", ()) if entry.get("error") == 0 else ():
            kinds = types * (last - first + 1) if len(types) == 1 else types
            ended |= {(*place, first + index) for index, kind in enumerate(kinds) if kind in (ACCEPT, REJECT)}
    assert deliveries > len(ended) > 0


def test_dead_letters_reach_their_topics(tmp_path):
    logs = tmp_path / "logs"
    simulate(profile("dead-letters", **SMALL), 1, logs)
    letters = [path for path in logs.glob("dlq.*-*/*.log") if path.stat().st_size]
    assert letters


def test_what_can_not_be_simulated_is_refused(tmp_path):
    with pytest.raises(SimulationError, match="groups=0"):
        simulate(replace(SimulationSettings(), groups=0), 0, tmp_path / "a")
    with pytest.raises(SimulationError, match=r"came with Kafka 4\.4"):
        simulate(replace(SimulationSettings(), has_dead_letters=True), 0, tmp_path / "b")
    with pytest.raises(SimulationError, match="at most 4096"):
        simulate(replace(SimulationSettings(), partitions=5_000), 0, tmp_path / "c")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "evidence").touch()
    with pytest.raises(SimulationError, match="is not empty"):
        simulate(SimulationSettings(), 0, tmp_path / "full")


def test_the_command_offers_every_profile_and_prints_a_summary(tmp_path, capsys):
    assert tuple(PROFILES) == PROFILE_NAMES
    logs = tmp_path / "logs"
    assert main(["simulate", "--log-dir", str(logs), "--records", "300", "--seed", "9"]) == 0
    output = json.loads(capsys.readouterr().out)
    assert output["state_records"] >= 300
    assert main(["simulate", "--log-dir", str(logs)]) == 1
    assert "is not empty" in capsys.readouterr().err
