"""Make the recording of one log: unpack it, make its sources, ask every question, write an answer a file."""

import hashlib
import json
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path

from tools.record_answers.answers import Answer, OutputFile, write_answer
from tools.record_answers.calling import Printed, call, remove, set_environment
from tools.record_answers.facts import Facts, read_facts
from tools.record_answers.logs import (
    RecordedLog,
    copy_for_broker,
    read_meta,
    set_file_times,
    time_range,
    unpack,
    write_settings,
)
from tools.record_answers.normalising import Places, normalised
from tools.record_answers.questions import (
    CLUSTER,
    JSON,
    LAKE,
    LOG_DIR,
    ONLY_TEXT,
    OUT,
    Call,
    general_questions,
    lake_questions,
    questions,
)
from tools.record_answers.sources import BrokerRefusalError, served

CHECKOUT = Path(__file__).parents[2]
GENERAL = "general"
"""The name in a recording for calls without a log."""
MAX_FILE_BYTES = 64 << 10
"""Larger files of an evidence folder are recorded by their SHA-256."""
BINARY_SUFFIXES = (".parquet", ".log", ".bin")


class WrongCheckoutError(Exception):
    """Raised when `sharelens` is imported from another place than the checkout of this tool."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorder:
    """Records calls about one source into `folder`. `source`: the options that name it."""

    folder: Path
    places: Places
    source: tuple[str, ...]

    def record(self, question: Call) -> int:
        """Record a call in each of its forms; the number of forms."""
        for form in question.forms:
            self.record_form(question, form)
        return len(question.forms)

    def record_form(self, question: Call, form: str) -> Printed:
        """Record a call in one form; what it printed."""
        output = None if question.output is None else self.places.work / question.output
        if output is not None and not question.keeps_output:
            remove(output)
        words = [str(output) if word == OUT else word for word in question.words]
        words += self.source if question.has_source else ()
        words += () if question.forms == ONLY_TEXT else ("--output", form)
        printed = call(words)
        end_ms = time.time_ns() // 1_000_000

        def clean(text: str) -> str:
            return normalised(text, self.places, question.name, end_ms)

        writes = output is not None and not question.keeps_output
        answer = Answer(
            words=tuple(map(clean, words)),
            exit_code=clean(printed.exit_code),
            stdout=clean(printed.stdout),
            stderr=clean(printed.stderr),
            files=tuple(
                OutputFile(name=name, content=clean(content)) for name, content in (_contents(output) if writes else ())
            ),
        )
        write_answer(answer, self.folder / f"{question.name}.{form}")
        return printed

    def record_all(self, calls: Sequence[Call]) -> int:
        """Record several calls; the number of answers."""
        return sum(map(self.record, calls))


def _contents(output: Path | None) -> Iterator[tuple[str, str]]:
    """Name and text of each file that a call wrote; the size and SHA-256 of large and binary ones."""
    if output is None or not output.exists():
        return
    for path in [output] if output.is_file() else sorted(path for path in output.rglob("*") if path.is_file()):
        name = path.name if path == output else path.relative_to(output).as_posix()
        content = path.read_bytes()
        if path != output and (len(content) > MAX_FILE_BYTES or path.suffix in BINARY_SUFFIXES):
            yield name, f"{len(content)} bytes, SHA-256 {hashlib.sha256(content).hexdigest()}\n"
        else:
            yield name, content.decode("utf-8", errors="backslashreplace")


def ensure_checkout() -> Path:
    """The folder from which `sharelens` is imported. Raises WrongCheckoutError if it is not in this checkout."""
    spec = find_spec("sharelens")
    origin = Path(spec.origin if spec is not None and spec.origin is not None else "/").resolve()
    if not origin.is_relative_to(CHECKOUT.resolve()):
        raise WrongCheckoutError(f"sharelens is imported from {origin}: set PYTHONPATH={CHECKOUT} and run it there")
    return origin.parent


def record_general(out: Path) -> int:
    """Record the calls that read no log; the number of answers."""
    set_environment()
    with tempfile.TemporaryDirectory(prefix="record-answers-") as work:
        places = Places(work=Path(work), checkout=CHECKOUT, begin_ms=time.time_ns() // 1_000_000)
        help_page = call(["--help"]).stdout
        runbooks = call(["runbook"]).stdout.split()
        tables = _names_in(call(["tables", "--ddl"]).stdout)
        recorder = Recorder(folder=out / GENERAL / GENERAL, places=places, source=())
        return recorder.record_all(list(general_questions(_commands(help_page), tables, runbooks)))


def _commands(help_page: str) -> list[str]:
    """The commands that the help page lists: lines with two blanks, a name and a text."""
    lines = [line for line in help_page.splitlines() if line.startswith("  ") and not line.startswith("   ")]
    names = [line.split()[0] for line in lines if len(line.split()) > 1]
    return sorted({name for name in names if name.replace("-", "").isalpha() and name.islower() and name[0] != "-"})


def _names_in(ddl: str) -> list[str]:
    """The tables that CREATE TABLE statements name, without quotes."""
    words = ddl.replace("`", "").split()
    return sorted({word.rstrip("(") for word in words if word.startswith(("bronze.", "silver.", "gold."))})


def record_log(log: RecordedLog, sources: Sequence[str], out: Path) -> int:
    """Record the answers about one log from some sources; the number of answers."""
    set_environment()
    with tempfile.TemporaryDirectory(prefix="record-answers-") as temporary:
        work = Path(temporary)
        data_set = work / log.packed.name.partition(".")[0]
        unpack(log.packed, data_set)
        logs, settings = data_set / log.folder, work / "settings"
        times = time_range(logs)
        set_file_times(logs, times)
        meta = read_meta(data_set)
        write_settings(meta, settings)
        places = Places(
            work=work,
            checkout=CHECKOUT,
            begin_ms=time.time_ns() // 1_000_000,
            logged_ms=(times.first_ms, times.last_ms),
        )
        facts = read_facts(logs, data_set, times, settings)
        recorder = Recorder(folder=out / log.name, places=places, source=())
        count = 0
        if LOG_DIR in sources:
            of_logs = replace(recorder, folder=recorder.folder / LOG_DIR, source=("--log-dir", str(logs)))
            count += of_logs.record_all(questions(facts, LOG_DIR))
        if LAKE in sources:
            count += _record_lake(replace(recorder, folder=recorder.folder / LAKE), logs, facts)
        if CLUSTER in sources:
            copy_for_broker(logs, meta, work / "broker-log")
            count += _record_cluster(replace(recorder, folder=recorder.folder / CLUSTER), facts)
        return count


def _run(name: str, *words: str) -> Call:
    return Call(name=f"run/{name}", words=("run", *words), forms=ONLY_TEXT, has_source=False)


def _record_lake(recorder: Recorder, logs: Path, facts: Facts) -> int:
    """A lake by one run with all questions; then a lake by several runs with its tables alone."""
    lake, grown = recorder.places.work / "lake", recorder.places.work / "grown-lake"
    of_logs = ("--log-dir", str(logs))
    count = recorder.record_all(
        [_run("first", "--lake", str(lake), *of_logs), _run("second", "--lake", str(lake), *of_logs)]
    )
    of_lake = replace(recorder, source=("--lake", str(lake)))
    count += of_lake.record_all([*questions(facts, LAKE), *lake_questions(facts.groups, _queries(), _tables(lake))])
    runs = [
        _run("until-the-middle", "--lake", str(grown), *of_logs, "--until", str(facts.times.at(1, 2))),
        _run("the-rest", "--lake", str(grown), *of_logs),
        _run("rebuilt", "--lake", str(grown), "--rebuild", "decode"),
    ]
    count += recorder.record_all(runs)
    of_grown = replace(recorder, folder=recorder.folder / "grown", source=("--lake", str(grown)))
    return count + of_grown.record_all(list(lake_questions((), (), _tables(grown))))


def _queries() -> list[tuple[str, bool]]:
    """The named queries, and whether they take a group."""
    printed = call(["sql", "--list", "--output", JSON])
    return [(row["name"], "group=" in row["parameters"]) for row in json.loads(printed.stdout)]


def _tables(lake: Path) -> list[str]:
    printed = call(["tables", "--lake", str(lake), "--output", JSON])
    return [row["table"] for row in json.loads(printed.stdout)] if printed.exit_code == "0" else []


def _record_cluster(recorder: Recorder, facts: Facts) -> int:
    """The answers of a light broker that serves a copy of the log, and a lake from it; or its refusal."""
    work = recorder.places.work
    try:
        with served(work / "broker-log") as bootstrap:
            source = ("--bootstrap-server", bootstrap)
            places = replace(recorder.places, bootstrap=bootstrap)
            of_cluster = replace(recorder, places=places, source=source)
            count = of_cluster.record_all(questions(facts, CLUSTER))
            lake = work / "cluster-lake"
            return count + of_cluster.record_all([_run("cluster", "--lake", str(lake), *source)])
    except BrokerRefusalError as refusal:
        text = normalised(str(refusal), recorder.places, "broker/refusal", time.time_ns() // 1_000_000)
        answer = Answer(words=("broker", "start"), exit_code="refused", stdout="", stderr=text, files=())
        write_answer(answer, recorder.folder / "broker" / "refusal.text")
        return 1
