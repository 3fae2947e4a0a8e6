"""Command lines: help, exit codes, and one clear line for everything that can't be meant."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from sharelens.cli import app, main
from sharelens.cli.options import common
from tests.depths import in_soak
from tests.logs.state_logs import START_MS, snapshot, update, write_log_directory

COMMANDS = tuple(app.cli.commands)
QUESTIONS = ("state", "records", "trace", "diff", "status")
Outcome = tuple[int, str, str]
Ask = Callable[..., Outcome]


@pytest.fixture
def ask(capsys: pytest.CaptureFixture[str]) -> Ask:
    """Runs a command line: exit code, stdout, stderr."""

    def run_command(*words: str) -> Outcome:
        code = main(list(words))
        return code, *capsys.readouterr()

    return run_command


@pytest.fixture
def logs(tmp_path: Path) -> str:
    story = [snapshot(), update(batches=[(0, 3, 0, 1)], at_ms=START_MS + 1000)]
    return str(write_log_directory(tmp_path / "logs", story))


def test_the_commands_of_the_design_are_there() -> None:
    expected = "run ingest decode replay state records trace diff status tables sql doctor demo"
    assert set(expected.split()) <= set(COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_help_page_has_an_example_and_a_purpose(ask: Ask, command: str) -> None:
    code, out, _ = ask(command, "--help")
    assert code == 0
    assert f"sharelens {command}" in out.partition("Example:")[2]
    assert app.cli.commands[command].help


@pytest.mark.slow
def test_help_starts_without_the_heavy_libraries() -> None:
    heavy = ("pyarrow", "numpy", "numba", "duckdb", "deltalake", "pyspark", "rich", "pandas", "yaml")
    imported = f"[name for name in {heavy} if name in sys.modules]"
    code = f"import sys; from sharelens.cli import main; main(['--help']); print({imported})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_the_version_is_the_packages(ask: Ask) -> None:
    from sharelens import __version__

    assert ask("--version")[:2] == (0, f"sharelens, version {__version__}\n")


@pytest.mark.slow
def test_python_m_sharelens_is_the_command(logs: str) -> None:
    words = [sys.executable, "-m", "sharelens", "state", "--log-dir", logs, "--output", "json"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert [row["group_id"] for row in json.loads(done.stdout)] == ["g"]


@pytest.mark.slow
def test_a_reader_that_leaves_early_is_no_failure(logs: str) -> None:
    line = f"'{sys.executable}' -m sharelens records --log-dir '{logs}' --output jsonl"
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {line} | head -c 1"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr.count("Traceback")) == (0, 0)


SOURCE = "give either --lake DIR (the tables) or --log-dir DIR"
BAD_LINES = {
    "nothing to ask": (["state"], 2, SOURCE),
    "two sources": (["state", "--lake", "L", "--log-dir", "D"], 2, SOURCE),
    "an option of clusters": (["state", "--lake", "L", "--user-topics", "all"], 2, "goes with --bootstrap-server"),
    "a cluster and a copy": (["run", "--lake", "L", "--log-dir", "D", "--bootstrap-server", "h:1"], 2, "exclude"),
    "a lake on HDFS": (["state", "--lake", "hdfs://name/lake"], 1, "no storage for hdfs:// URIs: reading files"),
    "a lake that lost a slash": (["run", "--lake", "s3:/b/l", "--log-dir", "logs"], 1, "no bucket in s3:/b/l; give s3://"),
    "a demo in a bucket": (["demo", "--set", "basic", "--lake", "s3://b"], 2, "s3://b is no folder of this machine"),
    "a log in an unknown store": (["state", "--log-dir", "foo://bucket"], 1, "no storage for foo:// URIs: known are"),
    "a limit beyond 64 bits": (["state", "--log-dir", "logs", "--limit", str(1 << 63)], 2, "--limit"),
    "an offset beyond 64 bits": (["records", "--log-dir", "logs", "--from-offset", str(1 << 63)], 2, "--from-offset"),
    "evidence to stdout": (
        ["evidence", "--log-dir", "D", "--group", "g", "--from", "0", "--to", "1", "--case", "c", "--out", "-"],
        2,
        "--out: - is no name here",
    ),
    "a plan to stdout": (["dlq", "plan", "--log-dir", "logs", "--out", "-"], 2, "--out: - is no name here"),
    "pages to stdout": (["check", "--lake", "L", "--data-docs", "-"], 2, "--data-docs: - is no name here"),
    "a journal to stdout": (["workload", "--profile", "steady", "--journal", "-"], 2, "--journal: - is no name here"),
    "a log to stdout": (["simulate", "--log-dir", "-"], 2, "--log-dir: - is no name here"),
    "an unknown command": (["stat"], 2, "No such command 'stat'"),
    "an unknown option": (["state", "--lak", "x"], 2, "No such option"),
    "an option without its value": (["state", "--lake"], 2, "requires an argument. (sharelens state --help shows how)"),
    "an option of a command's part without its value": (
        ["dlq", "plan", "--out"],
        2,
        "requires an argument. (sharelens dlq plan --help shows how)",
    ),
    "a log option for a lake": (["state", "--lake", "L", "--include-deleted"], 2, "go with --log-dir"),
    "two cuts": (["state", "--log-dir", "D", "--as-of", "0", "--at-offset", "0:1"], 2, "exclude"),
    "no zone": (
        ["state", "--log-dir", "D", "--as-of", "2026-11-21T05:00:00"],
        2,
        "names no zone; for UTC type --as-of 2026-11-21T05:00:00Z",
    ),
    "no zone in diff": (
        ["diff", "--log-dir", "D", "--from", "2026-11-21", "--to", "0"],
        2,
        "for UTC type --from 2026-11-21T00:00:00Z",
    ),
    "no zone in run": (
        ["run", "--lake", "L", "--log-dir", "D", "--until", "2026-11-21"],
        2,
        "for UTC type --until 2026-11-21T00:00:00Z",
    ),
    "no time": (["records", "--log-dir", "D", "--to", "soon"], 2, "'soon' is no time"),
    "bounds exchanged": (["records", "--log-dir", "D", "--from", "5", "--to", "4"], 2, "exchange them"),
    "offsets exchanged": (["records", "--log-dir", "D", "--from-offset", "5", "--to-offset", "4"], 2, "exchange them"),
    "no zone of that name": (["records", "--log-dir", "D", "--tz", "Mars", "--to", "03:29"], 2, "is no time zone"),
    "a length of time for a time": (["records", "--log-dir", "D", "--from", "1h"], 2, "'1h' is no time; type 2026-"),
    "relative times exchanged": (["records", "--log-dir", "D", "--from=-1h", "--to", "-2h"], 2, "exchange them"),
    "no duration": (
        ["stalled", "--log-dir", "D", "--min-duration", "5 minutes"],
        2,
        "--min-duration: '5 minutes' is no duration; type 500ms, 90s, 5m, 1h30m or 2d, or a number of seconds",
    ),
    "a duration without a unit": (["lag", "--log-dir", "D", "--every", "30"], 2, "--every: '30' is no duration"),
    "no duration at all": (["lag", "--log-dir", "D", "--every", "0s"], 2, "type 1ms or more"),
    "no age": (["maintain", "--lake", "L", "--retain", "bronze=90"], 2, "--retain: '90' is no duration"),
    "no cut": (["state", "--log-dir", "D", "--at-offset", "x"], 2, "is not STATE-PARTITION:OFFSET"),
    "no partition": (["state", "--log-dir", "D", "--partition", "-1"], 2, "--partition"),
    "no topic": (["state", "--log-dir", "D", "--topic", ":1"], 2, "names no topic"),
    "no size": (["state", "--log-dir", "D", "--max-bytes", "many"], 2, "is no size"),
    "too little may be read": (["state", "--log-dir", "logs", "--max-bytes", "10"], 1, "--max-bytes allows 10 bytes"),
    "no time to wait": (
        ["maintain", "--lake", "L", "--execute", "--lock-timeout", "nan"],
        2,
        "--lock-timeout: 'nan' is no duration; type 500ms, 90s, 5m, 1h30m or 2d, or a number of seconds",
    ),
    "dead letters before their time": (
        ["simulate", "--log-dir", "S", "--profile", "dead-letters", "--kafka-version", "4.3"],
        2,
        "dead letters came with Kafka 4.4",
    ),
    "no form": (["state", "--log-dir", "D", "--output", "xml"], 2, "'xml' is not one of"),
    "no record named": (["trace", "--log-dir", "D", "--group", "g"], 2, "Missing options '--topic', '--offset'."),
    "no lake named": (["run", "--log-dir", "D"], 2, "Missing option '--lake'. (sharelens run --help shows how)"),
    "a record without a partition": (
        ["trace", "--log-dir", "D", "--group", "g", "--topic", "orders", "--offset", "1"],
        2,
        "--topic: 'orders' does not name one partition; add --partition N, or type --topic orders:N",
    ),
    "a record of two partitions": (
        ["trace", "--log-dir", "D", "--group", "g", "--topic", "orders:0,1", "--offset", "1"],
        2,
        "--topic: 'orders:0,1' does not name one partition; add --partition N",
    ),
    "no log to run on": (["run", "--lake", "L"], 2, "give --log-dir DIR"),
    "no setting of Spark": (["run", "--lake", "L", "--log-dir", "D", "--conf", "x"], 2, "is not K=V"),
    "no query": (["sql", "--lake", "L"], 2, "either the query or --file"),
    "a query in a file that is no text": (
        ["sql", "--lake", "L", "--file", "bytes"],
        1,
        "--file: can't read bytes: it is no text in UTF-8; give a file with one SELECT",
    ),
    "no rule to explain": (["audit", "--explain", "nothing"], 2, "--explain: 'nothing' is no rule"),
    "pages into a file": (["check", "--lake", "L", "--data-docs", "file"], 2, "--data-docs: file is no folder"),
    "no table": (["tables", "gold.nothing"], 2, "no table gold.nothing; tables: "),
    "a table of a missing lake": (["tables", "gold.lag", "--lake", "missing"], 1, "is not a directory"),
    "no lake for tables": (["tables"], 2, "give --lake DIR"),
    "a lake to write without a name": (["run", "--lake", "", "--log-dir", "logs"], 2, "--lake: the path is empty"),
    "a lake without a name": (["state", "--lake="], 2, "--lake: the path is empty"),
    "a demonstration without a name": (["demo", "--lake", "", "--set", "basic"], 2, "--lake: the path is empty"),
    "a log without a name": (["state", "--log-dir", "logs", "--log-dir", ""], 2, "--log-dir: the path is empty"),
    "a report without a name": (["report", "--log-dir", "logs", "--out", ""], 2, "--out: the path is empty"),
    "a simulation without a name": (["simulate", "--log-dir", ""], 2, "--log-dir: the path is empty"),
    "a broker without a name": (["broker", "start", "--log-dir", ""], 2, "--log-dir: the path is empty"),
    "a log whose path is not UTF-8": (["run", "--lake", "L", "--log-dir", "l\udcff"], 1, r"'l\udcff' is not UTF-8"),
    "a lake whose path is not UTF-8": (["run", "--lake", "l\udcff", "--log-dir", "logs"], 1, r"'l\udcff' is not UTF-8"),
    "a group that is not UTF-8": (["state", "--log-dir", "logs", "--group", "g\udcff"], 1, r"'g\udcff' is not UTF-8"),
    "a query that is not UTF-8": (["sql", "--lake", "L", "SELECT '\udcff'"], 1, r"'\udcff'" + '" is not UTF-8'),
    "a missing directory": (["state", "--log-dir", "missing"], 1, "no such directory"),
    "a missing lake": (["state", "--lake", "missing"], 1, "is not a directory"),
    "an empty directory": (["records", "--log-dir", "empty"], 1, "it is empty"),
    "an empty lake": (["status", "--lake", "empty"], 1, "holds no lake"),
    "a file": (["state", "--log-dir", "file"], 1, "not a directory"),
    "one partition's folder": (["state", "--log-dir", "logs/orders-0"], 1, "give its parent"),
    "a folder of log directories": (["state", "--log-dir", "."], 1, "give them one by one"),
    "another folder": (["state", "--log-dir", "other"], 1, "not a log directory"),
    "a missing directory to run on": (["run", "--lake", "L", "--log-dir", "missing"], 1, "no such directory"),
    "an empty directory to run on": (["run", "--lake", "L", "--log-dir", "empty"], 1, "it is empty"),
    "another folder to run on": (["run", "--lake", "L", "--log-dir", "other"], 1, "not a log directory"),
    "one good directory and a bad one": (
        ["ingest", "--lake", "L", "--log-dir", "logs", "--log-dir", "missing"], 1, "no such directory",
    ),
    "several clusters in a run": (
        ["run", "--lake", "L", "--log-dir", "logs", "--log-dir", "east", "--log-dir", "west"], 2, "different clusters",
    ),
    "another cluster than the one named": (
        ["run", "--lake", "L", "--log-dir", "east", "--cluster-id", "north"], 1, "is of cluster east",
    ),
    "an unknown group": (["state", "--log-dir", "logs", "--group", "x\x1b[2J"], 2, "groups there: g"),
    "a time before the log": (["state", "--log-dir", "logs", "--as-of", "5"], 1, "lies before the evidence"),
}  # fmt: skip


@pytest.mark.parametrize("case", sorted(BAD_LINES))
def test_what_cannot_be_answered_is_one_clear_line(
    ask: Ask, logs: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    words, exit_code, message = BAD_LINES[case]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "file.txt").write_text("x")
    (tmp_path / "file").write_text("x")
    (tmp_path / "bytes").write_bytes(b"\xff")
    for cluster in ("east", "west"):
        write_log_directory(tmp_path / cluster, [snapshot()], cluster_id=cluster)
    before = sorted(tmp_path.rglob("*"))
    code, out, err = ask(*words)
    assert (code, out) == (exit_code, "")
    assert message in err
    assert err.count("\n") == 1
    assert err.startswith("sharelens: ")
    assert err[:-1].isprintable()
    assert sorted(tmp_path.rglob("*")) == before, "nothing was written"


@pytest.mark.parametrize("command", QUESTIONS)
def test_every_question_takes_both_sources(command: str) -> None:
    names = {option for parameter in app.cli.commands[command].params for option in parameter.opts}
    assert {"--lake", "--log-dir", "--bootstrap-server", "--cluster-id", "--output", "--limit"} <= names


def test_incomplete_rows_exit_with_one_when_complete_ones_are_required(ask: Ask, tmp_path: Path) -> None:
    logs = str(write_log_directory(tmp_path / "logs", [update(start=0)]))
    assert ask("state", "--log-dir", logs)[0] == 0
    code, out, err = ask("state", "--log-dir", logs, "--require-complete", "--output", "json")
    assert (code, len(json.loads(out))) == (1, 1)
    assert "1 of 1 rows are not complete" in err


def test_complete_rows_meet_the_requirement(ask: Ask, logs: str) -> None:
    assert ask("state", "--log-dir", logs, "--require-complete")[0] == 0


@pytest.mark.parametrize(
    ("text", "size"), [("1024", 1024), ("1k", 1 << 10), ("2G", 2 << 30), ("3MiB", 3 << 20), ("1TB", 1 << 40)]
)
def test_sizes_may_carry_a_unit(text: str, size: int) -> None:
    assert common.Size().convert(text, None, None) == size


def test_what_nobody_thought_of_is_one_line_too(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(**_: object) -> None:
        raise RuntimeError("first\nsecond")

    monkeypatch.setattr(app.cli.commands["tables"], "callback", broken)
    code, out, err = ask("tables")
    assert (code, out) == (1, "")
    assert err == "sharelens: RuntimeError: first second (set SHARELENS_TRACEBACK=1 to see where)\n"


def test_an_interruption_has_its_own_exit_code(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(**_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(app.cli.commands["tables"], "callback", interrupted)
    # The children of a command are its JVM; those of this process belong to other tests.
    monkeypatch.setattr(app, "end_jvm", lambda: None)
    assert ask("tables")[0] == 130


@pytest.mark.slow
@pytest.mark.parametrize("closed", ["<&- >&- 2>&-", *in_soak("<&-", ">&-", "2>&-")])
def test_a_closed_stream_fails_no_command(logs: str, tmp_path: Path, closed: str) -> None:
    words = [sys.executable, "-m", "sharelens", "run", "--log-dir", logs, "--lake", str(tmp_path / "lake")]
    done = subprocess.run(["sh", "-c", f'"$@" {closed}', "sh", *words], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert main(["state", "--lake", str(tmp_path / "lake"), "--output", "json"]) == 0
