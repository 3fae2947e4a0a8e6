"""The parts of the bundle that need no registry."""

import hashlib
import os
from pathlib import Path

from tools import make_bundle


def test_requirements_name_the_version_and_hash_of_a_wheel(tmp_path: Path) -> None:
    wheel = tmp_path / "great_expectations-1.24.1-py3-none-any.whl"
    wheel.write_bytes(b"content")
    digest = hashlib.sha256(b"content").hexdigest()
    assert make_bundle.requirement(wheel) == f"great-expectations==1.24.1 --hash=sha256:{digest}\n"


def test_equal_folders_are_equal_archives(tmp_path: Path) -> None:
    archives = []
    for number in (1, 2):
        folder = tmp_path / str(number) / "bundle"
        (folder / "wheels").mkdir(parents=True)
        for name in ("b", "a", "wheels/c")[:: 1 if number == 1 else -1]:
            (folder / name).write_text(name)
            os.utime(folder / name, (number, number))
        archive = tmp_path / f"{number}.tar"
        make_bundle.pack(folder, archive)
        archives.append(archive.read_bytes())
    assert archives[0] == archives[1]


def test_checksums_cover_every_file(tmp_path: Path) -> None:
    (tmp_path / "wheels").mkdir()
    (tmp_path / "wheels" / "a-1-py3-none-any.whl").write_bytes(b"a")
    (tmp_path / "jars").mkdir()
    (tmp_path / "jars" / "b.jar").write_bytes(b"b")
    make_bundle.describe(tmp_path)
    sums = (tmp_path / "SHA256SUMS").read_text().splitlines()
    listed = {line.split("  ")[1]: line.split("  ")[0] for line in sums}
    files = {str(path.relative_to(tmp_path)) for path in make_bundle.files_of(tmp_path)} - {"SHA256SUMS"}
    assert set(listed) == files
    assert listed["jars/b.jar"] == hashlib.sha256(b"b").hexdigest()
    assert os.access(tmp_path / "install.sh", os.X_OK)
