"""The first line of the overview over copies of recorded logs: whole ones, ordinary ones, and ones that lack a log."""

import json
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from sharelens.broker.simulator.settings import PROFILES, profile
from sharelens.broker.simulator.simulation import simulate
from sharelens.cli import main
from sharelens.findings.rule import About
from sharelens.findings.rules import RULES
from sharelens.findings.thresholds import Thresholds
from sharelens.kafka_log.text_files import HIGH_WATERMARK_CHECKPOINT
from sharelens.parameters.filters import KeyFilter
from sharelens.parameters.times import time_text
from sharelens.questions.findings.signs import signs
from sharelens.source.request import CutChoice, Source
from sharelens.tables.opening import open_evidence
from tests.dataset_settings import given_settings
from tests.datasets import dataset
from tests.depths import in_soak
from tests.logs.metadata_logs import NO_OP, write_metadata
from tests.once import made_once
from tests.processes.in_process import make_lake
from tools.record_answers.logs import set_file_times, time_range

STATE, GROUPS = "__share_group_state-", "__consumer_offsets-"
NO_TROUBLE, UNJUDGED, TROUBLE = 0, 4, 3
LeftOut = Callable[[str], bool]
SMALL = {"records": 900, "state_partitions": 3, "partitions": 2, "groups": 4, "checkpoints": 3}
SIMULATED = {f"simulated {name}": (name, seed) for seed, name in enumerate(PROFILES)}


def of_a_user_topic(name: str) -> bool:
    """Whether a file or folder of a log directory is a partition of a user topic."""
    return re.fullmatch(r"(?!__).*-[0-9]+", name) is not None


def logs_of(scenario: str) -> Path:
    """The log of a scenario: a recorded one, or for a profile of the simulator one that it writes, once."""
    if scenario not in SIMULATED:
        return dataset(scenario) / "logs"
    name, seed = SIMULATED[scenario]
    return (
        made_once(f"simulated/{scenario}", lambda folder: simulate(profile(name, **SMALL), seed, folder / "logs"))
        / "logs"
    )


def copy_without(scenario: str, left_out: LeftOut, *, keeps_times: bool = True) -> Path:
    """A copy of a log without some files and folders, made once; its files have the times of a broker's."""
    logs = logs_of(scenario)

    def make(folder: Path) -> None:
        shutil.copytree(logs, folder / "logs")
        if keeps_times:
            set_file_times(folder / "logs", time_range(folder / "logs"))
        for path in (folder / "logs").iterdir():
            if left_out(path.name):
                shutil.rmtree(path) if path.is_dir() else path.unlink()

    there = "".join(str(int(left_out(path.name))) for path in sorted(logs.iterdir()))
    return made_once(f"copies/{scenario}-{int(there, 2):x}-{int(keeps_times)}", make) / "logs"


def answer(place: list[str], capsys: pytest.CaptureFixture[str], *options: str) -> tuple[int, dict[str, Any]]:
    """Exit code and answer of the overview with --fail-on."""
    capsys.readouterr()
    try:
        code = main(["overview", *place, *options, "--fail-on", "--output", "json"]) or 0
    except SystemExit as stop:
        code = int(stop.code or 0)
    return code, json.loads(capsys.readouterr().out)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A copy and what the overview says of it. `worst`: kind, group and result of its first finding."""

    scenario: str
    left_out: LeftOut = lambda name: False
    keeps_times: bool = True
    options: tuple[str, ...] = ()
    line: str
    worst: tuple[str, str | None, str]
    code: int


SETTINGS = ("--group-configs", "{folder}/groups.txt", "--broker-config", "{folder}/server.properties")
CASES = {
    "a copy without its times": Case(
        scenario="timeouts",
        keeps_times=False,
        line="no error found by .* rules; g-never: not judged: 2 share partitions unmoved for at least 41 s, "
        r"finished records behind; how long is not known \(--now TIME\)",
        worst=("stuck", "g-never", "not_judged"),
        code=TROUBLE,
    ),
    "a stall shorter than an unknown lock": Case(
        scenario="timeouts",
        line="no error found by .* rules; g-never: not yet judged: 3 share partitions unmoved for up to 1 min 41 s, "
        r"finished records behind; the lock duration is unknown \(--broker-config FILE",
        worst=("stuck", "g-never", "not_judged"),
        code=TROUBLE,
    ),
    "the same with the lock": Case(
        scenario="timeouts",
        options=("--broker-config", "{folder}/lock.properties"),
        line="ERROR: g-never: stands still at offset 19 of jobs-0 since .*, and 2 more share partitions$",
        worst=("stuck", "g-never", "found"),
        code=TROUBLE,
    ),
    "no state log": Case(
        scenario="timeouts",
        left_out=lambda name: name.startswith(STATE),
        line="NO VERDICT: 8 initialized share partitions, and no folder of the state log; copy __share_group_state-",
        worst=("no_state_log", None, "not_judged"),
        code=UNJUDGED,
    ),
    "half of the state log": Case(
        scenario="basic",
        left_out=lambda name: name in (f"{STATE}0", f"{STATE}1"),
        line="no error found by .* rules; 3 of 9 initialized share partitions lie in state partitions that aren't here "
        r"\(copy __share_group_state-1 and others\)",
        worst=("state_log_partial", None, "not_judged"),
        code=TROUBLE,
    ),
    "streams groups without the ends of topics": Case(
        scenario="streams-basic",
        left_out=lambda name: name == HIGH_WATERMARK_CHECKPOINT or of_a_user_topic(name),
        line="no error found by .* rules; lag of 2 groups not judged; .*replication-offset-checkpoint",
        worst=("no_members", None, "not_judged"),
        code=UNJUDGED,
    ),
    "streams groups": Case(
        scenario="streams-basic",
        line="nothing is wrong: 2 groups, 0 share partitions, 0 active tasks$",
        worst=("", None, ""),
        code=NO_TROUBLE,
    ),
    "a lag that Kafka 4.1 doesn't count": Case(
        scenario="v41",
        options=("--now", "2026-11-21T03:30:00Z"),
        line="ERROR: g-implicit: lag at most 195 in 2 share partitions, no members since ",
        worst=("no_members", "g-implicit", "found"),
        code=TROUBLE,
    ),
    "dead letters without their topic": Case(
        scenario="dlq",
        left_out=lambda name: name.startswith("dlq."),
        options=("--group", "gd-broken", *SETTINGS),
        line="no error found by .* rules; gd-broken: whereabouts of 69 records given up not judged in 3 share "
        r"partitions: the dead-letter topic is not in the evidence \(copy the folders of the dead-letter topic",
        worst=("dead_letters_missing", "gd-broken", "not_judged"),
        code=TROUBLE,
    ),
    "an ordinary copy": Case(
        scenario="basic",
        left_out=of_a_user_topic,
        options=("--group", "g-implicit"),
        line="nothing is wrong: 1 group, 3 share partitions$",
        worst=("no_members", "g-implicit", "found"),
        code=NO_TROUBLE,
    ),
}  # fmt: skip


@pytest.mark.one_in(3)
@pytest.mark.parametrize("source", ["log-dir", *in_soak("lake")])
@pytest.mark.parametrize("name", CASES)
def test_the_first_line_is_right_or_says_what_settles_it(
    name: str, source: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    case = CASES[name]
    logs = copy_without(case.scenario, case.left_out, keeps_times=case.keeps_times)
    place = ["--log-dir", str(logs)]
    if source == "lake":
        make_lake(tmp_path / "lake", logs)
        place = ["--lake", str(tmp_path / "lake")]
    (tmp_path / "lock.properties").write_text("group.share.record.lock.duration.ms=1500\n", encoding="utf-8")
    if case.options[-4:] == SETTINGS:
        given_settings(dataset(case.scenario), tmp_path)
    code, answered = answer(place, capsys, *(option.format(folder=tmp_path) for option in case.options))
    assert re.match(case.line, answered["verdict"]), answered["verdict"]
    worst = next(((row["kind"], row["group_id"], row["result"]) for row in answered["findings"]), ("", None, ""))
    assert (worst, code) == (case.worst, case.code)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("source", ["log-dir", "lake"])
def test_now_is_read_from_the_metadata_log_of_a_copy_without_its_times(
    source: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    logs = tmp_path / "logs"
    shutil.copytree(copy_without("timeouts", lambda name: False, keeps_times=False), logs)
    now_ms = time_range(logs).last_ms + 600_000
    write_metadata(logs, [(now_ms - 500, NO_OP), (now_ms, NO_OP)])
    place = ["--log-dir", str(logs)]
    if source == "lake":
        make_lake(tmp_path / "lake", logs)
        place = ["--lake", str(tmp_path / "lake")]
    code, overview = answer(place, capsys)
    assert code == TROUBLE
    assert re.match(
        r"ERROR: g-never: stands still at offset 19 of jobs-0 since 03:09:47 \(10 min 41 s", overview["verdict"]
    )
    assert main(["overview", *place]) == 0
    assert f"now {time_text(now_ms)}, 10 min" in capsys.readouterr().out


def test_the_lag_of_an_ordinary_copy_ends_where_the_checkpoint_says(capsys: pytest.CaptureFixture[str]) -> None:
    lags = []
    for left_out in (of_a_user_topic, lambda name: False):
        assert main(["lag", "--log-dir", str(copy_without("basic", left_out)), "--output", "json"]) == 0
        rows = json.loads(capsys.readouterr().out)
        lags.append({(row["group_id"], row["partition"]): (row["lag"], row["end_offset"]) for row in rows})
    assert lags[0] == lags[1]
    assert all(lag is not None for lag, _ in lags[0].values())


def results(logs: Path, now_ms: int, groups: set[str] | None = None) -> dict[tuple[str, str | None], str]:
    """found or not_judged by kind and group, of the rules about trouble; what is clear is absent.

    `groups`: gets the groups that the logs list.
    """
    judged: dict[tuple[str, str | None], str] = {}
    with open_evidence(Source(log_dirs=(str(logs),), takes_group_log=True)) as evidence:
        settings = evidence.settings.groups
        read = signs(evidence, KeyFilter(), CutChoice(now_ms=now_ms), settings, None)
        listed = [*read.share_groups, *(sign.group_id for sign in read.streams)]
        (set() if groups is None else groups).update(listed)
        for rule in RULES:
            for row in rule.judge(read, Thresholds(settings=settings)) if rule.about is About.TROUBLE else ():
                key = row.kind, row.group_id
                judged[key] = "found" if "found" in (row.result, judged.get(key)) else row.result
    return judged


REMOVED: dict[str, LeftOut] = {
    "group log": lambda name: name.startswith(GROUPS),
    "checkpoint": lambda name: name == HIGH_WATERMARK_CHECKPOINT,
    "user topics": of_a_user_topic,
}


@pytest.mark.one_in(3)
@pytest.mark.parametrize("later_ms", [63_000, *in_soak(3_600_000)])
@pytest.mark.parametrize("removed", REMOVED)
@pytest.mark.parametrize(
    "scenario",
    ["timeouts", *in_soak("dlq", *SIMULATED, "admin", "basic", "crash", "pruned", "transactions", "upgrade", "v44")],
)
def test_an_input_less_turns_no_finding_into_health_and_no_health_into_a_finding(
    scenario: str, removed: str, later_ms: int
) -> None:
    logs = copy_without(scenario, lambda name: False)
    assert any(REMOVED[removed](path.name) for path in logs.iterdir())
    now_ms = time_range(logs).last_ms + later_ms
    listed: set[str] = set()
    full, fewer = results(logs, now_ms), results(copy_without(scenario, REMOVED[removed]), now_ms, listed)
    turned = {key for key in full.keys() ^ fewer.keys() if "found" in (full.get(key), fewer.get(key))}
    assert {group for _, group in turned} <= {group for _, group in full} - listed


@pytest.mark.parametrize("scenario", ["timeouts", *in_soak("dlq", "edge", "upgrade")])
def test_what_a_state_partition_less_hides_is_not_judged_and_nothing_new_is_found(scenario: str) -> None:
    """Of groups that exist: that of a deleted one is listed by no other log."""
    logs = copy_without(scenario, lambda name: False)
    now_ms = time_range(logs).last_ms + 3_600_000
    full, hidden_count = results(logs, now_ms), 0
    for folder in (path.name for path in logs.iterdir() if path.name.startswith(STATE)):
        copy = copy_without(scenario, lambda name, left_out=folder: name == left_out)
        fewer = results(copy, now_ms)
        hidden = {key for key, result in full.items() if result == "found" and key not in fewer}
        assert not {key for key, result in fewer.items() if result == "found" and key not in full}
        with open_evidence(Source(log_dirs=(str(copy),), takes_group_log=True)) as evidence:
            assert {group for _, group in hidden} <= set(evidence.missing.by_group)
        hidden_count += len(hidden)
    assert hidden_count or scenario != "timeouts"
