"""Every page of docs/tutorial and docs/how-to runs as printed, from an installed wheel; in the soak some from a clone.

A page runs in an empty folder of its own, from its first block to its last, in one shell. What a reader replaces by
names of his own is replaced here too (OWN): folders of brokers, groups, topics. NOT_RUN has what can't run, and why.
"""

import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path

import pytest

from tests.datasets import dataset
from tests.old_lakes import old_lake
from tests.pages import DOCS, KINDS, ROOT, WARM_MODULES, WITHOUT_CHECKS, Installation, blocks, installed, warmed
from tests.processes.in_process import recorded_lake

LOG = "copy"
"""The log directory in the folder of a page."""
OWN_PLACES = (
    (r"/var/lib/kafka/data|/var/kafka-copy|/backup/kafka-[12]|/backup/kafka(?!-)", f"$PWD/{LOG}"),
    (r"/backup/|/var/lib/kafka/(?=keep)|/etc/kafka/(?=server.properties)", "$PWD/"),
    (r"\borders-workers\b", "gd-copy"),
    (r"--topic orders\b", "--topic tasks"),
    (r"\b7aa90ec8\w{56}\b", "$(sha256sum INC-4711/manifest.json | cut -c-64)"),
    (r"\./copy-(monday|tuesday|broker2)", f"./{LOG}"),
)
NOT_RUN = {
    "--register --conf": "starts Hive in a JVM: tests/spark/sharelens/catalog/test_registration.py",
    "rsync ": "needs a second host",
    "aws s3 ": "needs a bucket",
    "rclone copy ": "the same",
    "--log-dir s3://": "reads a bucket: tests/components/test_bucket_page.py",
    "podman ": "needs a container runtime",
    "make wheel": "needs the checkout; the fixture `wheel` builds the wheel and installs it",
    "bin/pip install ": "fetches from the registry",
    "python3 -m venv ": "the same",
}
ELSEWHERE = {
    "explore.md": "tests/unit/sharelens/pages/test_command.py",
    "install.md": "its completion: tests/docs/test_install.py",
    "ask-a-cluster.md": "tests/broker/live/test_live.py",
    "keep-a-lake-fresh.md": "tests/broker/test_keep_fresh.py",
    "keep-a-lake-in-a-bucket.md": "tests/components/test_bucket_page.py",
    "monitor-with-prometheus.md": "its queries: tests/unit/conf/test_prometheus.py",
    "run-on-a-cluster.md": "tests/components/test_spark_cluster.py",
    "run-it-as-a-service.md": "its files: tests/unit/conf/test_systemd.py",
    "see-it-in-grafana.md": "its dashboard: tests/unit/conf/test_grafana.py",
    "reproduce-an-incident.md": "tests/broker/test_reproduce_page.py",
    "secure-the-light-broker.md": "tests/broker/security/test_secure_page.py",
    "schedule.md": "tests/dags/test_dags.py",
    "use-dataframes.md": "tests/spark/docs/test_dataframe_pages.py",
    "use-pyspark.md": "tests/spark/docs/test_use_pyspark.py",
}
OF_CLONES = ("first-answers.md", "read-the-report.md")
"""Pages that read packaged files, which lie elsewhere in a clone: recorded logs, runbooks."""
LOG_OF_PAGE = {"begin-an-incident.md": "timeouts", "read-the-report.md": "dlq", "was-it-kafka.md": "edge"}
CONFIGS = """#!/bin/sh
echo 'Dynamic configs for group gd-copy are:'
echo '  errors.deadletterqueue.topic.name=dlq.tasks sensitive=false synonyms={}'
"""
BROKER = "group.share.delivery.count.limit=5\n"
PAGES = sorted([*(DOCS / "tutorial").glob("*.md"), *(DOCS / "how-to").glob("*.md")])

pytestmark = pytest.mark.slow


@pytest.fixture(scope="session")
def installations(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Installation]]:
    """Installations by kind, each made when a test first needs it: tests come in any order."""
    with ExitStack() as stack:

        @cache
        def installation_of(kind: str) -> Installation:
            place = tmp_path_factory.mktemp(kind)
            modules = WARM_MODULES if kind == "wheel" else WITHOUT_CHECKS
            return stack.enter_context(warmed(installed(kind, place), place, modules))

        yield installation_of


@pytest.fixture(params=KINDS)
def installation(request: pytest.FixtureRequest, installations: Callable[[str], Installation]) -> Installation:
    return installations(request.param)


def test_an_installation_runs_its_own_code(installation: Installation, tmp_path: Path) -> None:
    done = installation.run('python -c "import sharelens; print(sharelens.__file__)"', tmp_path)
    inside = str(ROOT) if "PYTHONPATH" in installation.variables else str(installation.python.parents[1])
    assert done.stdout.startswith(inside), done.stderr


@pytest.mark.parametrize(
    ("installation", "page"),
    [
        pytest.param(kind, page, id=f"{kind}-{page.stem}", marks=() if kind == "wheel" else pytest.mark.soak)
        for kind in KINDS
        for page in PAGES
        if page.name not in ELSEWHERE and (kind == "wheel" or page.name in OF_CLONES)
    ],
    indirect=["installation"],
)
def test_the_page_runs(page: Path, installation: Installation, tmp_path: Path) -> None:
    prepare(page, tmp_path)
    script = script_of(page)
    assert script
    done = installation.run(script, tmp_path)
    assert done.returncode == 0, f"{script}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    assert "Traceback" not in done.stderr


def prepare(page: Path, folder: Path) -> None:
    """What the reader of a page has: a log directory, and a lake where the page asks one that it did not make."""
    log = dataset(LOG_OF_PAGE.get(page.name, "dlq")) / "logs"
    shutil.copytree(log, folder / LOG)
    (folder / LOG / "meta.properties").touch()
    (folder / "bin").mkdir()
    (folder / "bin" / "kafka-configs.sh").write_text(CONFIGS)
    (folder / "bin" / "kafka-configs.sh").chmod(0o700)
    (folder / "server.properties").write_text(BROKER)
    match page.name:
        case "upgrade.md":
            old_lake("last-4", folder / "lake")
        case "gate-your-data.md":
            shutil.copytree(recorded_lake("dlq"), folder / "incident")
        case "copy-a-log.md" | "first-answers.md" | "begin-an-incident.md":
            pass
        case _:
            shutil.copytree(recorded_lake("dlq"), folder / "lake")


def script_of(page: Path) -> str:
    """The commands of a page as one script. Blocks of Python become one program, which runs behind the commands."""
    lines, program = [], ""
    for block in blocks(page):
        if block.language == "python":
            program += block.text
        for command in block.commands:
            runnable_text = "".join(
                line for line in as_logical_lines(command) if not any(word in line for word in NOT_RUN)
            )
            lines.append(with_reader_names(runnable_text))
    if program:
        lines.append(f"cat > program.py <<'END'\n{program}END\npython program.py")
    return "\n".join(lines)


def as_logical_lines(text: str) -> list[str]:
    """Lines with those that continue them."""
    return [match[0] for match in re.finditer(r"(?:[^\n]*\\\n)*[^\n]*\n?", text) if match[0]]


def with_reader_names(text: str) -> str:
    """The commands with the names of a reader's own brokers and groups."""
    for pattern, name in OWN_PLACES:
        text = re.sub(pattern, name, text)
    return text


def test_every_page_is_run_somewhere() -> None:
    names = {page.name for page in PAGES}
    assert set(ELSEWHERE) <= names
    for place in ELSEWHERE.values():
        file = place.rpartition(" ")[2]
        assert (ROOT / file).is_file(), file


def test_what_is_not_run_is_on_a_page() -> None:
    text = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    assert [word for word in NOT_RUN if word not in text] == []
