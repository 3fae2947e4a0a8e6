"""Log directories put together from raw record batches, so that tests can cut, break and rearrange them."""

import shutil
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from tests.logs.state_logs import STATE_TOPIC, STATE_TOPIC_ID, encoded_records
from tools.log_writer.writer import encode_batch, record_columns

HEADER_BYTES = 12
"""Base offset and length: what a reader needs to find the next batch."""


def batches_of(segment: Path) -> list[bytes]:
    """The record batches of a whole segment file."""
    data, batches, at = segment.read_bytes(), [], 0
    while at < len(data):
        size = HEADER_BYTES + int.from_bytes(data[at + 8 : at + 12], "big")
        batches.append(data[at : at + size])
        at += size
    return batches


def base_offset(batch: bytes) -> int:
    """The first offset of a batch."""
    return int.from_bytes(batch[:8], "big")


def broken(batch: bytes, place: int = -1) -> bytes:
    """A batch with one byte of its records changed, so that its checksum fails."""
    changed = bytearray(batch)
    changed[place] ^= 0xFF
    return bytes(changed)


def state_batches(records: Sequence[dict[str, object]], first_offset: int = 0, leader_epoch: int = 0) -> list[bytes]:
    """One batch a record of tests.logs.state_logs, at ascending offsets."""
    return [
        encode_batch(
            record_columns([key], [value], [stamp]), base_offset=first_offset + number, leader_epoch=leader_epoch
        )
        for number, (key, value, stamp) in enumerate(encoded_records(records))
    ]


def write_batches(folder: Path, batches: Iterable[bytes], *, topic_id: str | None = STATE_TOPIC_ID) -> Path:
    """A partition's folder with one segment of the batches; `topic_id` None leaves partition.metadata out."""
    batches = list(batches)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{base_offset(batches[0]):020d}.log").write_bytes(b"".join(batches))
    if topic_id is not None:
        (folder / "partition.metadata").write_text(f"version: 0\ntopic_id: {topic_id}", encoding="ascii")
    return folder


def state_directory(directory: Path, batches: Iterable[bytes]) -> Path:
    """A log directory whose state partition 0 holds the batches."""
    write_batches(directory / f"{STATE_TOPIC}-0", batches)
    return directory


def copy_changed(source: Path, target: Path, change: Callable[[str, list[bytes]], list[bytes]]) -> Path:
    """A copy of a log directory whose segments are what `change` makes of (partition folder, batches).

    Index files are left out; a segment that becomes empty vanishes.
    """
    for entry in sorted(source.iterdir()):
        if entry.is_file():
            target.mkdir(parents=True, exist_ok=True)
            shutil.copy(entry, target)
            continue
        for path in sorted(entry.iterdir()):
            if path.suffix == ".log" and path.stat().st_size:
                batches = change(entry.name, batches_of(path))
                if batches:
                    write_batches(target / entry.name, batches, topic_id=None)
            elif path.suffix not in {".index", ".timeindex", ".snapshot", ".log"}:
                (target / entry.name).mkdir(parents=True, exist_ok=True)
                shutil.copy(path, target / entry.name)
    return target
