"""Is a cluster ready to be read? Whether it answers, has share groups, and gives this user an observer's rights."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from jobs.doctor.machine import Check
from sharelens.kafka_live.cluster import Cluster
from sharelens.kafka_live.configurations import group_ids, group_settings
from sharelens.kafka_live.connection import Connection
from sharelens.kafka_live.errors import ClusterError
from sharelens.kafka_live.features import ensure_share_groups
from sharelens.kafka_live.rights import ensure_visible, missing_rights, unreadable
from sharelens.live.cluster import LOGS, Address
from sharelens.output import name_cell
from sharelens.output.wording import counted
from state_model.topics import INTERNAL_TOPICS

MOST_NAMES = 5
ADD = "kafka-acls.sh --add --allow-principal User:NAME --operation"
IN_THE_LINE = "as the line says"
WITHOUT_RECORDS = "ages of their waiting records are unknown, and --user-topics all is refused"


def check_cluster(address: Address) -> Iterator[Check]:
    """One check a need; none behind a connection that fails."""
    try:
        with Connection(address.bootstrap_server, address.config) as connection:
            yield from _checks(connection)
    except ClusterError as error:
        yield Check(name="cluster", ok=False, detail=str(error), what_to_do=IN_THE_LINE)


def _checks(connection: Connection) -> Iterator[Check]:
    cluster = Cluster(connection)
    topics = cluster.topics().keys()
    nodes = counted(len(connection.nodes()), "broker")
    yield Check(name="cluster", ok=True, detail=f"{connection.bootstrap_server}: {cluster.cluster_id}, {nodes}")
    yield _of_error("share-groups", "share groups are on", lambda: ensure_share_groups(connection))
    yield _of_error("logs", _logs_text(topics & LOGS), lambda: ensure_visible(connection, sorted(LOGS - topics)))
    yield _of_topics("read-logs", unreadable(connection, sorted(topics & LOGS)), "the logs of share groups")
    users = sorted(topics - INTERNAL_TOPICS)
    of_users = _of_topics("read-topics", unreadable(connection, users), f"{counted(len(users), 'user topic')}")
    yield of_users if of_users.ok else replace(of_users, ok=True, detail=f"{of_users.detail}: {WITHOUT_RECORDS}")
    lines = missing_rights(connection)
    remedy = IN_THE_LINE if lines else ""
    yield Check(name="rights", ok=not lines, detail="; ".join(lines) or "on the cluster", what_to_do=remedy)
    groups = group_ids(connection)
    hidden = sorted(groups - group_settings(connection, groups).keys())
    yield _check(
        "settings", hidden, f"settings of {counted(len(groups), 'group')}", f"{ADD} DescribeConfigs --group NAME"
    )


def _logs_text(logs: Iterable[str]) -> str:
    return ", ".join(sorted(logs)) or "none yet: no group was used"


def _of_error(name: str, detail: str, check: Callable[[], object]) -> Check:
    try:
        check()
    except ClusterError as error:
        return Check(name=name, ok=False, detail=str(error), what_to_do=IN_THE_LINE)
    return Check(name=name, ok=True, detail=detail)


def _of_topics(name: str, forbidden: list[str], subject: str) -> Check:
    return _check(name, forbidden, subject, f"{ADD} Read --topic NAME")


def _check(name: str, forbidden: list[str], subject: str, remedy: str) -> Check:
    if not forbidden:
        return Check(name=name, ok=True, detail=subject)
    remainder_text = f" and {len(forbidden) - MOST_NAMES} more" if len(forbidden) > MOST_NAMES else ""
    named = ", ".join(map(name_cell, forbidden[:MOST_NAMES]))
    return Check(name=name, ok=False, detail=f"no right to {named}{remainder_text}", what_to_do=remedy)
