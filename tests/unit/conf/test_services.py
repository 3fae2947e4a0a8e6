"""Units and manifests: their commands are ones that our own parser takes, and their parts fit each other."""

import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from sharelens.cli.app import cli
from sharelens.cli.keep_fresh import Schedule, schedule_of

CONF = Path(__file__).parents[3] / "conf"
UNIT = CONF / "systemd" / "sharelens.service"
KUBERNETES = CONF / "kubernetes"
WORKLOADS = ("keep-fresh.yaml", "exporter.yaml")


def parsed(words: Sequence[str]) -> dict[str, Any]:
    """The parameters of a command with these words; click's errors for wrong ones."""
    command = cli.get_command(click.Context(cli), words[0])
    assert command is not None
    return command.make_context(words[0], list(words[1:])).params


def schedule(words: Sequence[str]) -> Schedule:
    options = schedule_of("run", parsed(words))
    assert options is not None
    return options


def exec_start() -> list[str]:
    text = UNIT.read_text(encoding="utf-8").replace("\\\n", " ")
    (line,) = (line for line in text.splitlines() if line.startswith("ExecStart="))
    return shlex.split(line.removeprefix("ExecStart="))


def documents(name: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((KUBERNETES / name).read_text(encoding="utf-8")))


def test_the_unit_runs_a_command_that_there_is():
    program, *words = exec_start()
    assert Path(program).name == "sharelens"
    assert schedule(words).maintain_every_s == 600


def test_systemd_finds_no_fault_in_the_unit(tmp_path):
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("no systemd-analyze here")
    unit = tmp_path / UNIT.name
    unit.write_text(UNIT.read_text(encoding="utf-8").replace(exec_start()[0], sys.executable), encoding="utf-8")
    done = subprocess.run([program, "verify", "--man=no", str(unit)], capture_output=True, text=True, check=False)
    complaints = [line for line in done.stderr.splitlines() if UNIT.name in line]
    assert (done.returncode, complaints) == (0, []), done.stderr


@pytest.mark.parametrize("name", WORKLOADS)
def test_a_manifest_serves_at_the_port_that_its_service_and_probes_name(name):
    service, workload = documents(name)
    template = workload["spec"]["template"]
    (container,) = template["spec"]["containers"]
    params = parsed(container["args"])
    port = int(params["listen"].rpartition(":")[2])
    (declared,) = container["ports"]
    assert (declared["containerPort"], service["spec"]["ports"][0]["port"]) == (port, port)
    assert template["metadata"]["annotations"]["prometheus.io/port"] == str(port)
    assert all(
        container[probe]["httpGet"]["port"] == declared["name"] for probe in container if probe.endswith("Probe")
    )
    assert params["allow_remote"]
    labels = template["metadata"]["labels"]
    assert labels == workload["spec"]["selector"]["matchLabels"] == service["spec"]["selector"]


@pytest.mark.parametrize("name", WORKLOADS)
def test_a_manifest_mounts_what_its_command_reads_and_has_no_secrets(name):
    _, workload = documents(name)
    spec = workload["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    volumes = {volume["name"] for volume in spec["volumes"]}
    volumes |= {claim["metadata"]["name"] for claim in workload["spec"].get("volumeClaimTemplates", ())}
    assert mounts.keys() == volumes
    assert parsed(container["args"])["command_config"].startswith(f"{mounts['client']}/")
    assert spec["securityContext"]["runAsNonRoot"]
    assert "password" not in (KUBERNETES / name).read_text(encoding="utf-8")


def test_a_lake_has_one_writer_and_lies_on_its_volume():
    _, workload = documents("keep-fresh.yaml")
    (container,) = workload["spec"]["template"]["spec"]["containers"]
    assert workload["spec"]["replicas"] == 1
    assert schedule(container["args"]).maintain_every_s is not None
    assert parsed(container["args"])["lake"].startswith("/lake/")
