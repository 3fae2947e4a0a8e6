"""A log of workloads, repeated: records of the broker's own coordinators with other groups, times and offsets.

    simulated logs   |steady|poison|...          copies of a round lie side by side, rounds one behind the other
    repeated log     |steady-0 .. poison-7|steady-8 .. poison-15|...

`python -m bench.repeated --records N --out DIR` writes one.
"""

import argparse
import math
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bench.log_files import LogDirectoryWriter
from sharelens.broker.simulator.settings import profile
from sharelens.broker.simulator.simulation import simulate
from sharelens.source.request import Source
from sharelens.tables.opening import open_evidence
from sharelens.tables.port import RECORDS
from sharelens.tables.reading import read
from sharelens.tables.where import Order
from state_model.columnar.keys import SHARE_PARTITION_KEY, number_keys
from state_model.java import partition_for
from tools.log_writer.share_records import encode_share_records

PROFILES = ("steady", "slow-consumers", "poison", "single-records", "crash-loop")
RECORDS_OF_EACH = 4_000
IN_A_ROUND = 8
"""Copies of each simulated log that lie side by side."""
OFFSETS_BETWEEN = 1_000
"""A copy has its offsets so much higher than the one before."""
PAUSE_MS = 60_000
LINGER_MS = 5
"""Records of a state partition within this time share a batch."""
TIMES = ("log_time_ms", "create_timestamp_ms", "write_timestamp_ms")


def generate_repeated(directory: Path, *, records: int, seed: int = 1, state_partitions: int = 50) -> int:
    """Writes a new log directory with that many records of `__share_group_state` at least; the number of records.

    Raises:
        FileExistsError: the directory is there already.
    """
    directory.mkdir(parents=True)
    sources = [_simulated(name, seed) for name in PROFILES]
    rounds = math.ceil(records / (IN_A_ROUND * sum(rows.num_rows for rows in sources)))
    begins_ms = [pc.min(rows.column("log_time_ms")).as_py() for rows in sources]
    lasting_ms = max(pc.max(rows.column("log_time_ms")).as_py() for rows in sources) - min(begins_ms) + PAUSE_MS
    writer = LogDirectoryWriter(directory, partitions=state_partitions, seed=seed)
    written = 0
    for number in range(rounds):
        copies = range(number * IN_A_ROUND, (number + 1) * IN_A_ROUND)
        rows = pa.concat_tables([_copy(source, copy, number * lasting_ms) for source in sources for copy in copies])
        encoded = encode_share_records(rows.combine_chunks().to_batches()[0])
        times = rows.column("log_time_ms").to_numpy()
        writer.append_to_partitions(_state_partitions(rows, state_partitions), encoded, times, LINGER_MS)
        written += rows.num_rows
    writer.close()
    return written


def _simulated(name: str, seed: int) -> pa.Table:
    """SHARE_RECORD rows of a simulated workload, by (state partition, log offset); groups have the workload's name."""
    with tempfile.TemporaryDirectory(prefix="sharelens-bench-") as folder:
        log = Path(folder) / "log"
        simulate(profile(name, records=RECORDS_OF_EACH), seed, log)
        with open_evidence(Source(log_dirs=(str(log),))) as tables:
            rows = read(tables, RECORDS, order=Order.LOG)
    groups = pc.binary_join_element_wise(rows.column("group_id"), name, "-")
    return rows.set_column(rows.column_names.index("group_id"), rows.schema.field("group_id"), groups)


def _copy(rows: pa.Table, number: int, later_ms: int) -> pa.Table:
    """A copy under other groups, with its times and offsets moved; offsets that are not determined stay."""
    moved = number * OFFSETS_BETWEEN
    columns = dict(zip(rows.column_names, rows.columns, strict=True))
    columns["group_id"] = pc.binary_join_element_wise(columns["group_id"], str(number), "-")
    for name in TIMES:
        columns[name] = pc.add(columns[name], later_ms)
    start = columns["start_offset"]
    columns["start_offset"] = pc.if_else(pc.greater_equal(start, 0), pc.add(start, moved), start)
    batches = columns["state_batches"].combine_chunks()
    fields = [batches.values.field(at) for at in range(batches.values.type.num_fields)]
    fields[:2] = [pc.add(offsets, moved) for offsets in fields[:2]]
    values = pa.StructArray.from_arrays(fields, fields=list(batches.values.type))
    columns["state_batches"] = pa.ListArray.from_arrays(batches.offsets, values, type=batches.type)
    return pa.table(columns)


def _state_partitions(rows: pa.Table, count: int) -> npt.NDArray[np.int64]:
    """The state partition that the key of each row hashes to."""
    (codes,), keys = number_keys(rows)
    groups, topics, partitions = (keys.column(name).to_pylist() for name in SHARE_PARTITION_KEY)
    places = [partition_for(*key, count) for key in zip(groups, topics, partitions, strict=True)]
    return np.array(places, np.int64)[codes]


def main(arguments: Sequence[str] | None = None) -> int:
    """Command line: prints the number of records."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.repeated", description="Write the repeated log of workloads."
    )
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--out", type=Path, required=True)
    chosen = parser.parse_args(arguments)
    print(generate_repeated(chosen.out, records=chosen.records))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
