"""Words about groups and their members that answers and the report share."""

from collections.abc import Callable

from sharelens.output.wording import name


def not_ready_reason(topology_epoch: int | None, validated_topology_epoch: int) -> str:
    """Why a group is not ready, as far as the log says it: it does not hold which topic is missing or wrong."""
    if topology_epoch is None:
        return "no topology"
    if validated_topology_epoch < 0:
        return "topics of the topology are missing or have other partition counts"
    return f"the topology of epoch {topology_epoch} is not yet validated"


def member_name(member_id: str, client_id: str | None, shown: Callable[[object], str] = name) -> str:
    """`client(member)`, or the member's id alone where the log does not name its client; `shown`: the form of each."""
    return shown(member_id) if client_id is None else f"{shown(client_id)}({shown(member_id)})"


def task_name(subtopology_id: str, partition: int) -> str:
    """The task as Kafka Streams prints it: `0_3`."""
    return f"{name(subtopology_id)}_{partition}"
