"""docs/how-to/secure-the-light-broker.md runs as printed, but for the ports; Kafka's tools are run elsewhere."""

from pathlib import Path

import pytest

from bench.brokers import HOST, free_ports
from tests.broker.test_reproduce_page import BROKER, IN_THE_BACKGROUND
from tests.pages import DOCS, KINDS, blocks, installed

PAGE = DOCS / "how-to" / "secure-the-light-broker.md"


@pytest.mark.one_in(4)
@pytest.mark.parametrize("kind", KINDS)
def test_the_page_runs(kind: str, tmp_path: Path) -> None:
    commands = [command for block in blocks(PAGE) if block.language in ("sh", "console") for command in block.commands]
    assert [command.startswith(BROKER) for command in commands].count(True) == 1
    script = "\n".join(each + IN_THE_BACKGROUND if each.startswith(BROKER) else each for each in commands)
    for port, free in zip(("9092", "9094"), free_ports(2), strict=True):
        script = script.replace(f"{HOST}:{port}", f"{HOST}:{free}")
    folder = tmp_path / "empty"
    folder.mkdir()
    done = installed(kind, tmp_path).run(f"set -e\n{script}", folder)
    assert done.returncode == 0, f"{script}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    assert "observer-secret" not in (folder / "broker-log" / "sharelens.catalog.json").read_text()
