"""The code of docs/how-to/use-pyspark.md runs as printed, in a program that starts its own session."""

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.datasets import dataset
from tests.in_process import recorded_lake

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "how-to" / "use-pyspark.md"
LAGS = re.compile(r"^\|gd-\w+\|\w+\|", re.MULTILINE)


def test_the_code_of_the_page_runs(tmp_path: Path) -> None:
    (tmp_path / "copy").symlink_to(dataset("dlq") / "logs")
    (tmp_path / "lake").symlink_to(recorded_lake("dlq"))
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    program = tmp_path / "program.py"
    program.write_text("".join(blocks), encoding="utf-8")
    left_out = ("PYSPARK_PYTHON", "SPARK_HOME", "SPARK_REMOTE", "PYSPARK_GATEWAY_PORT")
    environment = {name: value for name, value in os.environ.items() if name not in left_out}
    environment |= {"PYTHONPATH": str(ROOT), "SPARK_LOCAL_IP": "127.0.0.1"}
    done = subprocess.run([sys.executable, program], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    printed = done.stdout.replace(" ", "")
    assert "|__share_group_state|676|" in printed
    assert len(LAGS.findall(printed)) == 6
