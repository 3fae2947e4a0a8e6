"""The wheel holds what an installed command needs, and nothing else."""

import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from sharelens import __version__

ROOT = Path(__file__).parents[2]
PACKAGES = {"state_model", "sharelens", "jobs", "pyspark_kafka_log"}

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (built,) = folder.glob("*.whl")
    return built


def test_wheel_holds_the_packages_their_types_defaults_and_demo_logs(wheel):
    with zipfile.ZipFile(wheel) as content:
        names = set(content.namelist())
    assert {name.partition("/")[0] for name in names} == PACKAGES | {f"sharelens-{__version__}.dist-info"}
    assert {f"{package}/py.typed" for package in PACKAGES} <= names
    for needed in (
        "sharelens/conf/base/jobs.yaml",
        "sharelens/conf/base/spark.yaml",
        "sharelens/conf/base/log4j2.properties",
        "jobs/sql/lag_now.sql",
        "sharelens/runbooks/share-group-stuck.md",
        "sharelens/runbooks/gates/keys.md",
        "sharelens/demo_data/basic.tar.zst",
        "sharelens/report/page.html.j2",
        "sharelens/report/script.js",
        "sharelens/report/style.css",
        "sharelens/demo_data/dlq.tar.zst",
    ):
        assert needed in names
    of_caches = [name for name in names if "/compiled_kernels/" not in name]  # those of `make wheel` belong to it
    left_behind = [name for name in of_caches if "__pycache__" in name or name.endswith((".nbi", ".nbc", ".so"))]
    assert left_behind == []


def test_wheel_leaves_out_what_only_tests_and_benches_use(wheel):
    """What writes logs as bytes for them is tools/log_writer; the broker's own storage writes those of a product."""
    with zipfile.ZipFile(wheel) as content:
        names = content.namelist()
        modules = {name: content.read(name).decode() for name in names if name.endswith(".py")}
    assert {name.partition("/")[0] for name in modules} == PACKAGES
    users = [
        name for name, text in modules.items() if re.search(r"^\s*(from|import) (tools|tests|bench)\b", text, re.M)
    ]
    assert users == []
    writers = [
        name for name, text in modules.items() if re.search(r"^def (encode_share_records|encode_log)\b", text, re.M)
    ]
    assert writers == []


def test_wheel_names_the_command_and_the_spark_extra(wheel):
    with zipfile.ZipFile(wheel) as content:
        info = f"sharelens-{__version__}.dist-info"
        entry_points = content.read(f"{info}/entry_points.txt").decode()
        metadata = content.read(f"{info}/METADATA").decode()
    assert "sharelens = sharelens.cli.entry:command" in entry_points
    assert "jobs = jobs.commands:COMMANDS" in entry_points
    assert "Requires-Dist: pyspark==4.1.4; extra == 'spark'" in metadata
    assert "Requires-Dist: delta-spark==4.4.0; extra == 'spark'" in metadata


def test_unpacked_wheel_finds_its_defaults_and_answers_without_the_checkout(wheel, tmp_path):
    with zipfile.ZipFile(wheel) as content:
        content.extractall(tmp_path / "site")
    script = (
        "import sys, jobs; from sharelens.configuration.settings import load_settings\n"
        "from sharelens.demo_data import unpack_scenario\n"
        "from pathlib import Path\n"
        "assert jobs.__file__.startswith(sys.argv[1]), jobs.__file__\n"
        "from sharelens.cli import main; assert main(['runbook', 'ShareGroupStuck']) == 0\n"
        "print(load_settings().master, (unpack_scenario('basic', Path(sys.argv[2])) / 'logs').is_dir())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "site"), str(tmp_path / "demo")],
        cwd=tmp_path,
        env={"PYTHONPATH": str(tmp_path / "site"), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
    )
    lines = done.stdout.splitlines()
    assert (done.returncode, lines[0], lines[-1]) == (0, "# ShareGroupStuck", "local[*] True"), done.stderr


def test_reference_model_imports_nothing_but_the_standard_library():
    script = (
        "import pkgutil, sys, importlib, state_model\n"
        "names = [m.name for m in pkgutil.iter_modules(state_model.__path__, 'state_model.') if not m.ispkg]\n"
        "assert len(names) > 3\n"
        "[importlib.import_module(name) for name in names]\n"
        "ours = {name.partition('.')[0] for name in sys.modules}\n"
        "foreign = sorted(n for n in ours - {'state_model', '__main__'} if n not in sys.stdlib_module_names)\n"
        "print(foreign)\n"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-E", "-c", f"import sys; sys.path.insert(0, {str(ROOT)!r})\n{script}"],
        capture_output=True, text=True,
    )  # fmt: skip
    assert (done.returncode, done.stdout.strip()) == (0, "[]"), done.stderr
