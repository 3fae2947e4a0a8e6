"""Writes an environment for Spark's executors as one archive: python -m tools.make_dist_env [--out FOLDER].

The wheel of this checkout with what it needs and compiled kernels, in a relocatable virtual environment, for
`spark.archives` (docs/how-to/run-on-a-cluster.md). It has no interpreter of its own: bin/python is a link.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path

from sharelens import __version__
from tools.make_bundle import MODIFIED_S, ROOT, build_wheel, platform_name

UV = Path(sys.executable).with_name("uv")
BESIDE = ("pandas",)
"""What pyspark's own worker imports beside the dependencies of the wheel."""
ENTRY = "sharelens_submit.py"
SUBMITTED = '''"""The command sharelens, for spark-submit."""

import sys

from sharelens.cli import main

sys.exit(main())
'''


def archive_name() -> str:
    """File name of the archive."""
    return f"sharelens-{__version__}-env-py{platform_name().replace(' ', '-').lower()}.tar.gz"


def make_environment(out: Path, python_there: str | None = None) -> Path:
    """Writes the archive into a folder, with the program for spark-submit beside it; the path of the archive.

    `python_there`: where the executors' machines have the interpreter, of the version that runs this; None: where it
    is here.
    """
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".dist-env-", dir=out) as scratch:
        environment = Path(scratch) / "environment"
        install(environment, build_wheel(Path(scratch)))
        compile_all(environment)
        point_at(environment, python_there or os.path.realpath(sys.executable))
        archive = Path(scratch) / archive_name()
        with tarfile.open(archive, "w:gz", compresslevel=1, format=tarfile.GNU_FORMAT) as tar:
            for path in sorted(environment.iterdir()):
                tar.add(path, arcname=path.name)
        (out / ENTRY).write_text(SUBMITTED, encoding="utf-8")
        return archive.replace(out / archive.name)


def install(environment: Path, wheel: Path) -> None:
    """Makes an environment with the wheel and its dependencies, of the versions of constraints.txt."""
    make = [str(UV), "venv", "--quiet", "--relocatable", "--no-project", "--python", os.path.realpath(sys.executable)]
    subprocess.run([*make, str(environment)], check=True, stdout=sys.stderr)
    into = ["--quiet", "--link-mode", "copy", "--python", str(environment / "bin" / "python")]
    versions = ["--constraint", str(ROOT / "constraints.txt")]
    subprocess.run([str(UV), "pip", "install", *into, *versions, str(wheel), *BESIDE], check=True, stdout=sys.stderr)


def compile_all(environment: Path) -> None:
    """Writes bytecode, which names the times of the sources: whole seconds, as the archive keeps them."""
    for path in environment.rglob("*"):
        if path.is_file() and not path.is_symlink():
            os.utime(path, (MODIFIED_S, MODIFIED_S))
    python = str(environment / "bin" / "python")
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    command = [python, "-I", "-m", "compileall", "-q", "-j", "0", str(environment / "lib")]
    subprocess.run(command, check=True, env=clean, stdout=sys.stderr)


def point_at(environment: Path, python: str) -> None:
    """Makes an interpreter that need not be here that of the environment."""
    link = environment / "bin" / "python"
    link.unlink()
    link.symlink_to(python)
    settings = environment / "pyvenv.cfg"
    lines = (line for line in settings.read_text(encoding="utf-8").splitlines() if not line.startswith("home"))
    settings.write_text("\n".join([f"home = {Path(python).parent}", *lines, ""]), encoding="utf-8")
    shutil.rmtree(environment / "share", ignore_errors=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Makes the archive and prints its path."""
    parser = argparse.ArgumentParser(prog="python -m tools.make_dist_env", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="folder of the archive (dist)")
    parser.add_argument("--python", metavar="PATH", help="the interpreter on the executors' machines (as here)")
    options = parser.parse_args(arguments)
    print(make_environment(options.out, options.python))
    return 0


if __name__ == "__main__":
    sys.exit(main())
