"""Recorded logs with other bytes in their files: whatever the question, the end is an answer or one line, and soon.

Bytes change as they are, or inside records whose checksums are right again, so that hostile content is decoded, too:
records of share groups' state, of all kinds of groups, of the metadata log and of user topics, and small files.
"""

import contextlib
import io
import multiprocessing
import random
import resource
import shutil
import signal
from collections.abc import Sequence
from multiprocessing.connection import Connection
from pathlib import Path

import crc32c
import pytest

from sharelens.cli import main
from tests.datasets import dataset
from tests.logs.batch_files import batches_of

LOGS = (("admin", "logs"), ("streams", "logs"), ("metadata", "node1"))
QUESTIONS = (("overview",), ("audit",), ("state",), ("groups",), ("poison",), ("status",), ("lag",))
CHECKSUM = slice(17, 21)
"""Where a record batch has its checksum, of all that follows."""
SAMPLE, SOAK, IN_ONE_PROCESS = 12, 20_000, 500
LONGEST_S, MOST_KIB = 20, 1_200_000
EDGES = (0, 1, 127, 128, 255)
"""Bytes that lengths and counts turn into absurd ones."""


def other_bytes(data: bytes, chosen: random.Random) -> bytes:
    """Some bytes have other values, are gone, or come twice."""
    changed = bytearray(data)
    for _ in range(chosen.randint(1, 6)):
        at = chosen.randrange(len(changed)) if changed else 0
        match chosen.randrange(5):
            case 0:
                del changed[at : at + chosen.randint(1, 40)]
            case 1:
                changed[at:at] = changed[at : at + chosen.randint(1, 40)]
            case _ if changed:
                changed[at] = chosen.choice([*EDGES, chosen.randrange(256)])
    return bytes(changed)


def other_content(data: bytes, segment: Path, chosen: random.Random) -> bytes:
    """Some bytes of one record batch have other values, below a checksum that is right."""
    batches = batches_of(segment)
    number = chosen.randrange(len(batches))
    batch = bytearray(batches[number])
    for _ in range(chosen.randint(1, 6)):
        batch[chosen.randrange(CHECKSUM.stop, len(batch))] = chosen.choice([*EDGES, chosen.randrange(256)])
    batch[CHECKSUM] = crc32c.crc32c(bytes(batch[CHECKSUM.stop :])).to_bytes(4, "big")
    assert len(data) == sum(map(len, batches))
    return b"".join([*batches[:number], bytes(batch), *batches[number + 1 :]])


def fuzzed(folder: Path, seed: int) -> Path:
    """A log directory of which one file has other bytes."""
    chosen = random.Random(seed)
    name, part = chosen.choice(LOGS)
    logs = Path(shutil.copytree(dataset(name) / part, folder / "logs"))
    paths = sorted(path for path in logs.rglob("*") if path.is_file() and path.stat().st_size)
    segments = [path for path in paths if path.suffix == ".log"]
    path = chosen.choice(segments if chosen.randrange(8) else paths)
    data = path.read_bytes()
    is_sealed = path in segments and chosen.randrange(3)
    path.write_bytes(other_content(data, path, chosen) if is_sealed else other_bytes(data, chosen))
    return logs


def fault_of(folder: Path, seed: int) -> str | None:
    """What is wrong with the end of a question about a fuzzed log; None: it is an answer or one line."""
    words = random.Random(-seed).choice(QUESTIONS)
    errors = io.StringIO()
    with contextlib.redirect_stderr(errors), contextlib.redirect_stdout(io.StringIO()):
        code = main([*words, "--log-dir", str(fuzzed(folder, seed)), "-o", "json"])
    shutil.rmtree(folder / "logs")
    text = errors.getvalue()
    is_internal = "SHARELENS_TRACEBACK" in text or "Traceback" in text
    if code in (0, 1, 2, 3) and not is_internal and (code in (0, 3) or text.strip()):
        return None
    return f"seed {seed}, {' '.join(words)}: exit {code}, {text[-500:]}"


@pytest.mark.parametrize("words", QUESTIONS, ids="-".join)
def test_each_question_answers_over_the_log_as_it_is(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*words, "--log-dir", str(dataset("admin") / "logs"), "-o", "json"]) == 0
    assert capsys.readouterr().out


@pytest.mark.parametrize("seed", range(SAMPLE))
def test_a_question_about_a_fuzzed_log_ends_in_an_answer_or_in_one_line(seed: int, tmp_path: Path) -> None:
    assert fault_of(tmp_path, seed) is None


def in_time(signal_number: int, frame: object) -> None:
    """Ends what takes too long."""
    raise TimeoutError(f"no end within {LONGEST_S} s")


def report_faults(sender: Connection, folder: Path, seeds: Sequence[int]) -> None:
    """Sends the faults of logs with these seeds, and the memory of this process in KiB."""
    signal.signal(signal.SIGALRM, in_time)
    faults = []
    for seed in seeds:
        signal.alarm(LONGEST_S)
        try:
            fault = fault_of(folder, seed)
        except TimeoutError as error:
            fault = f"seed {seed}: {error}"
            shutil.rmtree(folder / "logs", ignore_errors=True)
        signal.alarm(0)
        faults += [fault] if fault is not None else []
    sender.send((faults, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss))


@pytest.mark.soak
@pytest.mark.parametrize("first", range(SAMPLE, SAMPLE + SOAK, IN_ONE_PROCESS))
def test_of_twenty_thousand_fuzzed_logs_none_hangs_or_takes_more_memory(first: int, tmp_path: Path) -> None:
    seeds = range(first, first + IN_ONE_PROCESS)
    receiver, sender = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.get_context("spawn").Process(target=report_faults, args=(sender, tmp_path, seeds))
    process.start()
    sender.close()
    faults, peak_kib = receiver.recv()
    process.join()
    assert faults == []
    assert peak_kib < MOST_KIB
