"""Every profile with and without faults: the journals, Kafka's own tool, and our pipeline against the broker."""

import shlex
import subprocess
import time
from pathlib import Path

import pytest

from sharelens.workloads.load import Amount
from sharelens.workloads.member import Orders, command
from sharelens.workloads.profiles import PROFILES
from tests.broker.workload_runs import (
    Supervised,
    asked_state,
    assert_kafkas_tool_reads,
    audit_errors,
    checkpoints_of,
    compare_checkpoints,
    pipeline_states,
    run_profiles,
    told_state,
)
from tests.depths import in_soak

pytestmark = pytest.mark.components

AMOUNT = Amount(duration_s=1.5, rate=100)
LIVES = {
    "undisturbed": [],
    "disturbed": [
        (
            "api=ShareAcknowledge,action=lose,probability=0.1,seed=1,count=5",
            "api=ShareAcknowledge,action=error:NOT_LEADER_OR_FOLLOWER,probability=0.1,seed=2,count=10",
            "api=ShareFetch,action=delay:100ms,probability=0.1,seed=3",
            "api=ShareFetch,action=close,probability=0.02,seed=4,count=5",
            "api=Produce,action=lose,probability=0.1,seed=5,count=5",
            "api=ShareGroupHeartbeat,action=drop,after=20,count=1",
            "append=__share_group_state,action=error,probability=0.05,seed=6,count=10",
        ),
    ],
    "crashing": [
        ("append=t-steady,action=crash_before,after=2",),
        ("append=__share_group_state,action=torn,after=40",),
        ("append=__share_group_state,action=crash_after,after=40",),
        ("append=__share_group_state,action=crash_before,after=40",),
    ],
}


@pytest.mark.parametrize("situation", ["disturbed", *in_soak("crashing", "undisturbed")])
def test_no_profile_sees_what_the_broker_must_not_do_and_the_logs_say_the_same(situation, tmp_path):
    log_dir = tmp_path / "log"
    with Supervised(log_dir, LIVES[situation]) as supervised:
        observations = run_profiles(supervised.broker.bootstrap, tmp_path, PROFILES, AMOUNT)
        assert {name: checked.findings for name, checked in observations.items() if checked.findings} == {}
        assert all(checked.counts["committed"] > 0 for checked in observations.values())
        assert supervised.deaths == (len(LIVES[situation]) if situation == "crashing" else 0)
        rows = pipeline_states(log_dir)
        assert {row["group_id"] for row in rows} >= {"g-steady", "g-many-groups-8"}
        output = {(row["group_id"], row["topic"], row["partition"]): told_state(row) for row in rows}
        requested = {
            (row["group_id"], row["topic"], row["partition"]): asked_state(supervised.broker.bootstrap, row)
            for row in rows
        }
        assert output == requested
        supervised.stop()
    compared = {name: compare_checkpoints(log_dir, checkpoints_of(tmp_path, name)) for name in PROFILES}
    assert {name: observations["after"] for name, observations in compared.items()} == {
        name: profile.resets + 1 for name, profile in PROFILES.items()
    }
    assert all(observations["initialized"] > 0 for observations in compared.values())
    assert sum(observations["during"] for observations in compared.values()) > 0
    assert assert_kafkas_tool_reads(log_dir) > 1_000
    assert audit_errors(log_dir, "4.4") == []


def test_a_member_process_ends_with_the_run_that_ordered_it():
    orders = Orders(bootstrap="127.0.0.1:1", group="g", topic="t", member="m", seed=0, lock_duration_ms=1_000)
    run = subprocess.Popen(
        ["sh", "-c", f"{shlex.join(command(orders))} & echo $!; wait"], stdout=subprocess.PIPE, text=True
    )
    assert run.stdout is not None
    output = [run.stdout.readline(), run.stdout.readline()]
    (member,) = [int(line) for line in output if line.strip().isdecimal()]
    assert any("joined" in line for line in output)
    run.kill()
    run.wait()
    deadline_s = time.monotonic() + 120
    while is_running(member):
        assert time.monotonic() < deadline_s, "it goes on without anybody to hear it"
        time.sleep(0.05)
    run.stdout.close()


def is_running(process_id):
    try:
        return Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
