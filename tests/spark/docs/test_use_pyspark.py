"""docs/how-to/use-pyspark.md runs as printed, from a wheel, where use-dataframes.md begins, too.

The session of all other tests is one of a clone; test_dataframe_pages.py runs the whole of use-dataframes.md in it.
"""

import re
from pathlib import Path

import pytest

from sharelens.configuration.settings import load_settings
from tests.datasets import dataset
from tests.pages import DOCS, blocks, installed
from tests.processes.in_process import recorded_lake

PAGES = {"use-pyspark.md": None, "use-dataframes.md": 1}
"""Pages and how many of their code blocks run, all with None."""
JOINED = re.compile(r"^\|gd-\w+\|blocked_by_record\|2026-", re.MULTILINE)
STATES = re.compile(r"^\|gd-\w+\|\d\|\d+\|\d+\|complete\|", re.MULTILINE)
QUICK = {**load_settings(environment="test").spark_conf, "spark.ui.enabled": "false"}
"""A reader's spark-defaults.conf: little data is not worth 200 tasks and good compilers."""


@pytest.mark.soak
def test_the_code_of_the_pages_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SPARK_HOME", "SPARK_REMOTE"):
        monkeypatch.delenv(name, raising=False)
    installation = installed("wheel", tmp_path / "installation")
    (tmp_path / "copy").symlink_to(dataset("dlq") / "logs")
    (tmp_path / "lake").symlink_to(recorded_lake("dlq"))
    code = []
    for page, count in PAGES.items():
        code += [block.text for block in blocks(DOCS / "how-to" / page) if block.language == "python"][:count]
    (tmp_path / "program.py").write_text("".join(code), encoding="utf-8")
    defaults = "".join(f"{name} {value}\n" for name, value in QUICK.items())
    (tmp_path / "spark-defaults.conf").write_text(defaults, encoding="utf-8")
    done = installation.run(f"SPARK_CONF_DIR=. SPARK_LOCAL_IP=127.0.0.1 {installation.python} program.py", tmp_path)
    assert done.returncode == 0, done.stderr
    printed = done.stdout.replace(" ", "")
    assert "|__share_group_state|676|" in printed
    assert len(JOINED.findall(printed)) == 6
    assert STATES.search(printed)
