"""Deterministic log directories of any size, as a broker would leave them: `python -m bench.generate --help`.

A log is made in stretches of bounded size: simulated, encoded by the columnar encoder, and appended to the segments of
its state partitions. What the next stretch needs lies beside the directory (`NAME.generator.npz`), so that `--append`
goes on where the log ended.
"""

import argparse
import json
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bench import simulate as sim
from bench.log_files import LogDirectoryWriter
from bench.shapes import SHAPES, Shape, SharePartitions, share_partitions
from state_model.columnar import buffers
from state_model.columnar.schemas import STATE_BATCH, UNKNOWN_TAG
from state_model.topics import STATE_TOPIC
from tools.log_writer.share_records import encode_share_records

Ints = npt.NDArray[np.int64]
STATE_BATCHES_PER_RECORD = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of a log; the same settings make the same bytes."""

    shape: str
    seed: int
    share_partitions: int
    state_partitions: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Generated:
    """The records appended to a directory."""

    directory: Path
    records: int
    bytes: int
    state_batches: int
    seconds: float


@dataclass(slots=True, kw_only=True)
class _Machine:
    """The share partitions as they are after the last record, and where the stream of events goes on."""

    state: Ints
    windows: Ints
    seed: npt.NDArray[np.uint64]
    chunk: int
    done: int
    records: int


def generate(
    directory: Path,
    *,
    shape: str,
    records: int,
    seed: int = 1,
    share_partition_count: int | None = None,
    state_partitions: int = 50,
) -> Generated:
    """Write a new log directory with so many records of `__share_group_state`.

    Raises:
        FileExistsError: the directory is there already.
    """
    settings = Settings(
        shape=shape,
        seed=seed,
        share_partitions=share_partition_count or SHAPES[shape].share_partitions,
        state_partitions=state_partitions,
    )
    directory.mkdir(parents=True)
    count = settings.share_partitions
    machine = _Machine(
        state=np.zeros((sim.SCALARS, count), np.int64),
        windows=np.zeros((count, SHAPES[shape].window, sim.RANGE_COLUMNS), np.int64),
        seed=np.array([seed], np.uint64),
        chunk=0,
        done=0,
        records=0,
    )
    return _write(directory, settings, machine, records)


def append(directory: Path, *, fraction: float) -> Generated:
    """Append `fraction` times as many records as the directory holds, in a new segment of each state partition.

    Raises:
        FileNotFoundError: the directory was not made by `generate`, or its `.generator.npz` is gone.
    """
    with np.load(_memory(directory)) as saved_state:
        settings = Settings(**json.loads(str(saved_state["settings"])))
        machine = _Machine(
            state=saved_state["state"],
            windows=saved_state["windows"],
            seed=saved_state["seed"],
            chunk=int(saved_state["chunk"]),
            done=int(saved_state["done"]),
            records=int(saved_state["records"]),
        )
    return _write(directory, settings, machine, max(1, round(machine.records * fraction)))


def _write(directory: Path, settings: Settings, machine: _Machine, records: int) -> Generated:
    started = time.perf_counter()
    keys = share_partitions(settings.share_partitions, settings.seed, settings.state_partitions)
    writer = LogDirectoryWriter(directory, partitions=settings.state_partitions, seed=settings.seed)
    state_batches = 0
    for stretch in _stretches(settings, machine, keys, records):
        state_batches += len(stretch.state_batches)
        writer.append_to_partitions(
            keys.state_partitions[stretch.keys],
            encode_share_records(_records(keys, stretch)),
            stretch.times,
            SHAPES[settings.shape].linger_ms,
        )
    size = writer.close()
    np.savez(
        _memory(directory),
        settings=json.dumps({name: getattr(settings, name) for name in Settings.__slots__}),
        state=machine.state,
        windows=machine.windows,
        seed=machine.seed,
        chunk=machine.chunk,
        done=machine.done,
        records=machine.records,
    )
    return Generated(
        directory=directory,
        records=records,
        bytes=size,
        state_batches=state_batches,
        seconds=time.perf_counter() - started,
    )


def _memory(directory: Path) -> Path:
    return directory.with_name(directory.name + ".generator.npz")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stretch:
    """Simulated records: `columns`, `keys` and `times` have one entry each; `state_batches` are structs."""

    columns: Ints
    state_batches: pa.StructArray
    keys: Ints
    times: Ints


def _stretches(settings: Settings, machine: _Machine, keys: SharePartitions, records: int) -> Iterator[_Stretch]:
    """Simulate until there are so many records; the machine is left where the last one ended."""
    shape = SHAPES[settings.shape]
    while records > 0:
        events = shape.events(machine.chunk, settings.seed, keys)
        while records > 0 and machine.done < len(events.keys):
            stretch = _simulate(machine, events, shape, records)
            records -= len(stretch.keys)
            yield stretch
        if machine.done == len(events.keys):
            machine.chunk, machine.done = machine.chunk + 1, 0


def _simulate(machine: _Machine, events: sim.Events, shape: Shape, max_records: int) -> _Stretch:
    begin = machine.done
    room = min(max_records, len(events.keys) - begin)
    columns = np.empty((sim.OUTPUTS, room), np.int64)
    ranges = np.empty((sim.TOUCHED, room * STATE_BATCHES_PER_RECORD + shape.window), np.int64)
    done, count, batches = sim.simulate(
        sim.Events(*(column[begin:] for column in events)),
        machine.state,
        machine.windows,
        shape.habits,
        machine.seed,
        columns,
        ranges,
    )
    machine.done += done
    machine.records += count
    columns = columns[:, :count]
    source = columns[sim.O_EVENT] + begin
    return _Stretch(
        columns=columns,
        state_batches=pa.StructArray.from_arrays(
            [
                buffers.numbers(kind.type, ranges[column, :batches])
                for kind, column in zip(STATE_BATCH, range(sim.TOUCHED), strict=True)
            ],
            fields=list(STATE_BATCH),
        ),
        keys=events.keys[source],
        times=events.times[source],
    )


def _records(keys: SharePartitions, stretch: _Stretch) -> pa.RecordBatch:
    columns = stretch.columns
    which = pa.array(stretch.keys)
    snapshot = columns[sim.O_KIND] == sim.SNAPSHOT
    ends = np.concatenate([[0], columns[sim.O_BATCH_END]]).astype(np.int32)
    count = len(stretch.keys)
    return pa.RecordBatch.from_pydict(
        {
            "record_type": pa.array(["snapshot", "update"]).take(pa.array(columns[sim.O_KIND])),
            "group_id": keys.group_ids.take(which),
            "topic_id": keys.topic_ids.take(which),
            "partition": keys.partitions.take(which),
            "snapshot_epoch": buffers.numbers(pa.int32(), columns[sim.O_SNAPSHOT_EPOCH]),
            "state_epoch": buffers.numbers(pa.int32(), columns[sim.O_STATE_EPOCH], snapshot),
            "leader_epoch": buffers.numbers(pa.int32(), columns[sim.O_LEADER_EPOCH]),
            "start_offset": buffers.numbers(pa.int64(), columns[sim.O_START]),
            "delivery_complete_count": buffers.numbers(pa.int32(), columns[sim.O_DCC]),
            "create_timestamp_ms": buffers.numbers(pa.int64(), columns[sim.O_CREATE], snapshot),
            "write_timestamp_ms": buffers.numbers(pa.int64(), columns[sim.O_WRITE], snapshot),
            "state_batches": pa.ListArray.from_arrays(pa.array(ends), stretch.state_batches),
            "unknown_tags": pa.array([[]], pa.list_(UNKNOWN_TAG)).take(pa.array(np.zeros(count, np.int8))),
        }
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Command line: prints one JSON line about the written records."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.generate", description=f"Write log segments of {STATE_TOPIC} for benchmarks."
    )
    parser.add_argument("--shape", choices=sorted(SHAPES), default="hot")
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--out", type=Path, required=True, help="log directory: to be made, or with --append there")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--share-partitions", type=int, default=None)
    parser.add_argument("--state-partitions", type=int, default=50)
    parser.add_argument("--append", type=float, default=None, metavar="FRACTION", help="of the records that are there")
    chosen = parser.parse_args(arguments)
    try:
        if chosen.append is not None:
            generated = append(chosen.out, fraction=chosen.append)
        else:
            generated = generate(
                chosen.out,
                shape=chosen.shape,
                records=chosen.records,
                seed=chosen.seed,
                share_partition_count=chosen.share_partitions,
                state_partitions=chosen.state_partitions,
            )
    except OSError as error:
        print(f"bench.generate: {error}", file=sys.stderr)
        return 1
    print(
        json.dumps(
            {
                "directory": str(generated.directory),
                "records": generated.records,
                "bytes": generated.bytes,
                "state_batches": generated.state_batches,
                "seconds": round(generated.seconds, 3),
            }
        )
    )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
