"""Workloads in tests: a broker that is started again when it dies, runs of profiles, and what is asked afterwards."""

import threading
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from kio.schema.errors import ErrorCode

from sharelens.kafka_formats.messages.api_keys import ApiKey
from sharelens.parameters.filters import KeyFilter
from sharelens.questions.audits.audit import AuditChoice, audit
from sharelens.questions.state import state
from sharelens.source.request import CutChoice, Source
from sharelens.tables.logs.tables import open_log_tables
from sharelens.tables.opening import open_evidence
from sharelens.tables.where import Span
from sharelens.workloads.check import CheckResult, check
from sharelens.workloads.checkpoints import Checkpoints
from sharelens.workloads.journal import Journal, read_journal
from sharelens.workloads.load import Amount
from sharelens.workloads.profiles import PROFILES
from sharelens.workloads.run import Workload, WorkloadOptions
from sharelens.workloads.wire import ask
from tests.broker import running
from tests.broker.kafka_tools import DUMP_LOG_SEGMENTS, TIMEOUT_S, kafka_tool
from tests.broker.running import RunningBroker
from tests.compat.test_log_dir_answers import answerable, compare_states, first_offsets, key_of, lines

SETTINGS = {
    "group_share_min_heartbeat_interval_ms": 300,
    "group_share_min_record_lock_duration_ms": 1_000,
    "group_share_min_session_timeout_ms": 1_000,
    "group_share_assignment_interval_ms": 0,
    "offsets_topic_num_partitions": 4,
    "share_coordinator_state_topic_num_partitions": 4,
    "share_coordinator_snapshot_update_records_per_snapshot": 20,
    "transaction_state_log_num_partitions": 2,
    "log_index_interval_bytes": 512,
}
DEATHS_MAX = 1_000
PATIENCE_S = 120
"""A first question makes the broker read a state partition from its beginning; the machine may be busy."""
LEADER_EPOCHS_MAX = 2 * DEATHS_MAX + 10
STATE_DECODER, OFFSETS_DECODER = "--share-group-state-decoder", "--offsets-decoder"
INDEX_COMPLAINTS = ("isvalid: false", "Mismatches", "mismatch", "out of order", "not be found", "failed")


class Supervised:
    """A broker that dies by its faults and is started again at the same address, with the next faults of the list.

    Use as a context; after the last faults of the list it is started without any.
    """

    def __init__(self, log_dir: Path, lives: Sequence[Sequence[str]], **settings: object) -> None:
        self._log_dir, self._settings = log_dir, SETTINGS | settings
        self._lives = [*lives, ()]
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self.deaths = 0
        self.starts_s: list[float] = []
        self.broker: RunningBroker

    def __enter__(self) -> "Supervised":
        self.broker = self._start("127.0.0.1:0")
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._is_over.set()
        self.broker.kill()
        self._thread.join()

    def stop(self) -> None:
        """End it in order."""
        self._is_over.set()
        self._thread.join()
        assert self.broker.stop() == 0, self.broker.problems.read_text()[-2000:]

    def _start(self, listen: str) -> RunningBroker:
        faults = [f"--fault={rule}" for rule in self._lives[min(self.deaths, len(self._lives) - 1)]]
        begun_s = time.monotonic()
        broker = running.start(self._log_dir, "--feature", "share.version=2", *faults, listen=listen, **self._settings)
        self.starts_s.append(time.monotonic() - begun_s)
        return broker

    def _watch(self) -> None:
        while not self._is_over.wait(0.05):
            if self.broker.process.poll() is not None and self.deaths < DEATHS_MAX:
                self.broker.kill()
                self.deaths += 1
                self.broker = self._start(self.broker.bootstrap)


def run_profiles(bootstrap: str, folder: Path, names: Iterable[str], amount: Amount) -> dict[str, CheckResult]:
    """Run profiles side by side on one broker; what their journals show."""

    def run(name: str) -> CheckResult:
        path = folder / f"{name}.jsonl"
        requested = WorkloadOptions(
            bootstrap=bootstrap, profile=PROFILES[name], amount=amount, seed=7, topic=f"t-{name}", group=f"g-{name}"
        )
        journal = Journal(path)
        checkpoints = Checkpoints(checkpoints_of(folder, name), bootstrap, requested.topic, requested.groups)
        try:
            Workload(requested, journal, checkpoints).run()
        finally:
            journal.close()
            checkpoints.close()
        return check(read_journal(path))

    expected = list(names)
    with ThreadPoolExecutor(len(expected)) as pool:
        return dict(zip(expected, pool.map(run, expected), strict=True))


def checkpoints_of(folder: Path, profile: str) -> Path:
    """Where a profile's run keeps its checkpoints."""
    return folder / f"{profile}.checkpoints.jsonl"


def pipeline_states(log_dir: Path) -> list[dict]:
    """The answer of `sharelens state --log-dir` as rows."""
    with open_evidence(Source(log_dirs=(str(log_dir),), include_uncommitted=True)) as evidence:
        return state(evidence, KeyFilter(), CutChoice()).table.to_pylist()


def compare_checkpoints(log_dir: Path, path: Path) -> Counter[str]:
    """Hold `sharelens state --at-offset` to every checkpoint of a run; how many were taken when, and what they told.

    Each checkpoint speaks of the state partitions that stood still, so only their share partitions are compared.
    """
    counts: Counter[str] = Counter()
    first = first_offsets(log_dir)
    with open_evidence(Source(log_dirs=(str(log_dir),), include_uncommitted=True)) as evidence:
        for checkpoint in lines(path):
            assert answerable(checkpoint, first)
            requested = {(entry["group"], entry["topicId"], entry["partition"]) for entry in checkpoint["states"]}
            ends = {int(index): end for index, end in checkpoint["logEndOffsets"].items() if int(index) in first}
            cut = CutChoice(at_offsets={index: end - 1 for index, end in ends.items()})
            rows = [row for row in state(evidence, KeyFilter(), cut).table.to_pylist() if key_of(row) in requested]
            counts["share partitions"] += compare_states(checkpoint, rows)
            counts["initialized"] += len(rows)
            counts[checkpoint["name"].split()[0]] += 1
    return counts


def read_state(bootstrap: str, group: str, topic_id: object, partition: int, leader_epoch: int) -> Any:
    """ReadShareGroupState's answer, asked with the lowest leader epoch that is not fenced: so it changes nothing.

    The coordinator remembers the highest epoch that it saw; a state may have been initialised again since then.
    """
    while True:
        topics = [{"topic_id": topic_id, "partitions": [{"partition": partition, "leader_epoch": leader_epoch}]}]
        body = {"group_id": group, "topics": topics}
        answer = ask(bootstrap, ApiKey.READ_SHARE_GROUP_STATE, 0, body, timeout_s=PATIENCE_S)
        actual = answer.results[0].partitions[0]
        if actual.error_code is not ErrorCode.fenced_leader_epoch:
            assert actual.error_code is ErrorCode.none, actual
            return actual
        leader_epoch += 1
        assert leader_epoch < LEADER_EPOCHS_MAX


def batches_of(actual: Any) -> dict[int, tuple[int, int]]:
    """{offset: (delivery state, delivery count)} of such an answer."""
    return by_offset(
        (each.first_offset, each.last_offset, each.delivery_state, each.delivery_count) for each in actual.state_batches
    )


def asked_state(bootstrap: str, row: dict) -> dict:
    """The broker's answer for a row of the pipeline."""
    at = row["group_id"], row["topic_id"], row["partition"]
    actual = read_state(bootstrap, *at, leader_epoch=max(0, row["leader_epoch"]))
    return {"state_epoch": actual.state_epoch, "start_offset": actual.start_offset, "offsets": batches_of(actual)}


def told_state(row: dict) -> dict:
    """The same of the pipeline's row."""
    batches = row["state_batches"]
    return {
        "state_epoch": row["state_epoch"],
        "start_offset": row["start_offset"],
        "offsets": by_offset(
            (each["first_offset"], each["last_offset"], each["delivery_state"], each["delivery_count"])
            for each in batches
        ),
    }


def by_offset(batches: Iterable[tuple[int, int, int, int]]) -> dict[int, tuple[int, int]]:
    """{offset: (delivery state, delivery count)} of ranges of a test's size."""
    return {
        offset: (delivery_state, delivery_count)
        for first, last, delivery_state, delivery_count in batches
        for offset in range(first, last + 1)
    }


def audit_errors(log_dir: Path, version: str) -> list[dict[str, Any]]:
    """The errors that the audit finds in the log of a broker that follows the rules of a Kafka version."""
    choice = AuditChoice(version=version, severity="error")
    with open_log_tables(Source(log_dirs=(str(log_dir),), needs_state_log=False)) as evidence:
        report = audit(evidence, KeyFilter(), Span(), choice)
    findings: list[dict[str, Any]] = report.parts["findings"].table.to_pylist()
    return findings


def assert_kafkas_tool_reads(log_dir: Path, *, timeout_s: float = TIMEOUT_S) -> int:
    """DumpLogSegments reads every segment and finds no fault with any index; how many records it printed."""
    printed = 0
    for prefix, decoder in (("__share_group_state", STATE_DECODER), ("__consumer_offsets", OFFSETS_DECODER), ("", "")):
        folders = [path for path in log_dir.iterdir() if path.is_dir() and _belongs(path.name, prefix)]
        files = sorted(
            path
            for folder in folders
            for path in folder.iterdir()
            if path.suffix in (".log", ".index", ".timeindex", ".txnindex") and path.stat().st_size
        )
        assert files
        decoded = [decoder] if decoder else []
        done = kafka_tool(
            DUMP_LOG_SEGMENTS,
            *decoded,
            "--print-data-log",
            "--files",
            ",".join(str(path) for path in files),
            timeout_s=timeout_s,
        )
        complaints = [line for line in done.lines for bad in INDEX_COMPLAINTS if bad in line]
        assert complaints == []
        printed += done.out.count("| offset: ")
    return printed


def _belongs(folder: str, prefix: str) -> bool:
    return folder.startswith(prefix) if prefix else not folder.startswith("__")
