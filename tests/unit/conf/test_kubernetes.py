"""The manifests: their commands are ones that our own parser takes, and their parts fit each other."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.processes.command_lines import parsed, schedule

KUBERNETES = Path(__file__).parents[3] / "conf" / "kubernetes"
WORKLOADS = ("keep-fresh.yaml", "exporter.yaml")


def documents(name: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((KUBERNETES / name).read_text(encoding="utf-8")))


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
