"""Measures go through the histories in parts; how these are cut changes no answer."""

import json
import sys
from collections.abc import Callable, Iterator

import pyarrow as pa
import pytest

from sharelens.cli import main
from sharelens.evidence.as_of import LogPrefix
from sharelens.kafka_log.reader import Chunk
from sharelens.tables.lakes.tables import LakeTables
from sharelens.tables.logs import tables as log_evidence
from sharelens.tables.logs.state import StateLog
from sharelens.tables.logs.tables import LogTables
from sharelens.tables.parts import Part
from sharelens.tables.port import Tables
from tests.logs.state_logs import START_MS, snapshot, tombstone, update, write_log_directory
from tests.processes.in_process import make_lake
from tests.whole_scans import refuse_whole_scans

pytestmark = pytest.mark.slow

ACKNOWLEDGED, ARCHIVED = 2, 4
MINUTE_MS = 60_000
Read = Callable[[Tables, pa.Table, LogPrefix], Part]
QUESTIONS = {
    "poison": ["poison"],
    "poison with gaps": ["poison", "--gaps"],
    "poison of earlier": ["poison", "--as-of", str(START_MS + 3 * MINUTE_MS)],
    "redelivered": ["redelivered"],
    "redelivered of earlier": ["redelivered", "--as-of", str(START_MS + 5 * MINUTE_MS)],
    "stalled": ["stalled", "--idle"],
    "life": ["life"],
    "dlq": ["dlq"],
    "account": ["account"],
    "account, listed": ["account", "--class", "open", "--class", "archived"],
    "cost": ["cost"],
    "cost of state partitions": ["cost", "--state-partitions"],
    "latency": ["latency"],
    "latency by hour": ["latency", "--by", "hour"],
    "latency by partition": ["latency", "--by", "partition"],
    "attempts": ["attempts"],
    "attempts of earlier": ["attempts", "--as-of", str(START_MS + 3 * MINUTE_MS)],
    "attempts by hour and partition": ["attempts", "--by", "hour", "--by", "partition"],
    "one group": ["redelivered", "--group", "h"],
    "cost of the early design": ["cost", "--compare-early-draft"],
    "another delivery count limit": ["what-if", "--delivery-count-limit", "2"],
    "offsets of another delivery count limit": ["what-if", "--delivery-count-limit", "2", "--list"],
    "another lock duration": ["what-if", "--lock-duration", "1s"],
    "another snapshot interval": ["what-if", "--snapshot-update-records", "2"],
}
ROUGHLY_CUT = ("poison with gaps", "latency by hour")
"""Asked in larger parts too; the others are in the soak."""


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Two groups, three partitions each, a deletion among them; as a log, and as a lake that runs measured."""
    folder = tmp_path_factory.mktemp("parts")
    story = []
    for minute, partition in enumerate([2, 0, 1]):
        for group in ("h", "g"):
            at_ms = START_MS + minute * MINUTE_MS
            again = [(3, 6, ACKNOWLEDGED, 2), (7, 7, ARCHIVED, 5)]
            story += [
                snapshot(group, partition, start=0, at_ms=at_ms),
                update(group, partition, batches=[(0, 2, ACKNOWLEDGED, 1), (3, 7, 0, 1)], at_ms=at_ms + 1),
                update(group, partition, start=3, batches=again, at_ms=at_ms + 3 * MINUTE_MS),
            ]
    story.sort(key=lambda record: int(record["timestamp_ms"]))
    story.append(tombstone("h", 1, at_ms=START_MS + 9 * MINUTE_MS))
    story.append(snapshot("h", 1, start=0, epoch=1, at_ms=START_MS + 9 * MINUTE_MS + 1))
    story.append(update("h", 1, batches=[(3, 4, ACKNOWLEDGED, 2)], at_ms=START_MS + 9 * MINUTE_MS + 2))
    logs = write_log_directory(folder / "logs", story)
    make_lake(folder / "lake", logs)
    return {"--log-dir": str(logs), "--lake": str(folder / "lake")}


@pytest.fixture
def ask(sources: dict[str, str], capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[object, str]]:
    """The rows of a question and what is said beside them, without where the evidence lies."""

    def answer_of(source: str, *words: str) -> tuple[object, str]:
        code = main([*words, source, sources[source], "--output", "json"])
        out, err = capsys.readouterr()
        assert code == 0, err
        return json.loads(out), err.replace(sources[source], "the evidence")

    return answer_of


@pytest.fixture
def _threads_alternate() -> Iterator[None]:
    """Threads take turns as often as they can, so that work that they share without a lock shows."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


@pytest.mark.one_in(2)
@pytest.mark.usefixtures("_threads_alternate")
@pytest.mark.parametrize("question", QUESTIONS)
def test_cut_into_share_partitions_the_histories_give_the_same_answer_and_no_question_holds_more_than_a_part(
    ask: Callable[..., tuple[object, str]], monkeypatch: pytest.MonkeyPatch, question: str
):
    uncut_answers = {source: ask(source, *QUESTIONS[question]) for source in ("--log-dir", "--lake")}
    for evidence in (LogTables, LakeTables):
        read = evidence.read_part

        def read_part(self: Tables, places: pa.Table, cut: LogPrefix, read: Read = read) -> Part:
            assert places.num_rows == 1
            return read(self, places, cut)

        monkeypatch.setattr(evidence, "part_records", 1)
        monkeypatch.setattr(evidence, "read_part", read_part)
        refuse_whole_scans(monkeypatch, evidence)
    for source, expected in uncut_answers.items():
        assert ask(source, *QUESTIONS[question]) == expected
    assert uncut_answers["--lake"][0] == uncut_answers["--log-dir"][0]
    assert uncut_answers["--lake"][0] or question == "dlq"


@pytest.mark.usefixtures("_threads_alternate")
@pytest.mark.parametrize(
    "question",
    [pytest.param(question, marks=() if question in ROUGHLY_CUT else pytest.mark.soak) for question in QUESTIONS],
)
def test_cut_into_larger_parts_the_histories_give_the_same_answer(
    ask: Callable[..., tuple[object, str]], monkeypatch: pytest.MonkeyPatch, question: str
):
    uncut_answers = {source: ask(source, *QUESTIONS[question]) for source in ("--log-dir", "--lake")}
    for evidence in (LogTables, LakeTables):
        monkeypatch.setattr(evidence, "part_records", 5)
    for source, expected in uncut_answers.items():
        assert ask(source, *QUESTIONS[question]) == expected


@pytest.mark.parametrize("question", ["poison", "latency by hour", "overview"])
def test_a_small_log_is_read_once_and_a_large_log_answers_the_same(
    ask: Callable[..., tuple[object, str]], monkeypatch: pytest.MonkeyPatch, question: str
):
    readings = []
    read_raw = StateLog.read_raw

    def counting(self: StateLog) -> Iterator[Chunk]:
        readings.append(self.number)
        return read_raw(self)

    monkeypatch.setattr(StateLog, "read_raw", counting)
    words = QUESTIONS.get(question, [question])
    small = ask("--log-dir", *words)
    assert readings == [0]
    monkeypatch.setattr(log_evidence, "KEPT_BYTES", 0)
    assert ask("--log-dir", *words) == small
    assert len(readings) > 2


@pytest.mark.parametrize("question", ["poison", "redelivered"])
def test_what_a_run_measured_is_what_the_histories_tell(ask: Callable[..., tuple[object, str]], question: str):
    end = str(START_MS + 20 * MINUTE_MS)
    measured, _ = ask("--lake", question)
    computed, _ = ask("--lake", question, "--as-of", end)
    assert measured == computed
