"""Pack the data sets of the tests and of the demo from a folder of recorded broker logs.

    python -m tools.pack_datasets FOLDER

FOLDER has one folder a data set (see tests/data/README.md). A pack changes only when a file in it does; packs of other
data sets stay.
"""

import hashlib
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from sharelens.demo_data import SCENARIOS
from sharelens.demo_data.packed import SUFFIX, pack

ROOT = Path(__file__).parents[1]
TEST_DATA = ROOT / "tests" / "data"
DEMO_DATA = ROOT / "sharelens" / "demo_data"
MAX_TOTAL_BYTES = 20 << 20


def main(argv: Sequence[str]) -> int:
    """Pack every data set below the one folder in `argv`."""
    if len(argv) != 1 or not Path(argv[0]).is_dir():
        print("usage: python -m tools.pack_datasets FOLDER", file=sys.stderr)
        return 2
    folder = Path(argv[0])
    TEST_DATA.mkdir(parents=True, exist_ok=True)
    sums = [_pack_one(data_set, TEST_DATA, _any_file) for data_set in _data_sets(folder)]
    _write_sums(sums)
    for name in SCENARIOS:
        if (folder / name).is_dir():
            _pack_one(folder / name, DEMO_DATA, _logs_and_answers)
    total = sum(path.stat().st_size for path in TEST_DATA.iterdir())
    print(f"{len(sums)} data sets, {total} bytes")
    return 0 if total <= MAX_TOTAL_BYTES else 1


def _data_sets(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.is_dir())


def _write_sums(sums: Sequence[str]) -> None:
    """Write the lines of SHA256SUMS over those of the same packs, in the order of the packs' names."""
    path = TEST_DATA / "SHA256SUMS"
    lines = path.read_text(encoding="ascii").splitlines(keepends=True) if path.is_file() else []
    by_name = {line.split()[1]: line for line in [*lines, *sums]}
    path.write_text("".join(by_name[name] for name in sorted(by_name)), encoding="ascii")


def _any_file(name: str) -> bool:
    del name
    return True


def _logs_and_answers(name: str) -> bool:
    return name.startswith("logs/") or name in ("checkpoints.jsonl", "meta.json")


def _pack_one(data_set: Path, into: Path, is_packed: Callable[[str], bool]) -> str:
    """Write one packed data set and return its line for SHA256SUMS."""
    files = [path.relative_to(data_set).as_posix() for path in data_set.rglob("*") if path.is_file()]
    files = [name for name in files if is_packed(name)]
    content = pack(data_set, files)
    target = into / f"{data_set.name}{SUFFIX}"
    target.write_bytes(content)
    print(f"{target.relative_to(ROOT)}: {len(files)} files, {len(content)} bytes")
    return f"{hashlib.sha256(content).hexdigest()}  {target.name}\n"


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
