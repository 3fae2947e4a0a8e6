"""The recorded broker logs that tests read, and the truth beside them; tests/data/README.md says what each file is.

`dataset(name)` unpacks a data set once a test run, into a folder that all workers of the run share and that goes away
with it. More data sets (larger ones, say) are found where the environment variable SHARELENS_KAFKA_LOGS points.
"""

import functools
import hashlib
import os
from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest

from sharelens.demo_data.packed import SUFFIX, unpack
from sharelens.kafka_log.layout import scan_log_directory
from sharelens.kafka_log.reader import read_split, readable_end, splits
from sharelens.kafka_log.union import unite
from tests.once import made_once

DATA = Path(__file__).parent / "data"
MODEL_SETS = ("combiner", "coordinator", "metadata")
"""Data sets without share state: what Kafka's own classes answered, and a log of the controllers."""
STREAMS_SETS = ("streams-admin", "streams-basic", "streams-topology")
"""Logs of streams groups alone, with what the Admin client answered of them."""
CONSUMER_SETS = ("consumer", "consumer-migration")
"""Logs of consumer groups alone, with what the Admin client answered of them."""
KINDS = ("admin", "codec-zstd", "crash", "dlq", "edge", "pruned", "streams", "transactions", "upgrade", "v44")
"""Logs of every kind; the other scenarios are of these kinds, too."""
LAKE_KINDS = ("admin", "dlq", "edge", "streams", "transactions")
"""Those whose tables differ in kind: deletions, dead letters, odd requests, streams groups, transactions. Of the others
the reading of logs is special."""
FEW = ("dlq", "streams")
"""Those for tests of which another one proves the tables: share groups with dead letters, and streams groups."""
SHARE_STATE = "formatter.jsonl"
"""The records of `__share_group_state` as Kafka's formatter prints them."""
MORE_LOGS_VARIABLE = "SHARELENS_KAFKA_LOGS"


def packed_names() -> tuple[str, ...]:
    """The data sets that the project carries, sorted."""
    return tuple(sorted(path.name.removesuffix(SUFFIX) for path in DATA.glob(f"*{SUFFIX}")))


def scenarios() -> tuple[str, ...]:
    """Every data set with a log directory and share state: the carried ones, then those only in SHARELENS_KAFKA_LOGS.

    Sets of streams and consumer groups alone have no SHARE_STATE file: nothing to compare with.
    """
    carried = tuple(name for name in packed_names() if name not in MODEL_SETS + STREAMS_SETS + CONSUMER_SETS)
    extra_logs = _more_logs()
    if extra_logs is None:
        return carried
    there = sorted(path.parent.name for path in extra_logs.glob("*/logs") if path.is_dir())
    with_share_state = [name for name in there if (extra_logs / name / SHARE_STATE).is_file()]
    return carried + tuple(name for name in with_share_state if name not in carried)


def kinds_first(kinds: Collection[str] = LAKE_KINDS, but: Collection[str] = ()) -> list[Any]:
    """Every scenario but some, as parameters of a costly test: a log of each kind, the others for the soak."""
    return [
        pytest.param(name, marks=() if name in kinds else pytest.mark.soak) for name in scenarios() if name not in but
    ]


def dataset(name: str) -> Path:
    """The folder of one data set. Tests share it: read it, or copy what is to be changed."""
    packed = DATA / f"{name}{SUFFIX}"
    if packed.is_file():
        return _unpacked(packed, name)
    extra_logs = _more_logs()
    if extra_logs is not None and (extra_logs / name).is_dir():
        return extra_logs / name
    places = ", ".join(str(place) for place in (DATA, extra_logs) if place is not None)
    raise LookupError(f"no data set {name!r} in {places}; there are {', '.join(packed_names())}")


def raw_records(name: str, topic: str) -> dict[tuple[int, int], tuple[bytes | None, bytes | None]]:
    """Key and value of each data record of a topic in a data set's segments, by partition and offset."""
    return raw_records_of(dataset(name) / "logs", topic)


def raw_records_of(log_dir: Path, topic: str) -> dict[tuple[int, int], tuple[bytes | None, bytes | None]]:
    """Key and value of each data record of a topic in a log directory, by partition and offset."""
    records: dict[tuple[int, int], tuple[bytes | None, bytes | None]] = {}
    for partition in unite([scan_log_directory(str(log_dir))]):
        if partition.topic != topic:
            continue
        end = readable_end(partition, include_uncommitted=True)
        first = min(segment.base_offset for copy in partition.copies for segment in copy.segments)
        for split in splits(partition, first, end, 64 << 20):
            for chunk in read_split(split, include_uncommitted=True):
                assert chunk.problems.num_rows == 0
                for row in chunk.records.select(["offset", "key", "value", "is_control"]).to_pylist():
                    if not row["is_control"]:
                        records[partition.partition, row["offset"]] = (row["key"], row["value"])
    return records


def expected_sha256(name: str) -> str:
    """What SHA256SUMS says of the packed data set."""
    for line in (DATA / "SHA256SUMS").read_text(encoding="ascii").splitlines():
        digest, _, file_name = line.partition("  ")
        if file_name == f"{name}{SUFFIX}":
            return digest
    raise LookupError(f"{DATA / 'SHA256SUMS'} has no line for {name}{SUFFIX}")


@functools.cache
def _unpacked(packed: Path, name: str) -> Path:
    digest = hashlib.sha256(packed.read_bytes()).hexdigest()
    if digest != expected_sha256(name):
        raise ValueError(f"{packed} has SHA-256 {digest}, SHA256SUMS says {expected_sha256(name)}: fetch it again")
    return made_once(f"data/{name}", lambda folder: unpack(packed, folder))


def _more_logs() -> Path | None:
    value = os.environ.get(MORE_LOGS_VARIABLE)
    return Path(value) if value else None
