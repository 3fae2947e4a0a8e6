"""A package of another project that hides one of ours is named in one line."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from sharelens.shadowing import HOME, PACKAGES

COMMAND = [sys.executable, "-m", "sharelens", "--version"]
IMPORT = [sys.executable, "-c", "import sharelens"]


def run(words: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """A process that starts in `folder`, where Python looks first."""
    environment = {**os.environ, "PYTHONPATH": str(HOME)}
    return subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=60)


def test_all_packages_of_the_wheel_are_looked_at() -> None:
    project = tomllib.loads((HOME / "pyproject.toml").read_text(encoding="utf-8"))
    packages = project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    assert sorted(PACKAGES) == sorted(set(packages) - {"sharelens"})


@pytest.mark.slow
@pytest.mark.parametrize("file", ["jobs/__init__.py", "lake.py"])
def test_the_command_names_the_package_that_hides_ours(tmp_path: Path, file: str) -> None:
    hiding = tmp_path / file
    hiding.parent.mkdir(exist_ok=True)
    hiding.write_text("")
    done = run(COMMAND, tmp_path)
    name = file.partition("/")[0].removesuffix(".py")
    assert done.returncode == 1
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith(
        f"sharelens: the package {name} comes from {tmp_path.resolve()}, not from sharelens in {HOME}"
    )


@pytest.mark.slow
def test_an_import_fails_with_the_same_line(tmp_path: Path) -> None:
    (tmp_path / "measures").mkdir()
    (tmp_path / "measures" / "__init__.py").write_text("")
    done = run(IMPORT, tmp_path)
    assert done.returncode == 1
    assert "ShadowedPackageError: the package measures comes from" in done.stderr.splitlines()[-1]


@pytest.mark.slow
def test_a_folder_without_python_hides_nothing(tmp_path: Path) -> None:
    (tmp_path / "lake").mkdir()  # a lake's folder, say
    assert run(COMMAND, tmp_path).returncode == 0


@pytest.mark.slow
def test_importing_sharelens_imports_no_spark() -> None:
    words = [sys.executable, "-c", "import sharelens, sys; print('pyspark' in sys.modules, 'pyarrow' in sys.modules)"]
    assert run(words, HOME).stdout.split() == ["False", "False"]
