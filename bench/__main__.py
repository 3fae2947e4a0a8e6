"""Measures speed and memory and prints one table: python -m bench [--records N] [--only SECTION].

One call runs all sections, with the processes that a user would start; figures are of this machine.
"""

import argparse
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.table import Table

from bench import dump_log_segments, generate, repeated
from bench import groups as group_costs
from bench.measure import Measured, best, best_inside, sharelens
from sharelens.kafka_log import reader
from sharelens.kafka_log.layout import scan_log_directory
from sharelens.kafka_log.union import unite
from state_model.columnar import record_kernels, replay
from state_model.columnar.decode import decode_share_records
from tools.kept_jars import ToolUnavailableError

SHAPES = ("hot", "cool", "failing")
REAL = "real"  # logs of workloads, repeated; it can't be appended to


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A line of the table."""

    section: str
    name: str
    value: str
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """Where the bench works, and with how many records and share partitions (None: as many as the shape has).

    For upkeep: how many commits a table, and how many runs.
    """

    folder: Path
    records: int
    commits: int = 1000
    runs: int = 20
    share_partitions: int | None = None
    shapes: Sequence[str] = SHAPES

    def log(self, shape: str) -> Path:
        """The generated log directory of a shape; made on first use."""
        directory = self.folder / f"log-{shape}"
        if not directory.exists() and shape == REAL:
            repeated.generate_repeated(directory, records=self.records)
        elif not directory.exists():
            generate.generate(directory, shape=shape, records=self.records, share_partition_count=self.share_partitions)
        return directory

    def lake(self, name: str) -> Path:
        """The folder of a lake."""
        return self.folder / f"lake-{name}"

    def filled_lake(self, shape: str) -> Path:
        """The lake of a shape's log; a run makes it on first use."""
        lake = self.lake(shape)
        if not lake.exists():
            sharelens("run", "--log-dir", str(self.log(shape)), "--lake", str(lake))
        return lake


def first(bench: Bench) -> Iterator[Figure]:
    """A fresh clone to the end of its demo, and a wheel to its first answer; installs from the registries."""
    from bench import first as first_answer

    yield from _figures("first", first_answer.lines(bench.folder))


def kernels(bench: Bench) -> Iterator[Figure]:
    """One core, in this process, warm: reading, decoding, replaying."""
    directory = bench.log("hot")
    partitions = [p for p in unite([scan_log_directory(str(directory))]) if p.topic == "__share_group_state"]

    def read() -> list[pa.RecordBatch]:
        splits = [s for p in partitions for s in reader.splits(p, 0, 1 << 62, 1 << 40)]
        return [chunk.records for split in splits for chunk in reader.read_split(split) if chunk.records.num_rows]

    batches = read()
    count = sum(batch.num_rows for batch in batches)
    yield _rate("kernels", "segments -> Arrow, 1 core", count, best(read))

    def decode() -> list[pa.RecordBatch]:
        tables = []
        for batch in batches:
            times = np.maximum.accumulate(batch.column("timestamp_ms").to_numpy())
            tables.append(decode_share_records(batch, log_time_ms=times).records)
        return tables

    decoded = decode()
    yield _rate("kernels", "decode kernel alone, 1 core", count, best_inside(record_kernels, "decode_rows", decode))
    yield _rate("kernels", "Arrow -> typed columns, 1 core", count, best(decode))

    def fold() -> None:
        state = None
        for batch in decoded:
            table = pa.Table.from_batches([batch])
            same = (
                state is not None
                and state.num_rows
                and state.column("state_partition")[0] == table.column("state_partition")[0]
            )
            state = replay.replay_records(table, seed=state if same else None).state

    fold()
    yield _rate("kernels", "typed columns -> states and histories, 1 core", count, best(fold))


def pipeline(bench: Bench) -> Iterator[Figure]:
    """Segments to silver and to gold, beside a row-at-a-time UDF and Kafka's own DumpLogSegments."""
    directory = bench.log("hot")
    dumped_s: float | None = None
    try:
        dumped = dump_log_segments.dump(directory)
        yield _rate("pipeline", "DumpLogSegments prints the same segments", dumped.records, dumped_s := dumped.seconds)
    except ToolUnavailableError as error:
        yield Figure(section="pipeline", name="DumpLogSegments", value="skipped", note=str(error))
    shutil.rmtree(bench.lake("hot"), ignore_errors=True)
    run = sharelens("run", "--log-dir", str(directory), "--lake", str(bench.lake("hot")))
    seconds = run.summary["seconds"]
    silver_s = seconds["ingest"] + seconds["decode"]
    whole_s = _working_s(run)
    of_silver = "segments -> bronze -> silver on Delta"
    yield _rate("pipeline", of_silver, bench.records, silver_s, _times(dumped_s, silver_s))
    yield _rate("pipeline", "the whole run (bronze, silver, gold)", bench.records, whole_s, _times(dumped_s, whole_s))
    for stage in ("replay", "audit"):
        yield _rate("pipeline", f"{stage} stage alone", bench.records, seconds[stage])
    yield Figure(section="pipeline", name="session start", value=f"{seconds.get('session', 0.0):.1f} s")
    yield from _memory("pipeline", run)
    yield _udf(bench, directory, silver_s)


def _udf(bench: Bench, directory: Path, ours_s: float) -> Figure:
    from bench import udf_baseline

    decoded = udf_baseline.in_own_session(directory, bench.folder / "udf-silver")
    note = f"ours: {decoded.seconds / ours_s:.1f} x as fast"
    return _rate("pipeline", "segments -> silver with a Python UDF", decoded.records, decoded.seconds, note)


def increment(bench: Bench) -> Iterator[Figure]:
    """A second run over 1 % new records, and a third without new records, in each shape."""
    for shape in bench.shapes:
        directory, lake = bench.log(shape), bench.lake(shape)
        shutil.rmtree(lake, ignore_errors=True)
        first = sharelens("run", "--log-dir", str(directory), "--lake", str(lake))
        appended = generate.append(directory, fraction=0.01)
        second = sharelens("run", "--log-dir", str(directory), "--lake", str(lake))
        idle = sharelens("run", "--log-dir", str(directory), "--lake", str(lake))
        share = (
            f"{100 * second.seconds / first.seconds:.0f} % of the first run's {first.seconds:.1f} s; "
            f"stages alone {_working_s(second):.1f} s, {100 * _working_s(second) / _working_s(first):.0f} %; "
            f"engine {_engines(second)}, first run {_engines(first)}"
        )
        yield Figure(
            section="increment",
            name=f"{shape}: run over {appended.records} new records",
            value=f"{second.seconds:.1f} s",
            note=share,
        )
        yield Figure(
            section="increment",
            name=f"{shape}: rewritten by it",
            value=_rewritten(second.summary["rows"]),
            note="the states of all share partitions and their open ranges",
        )
        yield Figure(section="increment", name=f"{shape}: nothing new, no JVM", value=f"{idle.seconds:.2f} s")
        yield from _memory(f"increment {shape}", first)


def audit(bench: Bench) -> Iterator[Figure]:
    """The stage audit beside the stage replay, over all records and over 1 % more; `audit` of the log directory."""
    from bench import audits

    for shape in bench.shapes:
        shutil.rmtree(folder := bench.lake(f"audit-{shape}"), ignore_errors=True)
        yield from _figures("audit", audits.lines(bench.log(shape), folder, shape=shape), f"{shape}: ")


def measures(bench: Bench) -> Iterator[Figure]:
    """Each measure alone and all together, in this process: the whole log, and 1 % new records."""
    from bench import measures as measured
    from bench import what_if

    for shape in bench.shapes:
        folder = bench.lake(f"measures-{shape}")
        shutil.rmtree(folder, ignore_errors=True)
        prefix = f"{shape}: "
        for cost in measured.costs(*measured.lakes(bench.log(shape), folder)):
            value = f"{cost.whole_s:.2f} s of CPU, {bench.records / cost.whole_s:,.0f} rows/s"
            part = f"over 1 % more {cost.increment_s:.2f} s, {100 * cost.increment_s / cost.whole_s:.0f} %"
            note = f"{part}; peak so far {cost.peak_bytes / 2**20:.0f} MiB"
            yield Figure(section="measures", name=prefix + (cost.name or "all measures"), value=value, note=note)
        for question in measured.questions(bench.log(shape)):
            value = f"{question.cpu_s:.2f} s of CPU, {bench.records / question.cpu_s:,.0f} rows/s"
            note = f"computed again each time; peak {question.peak_bytes / 2**20:.0f} MiB"
            yield Figure(section="measures", name=f"{prefix}{question.name} of the log", value=value, note=note)
        for name, value, note in what_if.lines(bench.log(shape)):
            yield Figure(section="measures", name=prefix + name, value=value, note=note)


def dump_shares(bench: Bench) -> Iterator[Figure]:
    """Questions and the stages of a run as shares of DumpLogSegments' time over the same log, in every shape."""
    from bench import dump_shares as shares

    for shape in (*bench.shapes, *([REAL] if bench.shapes == SHAPES else [])):
        yield from _figures("dump_shares", shares.lines(bench.log(shape), bench.lake(shape)), f"{shape}: ")


def questions(bench: Bench) -> Iterator[Figure]:
    """Questions from cold processes, in each shape, with the highest memory of each."""
    from bench import questions as question_costs

    for shape in bench.shapes:
        for cost in question_costs.costs(bench.filled_lake(shape), bench.log(shape)):
            yield Figure(
                section="questions",
                name=f"{shape}: {cost.name}",
                value=f"{cost.seconds:.2f} s, {cost.peak_bytes / 2**20:.0f} MiB",
                note="cold process, median of 3" if cost.name != "report" else "cold process",
            )


def explorer(bench: Bench) -> Iterator[Figure]:
    """Pages over a lake of each shape."""
    from bench import explorer as pages

    for shape in bench.shapes:
        yield from _figures("explorer", pages.lines(bench.filled_lake(shape)), f"{shape}: ")


def groups(bench: Bench) -> Iterator[Figure]:
    """The group coordinator's log: replayed to histories, and asked about."""
    yield from _figures("groups", group_costs.lines(bench.folder / "log-groups", bench.records))


def upkeep(bench: Bench) -> Iterator[Figure]:
    """Runs, `state` and files of a lake with a thousand commits a table, before and after `maintain`."""
    from bench import upkeep as upkeep_bench

    lake = bench.lake("upkeep")
    shutil.rmtree(lake, ignore_errors=True)
    compared = upkeep_bench.compare(bench.log("hot"), lake, bench.commits, bench.runs)
    yield from _figures("upkeep", upkeep_bench.lines(compared, bench.commits, bench.runs, bench.records))


def live(bench: Bench) -> Iterator[Figure]:
    """A running cluster as the source of a lake and of an answer."""
    from bench import live as from_cluster

    yield from _figures("live", from_cluster.lines(bench.folder, bench.records))


def broker(bench: Bench) -> Iterator[Figure]:
    """The light broker, then a real Kafka, with the same client: produce, acquire, accept in batches."""
    from bench import broker_costs

    yield from _figures("broker", broker_costs.lines(bench.folder, bench.records // 5))


def simulator(bench: Bench) -> Iterator[Figure]:
    """The broker's own parts in virtual time, in a process of their own: real bytes, truth and journal included."""
    directory = bench.folder / "log-simulated"
    run = sharelens("simulate", "--records", str(bench.records), "--seed", "1", "--log-dir", str(directory))
    count = int(run.summary["state_records"])
    size = sum(path.stat().st_size for path in directory.glob("__share_group_state-*/*.log"))
    yield Figure(
        section="simulator",
        name="state records with real bytes",
        value=f"{run.seconds:.1f} s, {count / run.seconds:,.0f} records/s",
        note=f"{count / run.last_processor_s(run.seconds):,.0f} a second of CPU; {size / 2**20:.0f} MiB of log",
    )
    yield from _memory("simulator", run)


def scale(bench: Bench) -> Iterator[Figure]:
    """A growing lake in each shape: stages, later runs, questions, upkeep; many runs, many files, requests."""
    from bench import many_runs, requests
    from bench import scale as grown

    for shape in bench.shapes:
        yield from _figures("scale", grown.lines(bench.folder, shape, bench.records), f"{shape}: ")
    yield from _figures("scale", many_runs.lines(bench.folder))
    yield from _figures("scale", many_runs.files_lines(bench.folder))
    yield from _figures("scale", requests.lines(bench.folder))


def _figures(section: str, lines: Iterable[tuple[str, str, str]], prefix: str = "") -> Iterator[Figure]:
    for name, value, note in lines:
        yield Figure(section=section, name=prefix + name, value=value, note=note)


def _working_s(run: Measured) -> float:
    """Seconds of the stages, session start apart."""
    return sum(float(value) for name, value in run.summary["seconds"].items() if name != "session")


def _engines(run: Measured) -> str:
    return " and ".join(sorted(set(run.summary["engine"].values()))) or "none"


def _rewritten(rows: dict[str, int]) -> str:
    return f"{rows.get('share_partitions', 0)} states, {rows.get('open_ranges', 0)} open ranges"


def _memory(section: str, run: Measured) -> Iterator[Figure]:
    shown = ", ".join(f"{role} {size / 2**20:.0f} MiB" for role, size in run.peak_bytes.items())
    yield Figure(section=section, name="peak memory of one process", value=shown)


def _rate(section: str, name: str, records: int, seconds: float, note: str = "") -> Figure:
    value = f"{seconds:.2f} s, {records / seconds / 1e6:.2f} M records/s"
    return Figure(section=section, name=name, value=value, note=note)


def _times(dumped_s: float | None, ours_s: float) -> str:
    return "" if dumped_s is None else f"{dumped_s / ours_s:.1f} x DumpLogSegments' speed"


SECTIONS = {
    section.__name__: section
    for section in (
        *(first, kernels, pipeline, increment, audit, measures, questions, dump_shares),
        *(explorer, groups, upkeep, live, broker, simulator, scale),
    )
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the selected sections."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--share-partitions", type=int, help="[default: 20 in hot, 20000 in cool, 1000 in failing]")
    parser.add_argument("--commits", type=int, default=1000, help="of the section upkeep, a table  [default: 1000]")
    parser.add_argument("--runs", type=int, default=20, help="of the section upkeep, before and after  [default: 20]")
    parser.add_argument("--only", choices=list(SECTIONS), action="append")
    parser.add_argument(
        "--shape",
        choices=(*SHAPES, REAL),
        action="append",
        help="a shape to measure, real of dump_shares alone  [default: all]",
    )
    parser.add_argument("--folder", type=Path, help="where logs and lakes are kept  [default: a temporary folder]")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="sharelens-bench-") as scratch:
        bench = Bench(
            folder=options.folder or Path(scratch),
            records=options.records,
            commits=options.commits,
            runs=options.runs,
            share_partitions=options.share_partitions,
            shapes=options.shape or SHAPES,
        )
        figures = []
        for name in options.only or SECTIONS:
            print(f"measuring: {name}", file=sys.stderr)
            for figure in SECTIONS[name](bench):
                print(f"{figure.name}: {figure.value}; {figure.note}", file=sys.stderr, flush=True)
                figures.append(figure)
    table = Table(title=f"{options.records:,} records", title_justify="left")
    for heading in ("section", "what", "figure", "note"):
        table.add_column(heading)
    for figure in figures:
        table.add_row(figure.section, figure.name, figure.value, figure.note)
    Console(width=None if sys.stdout.isatty() else 160).print(table)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
