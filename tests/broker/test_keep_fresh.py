"""A lake that one process keeps up to date with a broker: as the page says, while either is killed, and for minutes."""

import json
import os
import random
import shlex
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from prometheus_client.parser import text_string_to_metric_families

from bench.state_load import WINDOW, Coordinator, prepare
from sharelens.cli import main
from sharelens.lake.scan import open_lake
from sharelens.lake.tables import TABLES
from sharelens.measures.settings.over_time import ISOLATION_LEVEL
from sharelens.workloads.load import Amount
from tests.broker import running
from tests.broker.live.test_live_lake import COMPARED, consumed, run
from tests.broker.running import RunningBroker
from tests.broker.share_clients import SHARE_SETTINGS
from tests.broker.workload_runs import Supervised, run_profiles
from tests.depths import in_soak
from tests.lakes import content, differences
from tests.pages import DOCS, blocks

PAGE = DOCS / "how-to" / "keep-a-lake-fresh.md"
READY = "ready: "
PATIENCE_S = 120
LAST_SUCCESS = ("sharelens_last_success_timestamp_seconds",)
SOAK_S = 600
MEANT_CYCLES = 400
"""From so many runs on the processor time of a hundred of them is a mean worth comparing."""
OPEN_IN_A_RUN = 5
"""Files and connections that a run may have open when it is looked at."""
OF_LIMIT = "archived_below_limit"
"""The rule that needs a group's delivery count limit."""
OF_SETTINGS = (
    "cause", "cause_source", "delivery_count_limit", "delivery_count_limit_source", "window_limit",
    "window_limit_source", "throttled_offsets_inferred",
)  # fmt: skip
MIXED = ("poison", "crash-loop", "transactions", "slow-consumer")


class Keeper:
    """A process that keeps a lake fresh; `summaries` are all that it and those before it printed."""

    def __init__(self, lake: Path, *words: str) -> None:
        self.lake = lake
        self._words = [*words, "--listen", "127.0.0.1:0"]
        self._problems = lake.with_name("keeper.stderr")
        self.output = lake.with_name("keeper.stdout")
        self.output.touch()
        self._looked_at = 0
        self._read_to, self._summaries = 0, list[dict[str, Any]]()
        self.start()

    def start(self) -> None:
        """Starts the process, behind an earlier one."""
        self._problems.write_bytes(b"")
        with self.output.open("ab") as output, self._problems.open("ab") as stderr:
            command = [sys.executable, "-m", "sharelens", *self._words]
            self.process = subprocess.Popen(command, stdout=output, stderr=stderr)
        until(lambda: READY in self.text() or self.process.poll() is not None)
        assert self.process.poll() is None, self.problems()

    def problems(self) -> str:
        return self._problems.read_text()

    def text(self) -> str:
        return self.problems() + self.output.read_text()

    def metrics(self) -> dict[tuple[str, ...], float]:
        """Values by name and label values."""
        (address,) = (line.removeprefix(READY) for line in self.text().splitlines() if line.startswith(READY))
        with urllib.request.urlopen(address, timeout=10) as page:
            families = text_string_to_metric_families(page.read().decode())
        return {(sample.name, *sample.labels.values()): sample.value for each in families for sample in each.samples}

    def end(self) -> int:
        """Ends it in order."""
        self.process.terminate()
        return self.process.wait(PATIENCE_S)

    def summaries(self) -> list[dict[str, Any]]:
        """Those of whole lines; each is read once."""
        with self.output.open("rb") as output:
            output.seek(self._read_to)
            lines = output.read().rpartition(b"\n")[0].splitlines()
        self._read_to += sum(len(line) + 1 for line in lines)
        self._summaries += (json.loads(line) for line in lines)
        return self._summaries

    def runs(self) -> list[dict[str, Any]]:
        """The summaries of runs that published a cut."""
        return [summary for summary in self.summaries() if summary["command"] == "run" and summary["run_id"]]

    def run_ids(self) -> list[int]:
        """Those of runs and upkeeps that published, in their order."""
        return [summary["run_id"] for summary in self.summaries() if summary["run_id"]]

    def has_partitions(self, count: int) -> bool:
        """Whether the newest cut has so many share partitions; looks at the lake once for each run that published."""
        published = len(self.runs())
        if published == self._looked_at:
            return False
        self._looked_at = published
        return open_lake(self.lake).scan("gold.share_partition_state").num_rows >= count


@contextmanager
def keeping(lake: Path, *words: str) -> Iterator[Keeper]:
    keeper = Keeper(lake, *words)
    try:
        yield keeper
    finally:
        keeper.process.kill()
        keeper.process.wait(PATIENCE_S)


def until(condition: Callable[[], object], patience_s: float = PATIENCE_S) -> None:
    deadline_s = time.monotonic() + patience_s
    while not condition():
        assert time.monotonic() < deadline_s
        time.sleep(0.2)


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[RunningBroker]:
    running_broker = running.start(tmp_path / "log", **SHARE_SETTINGS)
    yield running_broker
    running_broker.kill()


def by_records(lake: Path) -> dict[str, pa.Table]:
    """The tables without what follows from settings, which a cluster tells and a log directory does not have."""
    tables = content(lake, COMPARED)
    findings = tables["gold.audit_finding"]
    tables["gold.audit_finding"] = findings.filter(pc.field("rule") != OF_LIMIT)
    return {
        name: rows.drop_columns([column for column in OF_SETTINGS if column in rows.column_names])
        for name, rows in tables.items()
    }


def lines_of_configs(lake: Path) -> Iterator[str]:
    """The isolation levels that the lake has, as kafka-configs describes them."""
    rows = open_lake(lake).scan("bronze.setting").sort_by("valid_from_ms").to_pylist()
    levels = {row["entity"]: row["value"] for row in rows if row["name"] == ISOLATION_LEVEL}
    for group, level in levels.items():
        yield f"Dynamic configs for group {group} are:\n  {ISOLATION_LEVEL}={level} sensitive=false synonyms={{}}\n"


def assert_that_of_directory(lake: Path, log_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every table equals that of a lake made at once from the directory of a broker that has ended, settings aside.

    The isolation levels of groups are no column: they decide which records wait, so the directory gets them as a file.
    """
    copied, settings = lake.with_name("copied"), lake.with_name("settings")
    settings.mkdir()
    (settings / "group-configs.txt").write_text("".join(lines_of_configs(lake)))
    run(capsys, copied, "--log-dir", str(log_dir), "--settings", str(settings))
    assert differences(by_records(lake), by_records(copied)) == []
    assert main(["audit", "--lake", str(lake), "--fail-on", "error", "--output", "json"]) == 0
    capsys.readouterr()


@pytest.mark.soak
def test_the_page_keeps_a_lake_fresh(broker: RunningBroker, tmp_path: Path) -> None:
    (line,) = next(block.commands for block in blocks(PAGE) if block.commands)
    words = shlex.split(line.replace("localhost:9092", broker.bootstrap).replace("./lake", str(tmp_path / "lake")))
    at = words.index("--listen")
    with keeping(tmp_path / "lake", *words[1:at]) as keeper:
        for count in (1, 2):
            consumed(broker)
            until(lambda count=count: keeper.has_partitions(count))
        until(lambda: keeper.metrics()["sharelens_upkeeps_total",] == 1)
        values = keeper.metrics()
        assert keeper.end() == 0
        runs = keeper.runs()
    numbers = [summary["run_id"] for summary in runs]
    assert numbers == sorted(set(numbers))
    assert values["sharelens_runs_total", "published"] <= len(runs)
    assert 0 < values["sharelens_run_freshness_seconds", "0.5"] < PATIENCE_S
    ages = [summary["freshness_ms"] for summary in runs if summary["rows"].get("silver.share_record")]
    assert ages
    assert all(0 <= age["newest"] <= age["oldest"] for age in ages)


@pytest.mark.soak
def test_a_broker_that_is_away_and_a_run_that_is_killed_lose_nothing_and_sigterm_ends_a_pause(
    broker: RunningBroker, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("run", "--lake", str(tmp_path / "lake"), "--bootstrap-server", broker.bootstrap, "--user-topics", "all")
    with keeping(tmp_path / "lake", *words, "--every", "500ms", "--maintain-every", "2s") as keeper:
        consumed(broker)
        until(lambda: keeper.has_partitions(1))
        broker.kill()
        until(lambda: keeper.metrics()["sharelens_run_up",] == 0)
        away = keeper.metrics()
        again = running.start(broker.log_dir, listen=broker.bootstrap, **SHARE_SETTINGS)
        try:
            until(lambda: keeper.metrics()["sharelens_run_up",] == 1)
            back = keeper.metrics()
            keeper.process.send_signal(signal.SIGKILL)
            keeper.process.wait(PATIENCE_S)
            killed = len(keeper.run_ids())
            consumed(again)
            keeper.start()
            until(lambda: keeper.has_partitions(2))
            time.sleep(1)
            assert "trying again" not in keeper.problems()
        finally:
            assert again.stop() == 0
        until(lambda: keeper.metrics()["sharelens_runs_total", "failed"] >= 3)
        begun_s = time.monotonic()
        assert keeper.end() == 0
        assert time.monotonic() - begun_s < PATIENCE_S / 2
        assert 1 <= keeper.problems().count("trying again") <= 3  # once for each text
    numbers = keeper.run_ids()
    for row in (numbers[:killed], numbers[killed:]):  # the run that was killed may have had one, those that failed none
        assert row == list(range(row[0], row[0] + len(row)))
    assert numbers[0] == 1
    success = ("sharelens_run_last_success_timestamp_seconds",)
    assert away[success] <= back[success]
    assert away["sharelens_runs_total", "failed"] >= 1
    assert_that_of_directory(keeper.lake, broker.log_dir, capsys)


@pytest.mark.soak
def test_minutes_of_mixed_work_with_kills_of_both(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dice = random.Random(19)
    seconds = float(os.environ.get("SHARELENS_SOAK_S", SOAK_S))
    memory: list[int] = []
    with Supervised(tmp_path / "log", [], offsets_topic_num_partitions=2) as supervised:
        broker = supervised.broker.bootstrap
        words = ("run", "--lake", str(tmp_path / "lake"), "--bootstrap-server", broker, "--user-topics", "all")
        work = threading.Thread(
            target=run_profiles, args=(broker, tmp_path, MIXED, Amount(rate=30, duration_s=seconds))
        )
        with keeping(tmp_path / "lake", *words, "--every", "2s", "--maintain-every", "30s") as keeper:
            work.start()
            kills = 0
            while work.is_alive():
                work.join(dice.uniform(5, 25))
                memory.append(running_memory(keeper))
                if kills % 2:
                    supervised.broker.process.kill()
                else:
                    keeper.process.kill()
                    keeper.process.wait(PATIENCE_S)
                    keeper.start()
                kills += 1
            until(lambda: keeper.metrics().get(("sharelens_runs_total", "no_news"), 0) >= 2)
            assert keeper.end() == 0
            summaries = keeper.summaries()
        supervised.stop()
    assert kills > seconds / 30
    assert sum(summary.get("gaps", 0) for summary in summaries) == 0
    assert max(memory[len(memory) // 2 :]) < 1.2 * max(memory[: len(memory) // 2])
    assert_that_of_directory(keeper.lake, tmp_path / "log", capsys)


def running_memory(keeper: Keeper) -> int:
    """Resident bytes of the process now."""
    return int(keeper.metrics()["process_resident_memory_bytes",])


@pytest.mark.soak
def test_an_exporter_says_that_its_cluster_is_away_and_goes_on_when_it_is_back(
    broker: RunningBroker, tmp_path: Path
) -> None:
    consumed(broker)
    words = ("metrics", "--bootstrap-server", broker.bootstrap, "--refresh", "500ms")
    with keeping(tmp_path / "lake", *words) as exporter:
        metrics_before = exporter.metrics()
        broker.kill()
        until(lambda: exporter.metrics()["sharelens_up",] == 0)
        away = exporter.metrics()
        again = running.start(broker.log_dir, listen=broker.bootstrap, **SHARE_SETTINGS)
        try:
            until(lambda: exporter.metrics()["sharelens_up",] == 1)
            back = exporter.metrics()
        finally:
            assert again.stop() == 0
        assert exporter.end() == 0
    lags = [name for name in metrics_before if name[0] == "kafka_sharegroup_lag"]
    assert lags
    assert not away.keys() & set(lags)
    assert {name: back[name] for name in lags} == {name: metrics_before[name] for name in lags}
    assert metrics_before[LAST_SUCCESS] <= away[LAST_SUCCESS] < back[LAST_SUCCESS]


@pytest.mark.parametrize("cycles", in_soak(12, 5000))
def test_runs_back_to_back_leave_few_files_and_take_no_more_memory_and_open_files(
    broker: RunningBroker, tmp_path: Path, cycles: int
) -> None:
    """A write of each share partition for each run; upkeep joins the files every other second.

    The window fills in the first hundred runs: its commits are files in the folders that each commit lists.
    """
    lake, group, partitions = tmp_path / "lake", "g-cycles", 10
    topic_id = prepare(broker.bootstrap, group, partitions)
    words = ("run", "--lake", str(lake), "--bootstrap-server", broker.bootstrap, "--every", "100ms")
    upkeep = ("--maintain-every", "2s", "--maintain-window", "1m")
    scrapes, stored = [], []
    with Coordinator(broker.bootstrap) as coordinator, keeping(lake, *words, *upkeep) as keeper:
        for number in range(1, cycles + 1):
            coordinator.write(group, topic_id, dict.fromkeys(range(partitions), number * WINDOW))
            until(lambda number=number: len(keeper.runs()) >= number)
            scrapes.append(keeper.metrics())
            if number % 100 == 0:
                stored.append(sum(len(files) for _, _, files in os.walk(lake)))
        assert keeper.end() == 0
        upkeeps = [summary for summary in keeper.summaries() if summary["command"] == "maintain"]
    early, late = scrapes[cycles // 4 : cycles // 2], scrapes[3 * cycles // 4 :]
    memory, files = ("process_resident_memory_bytes",), ("process_open_fds",)
    assert max(each[memory] for each in late) < 1.2 * max(each[memory] for each in early)
    assert min(each[files] for each in late) <= min(each[files] for each in early) + OPEN_IN_A_RUN
    if cycles >= MEANT_CYCLES:
        spent = [each["process_cpu_seconds_total",] for each in scrapes]
        assert spent[-1] - spent[-101] <= 1.2 * (spent[200] - spent[100])  # each hundred runs with their upkeep
        assert max(stored[len(stored) // 2 :]) <= 1.2 * max(stored[1 : len(stored) // 2])
    assert len(upkeeps) > 1
    assert all(upkeep["files_after"] < len(TABLES) for upkeep in upkeeps)
    assert not (lake / ".fetched").exists()
