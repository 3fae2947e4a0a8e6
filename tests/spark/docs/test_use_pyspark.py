"""docs/how-to/use-pyspark.md runs as printed, from a clone and from a wheel; there use-dataframes.md does too."""

import re
from pathlib import Path

import pytest

from tests.datasets import dataset
from tests.in_process import recorded_lake
from tests.pages import DOCS, blocks, installed

PAGES = {"clone": ("use-pyspark.md",), "wheel": ("use-pyspark.md", "use-dataframes.md")}
JOINED = re.compile(r"^\|gd-\w+\|blocked_by_record\|2026-", re.MULTILINE)
STATES = re.compile(r"^\|gd-\w+\|\d\|\d+\|\d+\|complete\|", re.MULTILINE)
DEFAULTS = """
spark.sql.shuffle.partitions 2
spark.ui.enabled false
"""
"""A reader's spark-defaults.conf: little data is not worth 200 tasks."""


@pytest.mark.parametrize("kind", PAGES)
def test_the_code_of_the_pages_runs(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SPARK_HOME", "SPARK_REMOTE"):
        monkeypatch.delenv(name, raising=False)
    installation = installed(kind, tmp_path / "installation")
    (tmp_path / "copy").symlink_to(dataset("dlq") / "logs")
    (tmp_path / "lake").symlink_to(recorded_lake("dlq"))
    code = [
        block.text for page in PAGES[kind] for block in blocks(DOCS / "how-to" / page) if block.language == "python"
    ]
    (tmp_path / "program.py").write_text("".join(code), encoding="utf-8")
    (tmp_path / "spark-defaults.conf").write_text(DEFAULTS, encoding="utf-8")
    done = installation.run(f"SPARK_CONF_DIR=. SPARK_LOCAL_IP=127.0.0.1 {installation.python} program.py", tmp_path)
    assert done.returncode == 0, done.stderr
    printed = done.stdout.replace(" ", "")
    assert "|__share_group_state|676|" in printed
    assert len(JOINED.findall(printed)) == 6
    assert bool(STATES.search(printed)) == ("use-dataframes.md" in PAGES[kind])
