"""A million records of 20 groups, and of one: from the segments of __consumer_offsets to histories, and to answers."""

import resource
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

import pyarrow as pa

from bench import group_log
from bench.measure import sharelens
from sharelens.evidence.group_decoding import decode_groups
from sharelens.groups.histories import histories
from sharelens.groups.intervals import Histories
from sharelens.groups.replay import in_log_order
from sharelens.kafka_log import reader
from sharelens.kafka_log.layout import scan_log_directory
from sharelens.kafka_log.reader import Split
from sharelens.kafka_log.schemas import LOG_RECORD
from sharelens.kafka_log.union import unite
from state_model.topics import OFFSETS_TOPIC

LIMIT_S = 60
"""Seconds from segments to histories for a million records on two cores, one group of a million included."""
CORES = 2
SPLIT_BYTES = 16 << 20
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What something took: wall clock and processor time in seconds."""

    wall_s: float
    cpu_s: float


def lines(directory: Path, records: int) -> Iterator[tuple[str, str, str]]:
    """Name, figure and note of each line: replay on two cores with warm kernels, and questions from cold processes.

    The logs are generated on first use, the one of a single group beside `directory`.
    """
    yield from _lines("20 groups", directory, partial(group_log.generate, records=records))
    of_one_group = directory.with_name(f"{directory.name}-one")
    generate = partial(group_log.generate, records=records, streams_groups=1, share_groups=0)
    yield from _lines("one streams group", of_one_group, generate)


def _lines(name: str, directory: Path, generate: Callable[[Path], None]) -> Iterator[tuple[str, str, str]]:
    if not directory.exists():
        generate(directory)
    _decoded(directory)
    decoding, rows = _cost(lambda: _decoded(directory))
    replaying, _ = _cost(lambda: _histories(rows))
    total_cost = Cost(wall_s=decoding.wall_s + replaying.wall_s, cpu_s=decoding.cpu_s + replaying.cpu_s)
    yield _line(f"{name}: segments -> group records", decoding, rows.num_rows)
    yield _line(f"{name}: group records -> histories of groups, members and tasks", replaying, rows.num_rows)
    limit = f"limit: {LIMIT_S} s for a million records on {CORES} cores"
    yield _line(f"{name}: segments -> histories of groups, members and tasks", total_cost, rows.num_rows, limit)
    of_log, group = ["--log-dir", str(directory)], ["--group", "application-0"]
    for question, arguments in (("groups", []), ("describe", group), ("rebalances", group)):
        cost, _ = _cost(partial(sharelens, question, *of_log, *arguments, "--output", "json"))
        yield _line(f"{name}: {question} --log-dir, cold process", cost, rows.num_rows)


def _line(name: str, cost: Cost, records: int, limit: str = "") -> tuple[str, str, str]:
    note = f"{cost.cpu_s:.1f} s of CPU time" + (f"; {limit}" if limit else "")
    return name, f"{cost.wall_s:.1f} s, {records / cost.wall_s:,.0f} records/s", note


def _decoded(directory: Path) -> pa.Table:
    partitions = [part for part in unite([scan_log_directory(str(directory))]) if part.topic == OFFSETS_TOPIC]
    splits = [split for part in partitions for split in reader.splits(part, 0, 1 << 62, SPLIT_BYTES)]
    with ThreadPoolExecutor(CORES) as pool:
        return pa.concat_tables(list(pool.map(_decoded_split, splits)))


def _decoded_split(split: Split) -> pa.Table:
    rows = [chunk.records for chunk in reader.read_split(split) if chunk.records.num_rows]
    return decode_groups(pa.Table.from_batches(rows, schema=LOG_RECORD)).records


def _histories(records: pa.Table) -> Histories:
    return histories(in_log_order(records))


def _cost(work: Callable[[], Result]) -> tuple[Cost, Result]:
    """What a call took, with the processes that it started and ended."""
    begun, cpu_s = time.perf_counter(), _cpu_s()
    result = work()
    return Cost(wall_s=time.perf_counter() - begun, cpu_s=_cpu_s() - cpu_s), result


def _cpu_s() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(part.ru_utime + part.ru_stime for part in used)
