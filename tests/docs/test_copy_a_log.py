"""The scripts of docs/how-to/copy-a-log.md, run as they stand on a broker's directory."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from sharelens.kafka_log.layout import scan_log_directory
from tests.datasets import dataset

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "copy-a-log.md"


def _scripts() -> dict[str, str]:
    """The page's bash blocks that begin with a setting of DATA, by the folder they fill."""
    blocks = re.findall(r"```bash\n(set -euo pipefail\n.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)
    return {"COPY" if "COPY=" in block else "KEEP": block for block in blocks}


@pytest.fixture
def broker(tmp_path):
    data = tmp_path / "data"
    shutil.copytree(dataset("crash") / "logs", data)
    (data / "meta.properties").write_text("version=1\ncluster.id=MkU3OEVBNTcwNTJENDM2Qg\nnode.id=1\n")
    return data


def _run(script: str, broker: Path, variable: str, target: Path) -> None:
    placed = re.sub(r"^DATA=.*$", f"DATA='{broker}'", script, flags=re.MULTILINE)
    placed = re.sub(rf"^{variable}=.*$", f"{variable}='{target}'", placed, flags=re.MULTILINE)
    subprocess.run(["bash", "-c", placed], check=True, capture_output=True)


@pytest.mark.parametrize("variable", ["COPY", "KEEP"])
def test_script_takes_the_whole_state_log(broker, tmp_path, variable):
    target = tmp_path / "taken"
    _run(_scripts()[variable], broker, variable, target)
    copied = scan_log_directory(str(target))
    assert copied.cluster_id == "MkU3OEVBNTcwNTJENDM2Qg"
    source = {folder.name for folder in broker.glob("__share_group_state-*")}
    assert {f"{p.topic}-{p.partition}" for p in copied.partitions if p.topic == "__share_group_state"} == source
    sizes = {log.relative_to(broker): log.stat().st_size for log in broker.glob("__share_group_state-*/*.log")}
    assert sizes
    assert {name: (target / name).stat().st_size for name in sizes} == sizes


@pytest.mark.slow
def test_linked_segment_outlives_the_brokers_delete_and_a_second_round_keeps_it(broker, tmp_path):
    target = tmp_path / "keep"
    script = _scripts()["KEEP"]
    _run(script, broker, "KEEP", target)
    segment = next(broker.glob("__share_group_state-0/*.log"))
    content = segment.read_bytes()
    segment.rename(segment.with_suffix(".log.deleted"))
    segment.with_suffix(".log.deleted").unlink()
    (segment.parent / "00000000000000000999.log").write_bytes(b"")
    _run(script, broker, "KEEP", target)
    assert (target / "__share_group_state-0" / segment.name).read_bytes() == content
