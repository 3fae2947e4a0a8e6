"""Damaged and hostile segments: a run always ends, and every offset it was to read is a row, a gap or not there yet."""

import itertools
import random
import struct
from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from jobs.options import RunOptions
from jobs.run import run
from sharelens.evidence.intervals import Interval, difference, intersection, union
from sharelens.lake.lake import Lake
from sharelens.lake.scan import Cut, open_lake
from state_model.errors import SharelensError
from tests.logs.batch_files import state_batches, state_directory, write_batches
from tests.logs.state_logs import START_MS, STATE_TOPIC, snapshot, tombstone, update
from tests.once import made_once
from tests.processes.in_process import make_lake, no_session
from tools.log_writer.writer import write_checkpoints

pytestmark = pytest.mark.slow

WIDE = [(0, (1 << 63) - 1, 2, 1), (1 << 62, (1 << 62) + 5, 4, 32767), (5, 4, 0, -1), (-7, -1, 100, 2)]
STORY = [
    snapshot("g", start=0),
    snapshot("h", start=(1 << 63) - 1),
    *(update("g", batches=[(n, n + 3, 2, 1)], at_ms=START_MS + n) for n in range(20)),
    update("h", batches=WIDE, at_ms=(1 << 63) - 1),
    snapshot("h", start=-(1 << 63), epoch=3, at_ms=-1),
    tombstone("never seen", at_ms=START_MS + 30),
    *(update("g", start=n, batches=[(n, n + 9, 4, 2)], at_ms=START_MS + 40 + n) for n in range(8)),
]
Change = Callable[[list[bytes], random.Random], list[bytes]]


def flipped_bits(batches: list[bytes], chosen: random.Random) -> list[bytes]:
    data = bytearray(b"".join(batches))
    for _ in range(chosen.randint(1, 12)):
        data[chosen.randrange(len(data))] ^= 1 << chosen.randrange(8)
    return [bytes(data)]


def cut_short(batches: list[bytes], chosen: random.Random) -> list[bytes]:
    data = b"".join(batches)
    return [data[: chosen.randrange(20, len(data))]]


def piece_cut_out(batches: list[bytes], chosen: random.Random) -> list[bytes]:
    data = b"".join(batches)
    at = chosen.randrange(20, len(data) - 20)
    return [data[:at], data[at + chosen.randrange(1, 300) :]]


def duplicated(batches: list[bytes], chosen: random.Random) -> list[bytes]:
    at = chosen.randrange(1, len(batches))
    return [*batches[:at], *batches[max(0, at - chosen.randint(1, 5)) : at], *batches[at:]]


def reordered(batches: list[bytes], chosen: random.Random) -> list[bytes]:
    mixed = batches[1:]
    chosen.shuffle(mixed)
    return [batches[0], *mixed]


def absurd_length(batches: list[bytes], chosen: random.Random) -> list[bytes]:
    at = chosen.randrange(1, len(batches))
    length = chosen.choice([-1, 0, 13, (1 << 31) - 1, -(1 << 31)])
    return [*batches[:at], batches[at][:8] + struct.pack(">i", length) + batches[at][12:], *batches[at + 1 :]]


def absurd_count(batches: list[bytes], chosen: random.Random) -> list[bytes]:
    at = chosen.randrange(1, len(batches))
    count = struct.pack(">i", chosen.choice([-1, 2, (1 << 31) - 1]))
    return [*batches[:at], batches[at][:57] + count + batches[at][61:], *batches[at + 1 :]]


def absurd_offset(batches: list[bytes], chosen: random.Random) -> list[bytes]:
    at = chosen.randrange(1, len(batches))
    offset = struct.pack(">q", chosen.choice([-1, 1 << 40, (1 << 63) - 1]))
    return [*batches[:at], offset + batches[at][8:], *batches[at + 1 :]]


def noise_between(batches: list[bytes], chosen: random.Random) -> list[bytes]:
    at = chosen.randrange(1, len(batches))
    return [*batches[:at], chosen.randbytes(chosen.randint(1, 200)), *batches[at:]]


CHANGES = (
    flipped_bits,
    cut_short,
    piece_cut_out,
    duplicated,
    reordered,
    absurd_length,
    absurd_count,
    absurd_offset,
    noise_between,
)
ROUNDS = 3
SOAK_ROUNDS = 60


LOOKED_AT = ("bronze.ingest_extent", "bronze.log_record", "bronze.quarantine", "silver.share_record")


def accounted(tables: dict[str, pa.Table], number: int) -> tuple[list[Interval], list[Interval], list[Interval]]:
    """Of a state partition: offsets asked for, offsets with a row in bronze, offsets in gaps."""
    in_partition = of_partition(number)
    extents = tables["bronze.ingest_extent"].filter(in_partition).to_pylist()
    requested = union((row["from_offset"], row["end_offset_exclusive"]) for row in extents)
    offsets = tables["bronze.log_record"].filter(in_partition).column("offset").to_pylist()
    assert len(offsets) == len(set(offsets)), "no row twice"
    gaps = union((gap["first_offset"], gap["last_offset"] + 1) for row in extents for gap in row["gaps"])
    return requested, union((offset, offset + 1) for offset in offsets), gaps


def of_partition(number: int) -> pc.Expression:
    return (pc.field("topic") == STATE_TOPIC) & (pc.field("partition") == number)


def damaged_lake(folder: Path, changes: Sequence[Change], rounds: int) -> None:
    """The lake of a log with a state partition for each round of each change; of odd rounds it is told that all of it
    was there, below the high watermark. A second run finds nothing."""
    intact_batches = state_batches(STORY)
    directories = (folder / "even", folder / "odd")
    present = {}
    for number, (change, turn) in enumerate(itertools.product(changes, range(rounds))):
        damaged = change(intact_batches, random.Random(f"{change.__name__} {turn}"))
        write_batches(directories[turn % 2] / f"{STATE_TOPIC}-{number}", damaged)
        present[STATE_TOPIC, number] = len(STORY)
    write_checkpoints(directories[1], high_watermarks=present)
    summary = make_lake(folder / "lake", *directories)
    assert summary.quarantined >= open_lake(folder / "lake").scan("bronze.quarantine").num_rows - summary.gaps
    run(RunOptions(lake=Lake(folder / "lake"), log_dirs=tuple(map(str, directories))), no_session)


def damage_is_accounted_for(lake: Cut, change: Change, numbers: Sequence[int]) -> None:
    """In the state partitions with these numbers, one a round."""
    tables = {name: lake.scan(name) for name in LOOKED_AT}
    present = lost = 0
    for turn, number in enumerate(numbers):
        requested, rows, gaps = accounted(tables, number)
        assert difference(requested, [*rows, *gaps]) == [], f"round {turn}"
        assert turn % 2 == 0 or difference([(0, len(STORY))], requested) == [], f"round {turn}"
        assert intersection(rows, gaps) == [], f"round {turn}"
        undecoded = tables["bronze.quarantine"].filter(of_partition(number)).num_rows
        decoded = tables["silver.share_record"].filter(pc.field("state_partition") == number).num_rows
        assert decoded + undecoded >= tables["bronze.log_record"].filter(of_partition(number)).num_rows
        present += len(rows)
        lost += undecoded + len(gaps)
    assert present > 0
    assert lost > 0 or change in (cut_short, duplicated)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_every_offset_of_a_damaged_log_is_a_row_or_a_gap(change: Change) -> None:
    shared_folder = made_once("lakes/damaged", lambda folder: damaged_lake(folder, CHANGES, ROUNDS))
    first = CHANGES.index(change) * ROUNDS
    damage_is_accounted_for(open_lake(shared_folder / "lake"), change, range(first, first + ROUNDS))


@pytest.mark.soak
@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_every_offset_of_many_damaged_logs_is_a_row_or_a_gap(change: Change, tmp_path: Path) -> None:
    damaged_lake(tmp_path, [change], SOAK_ROUNDS)
    damage_is_accounted_for(open_lake(tmp_path / "lake"), change, range(SOAK_ROUNDS))


def test_hostile_content_that_decodes_goes_through_whole(tmp_path: Path) -> None:
    make_lake(tmp_path / "lake", state_directory(tmp_path / "logs", state_batches(STORY)))
    lake = open_lake(tmp_path / "lake")
    assert lake.scan("silver.share_record").num_rows == len(STORY)
    assert lake.scan("bronze.quarantine").num_rows == 0
    (wide,) = [row for row in lake.scan("gold.share_partition_state").to_pylist() if row["group_id"] == "h"]
    assert wide["start_offset"] == -(1 << 63)
    closed = lake.scan("gold.delivery_history").to_pylist()
    assert max(row["last_offset"] for row in closed) == (1 << 63) - 1


def test_hostile_names_are_data_and_nothing_else(tmp_path: Path) -> None:
    groups = ["", "a\nb", "'; DROP TABLE x; --", "</script>", "-rf", "../../up", "\x1b[31m", "ü" * 5000]
    story = [record for group in groups for record in (snapshot(group, start=0), update(group, batches=[(0, 3, 2, 1)]))]
    make_lake(tmp_path / "lake", state_directory(tmp_path / "logs", state_batches(story)))
    states = open_lake(tmp_path / "lake").scan("gold.share_partition_state")
    assert sorted(states.column("group_id").to_pylist()) == sorted(groups)
    folders = {path.name for path in (tmp_path / "lake").rglob("*") if path.is_dir()}
    assert folders <= {
        "bronze",
        "silver",
        "gold",
        "_delta_log",
        "is_open=true",
        "is_open=false",
        "is_final=true",
        "is_final=false",
    } | {name for layer in ("bronze", "silver", "gold") for name in folder_names(tmp_path / "lake" / layer)}


def folder_names(layer: Path) -> set[str]:
    return {path.name for path in layer.iterdir()}


def test_an_empty_log_directory_gives_an_empty_lake(tmp_path: Path) -> None:
    (tmp_path / "logs" / f"{STATE_TOPIC}-0").mkdir(parents=True)
    (tmp_path / "logs" / f"{STATE_TOPIC}-0" / f"{0:020d}.log").touch()
    assert make_lake(tmp_path / "lake", tmp_path / "logs").counts.get("bronze.log_record", 0) == 0
    with pytest.raises(SharelensError):
        make_lake(tmp_path / "lake", tmp_path / "nowhere")
