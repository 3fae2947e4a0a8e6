"""The clusters of a lake at its published cut."""

from typing import Any, cast

from sharelens.lake.scan import Cut
from sharelens.output import name_cell
from state_model.errors import UsageError


def choose_cluster(lake: Cut, cluster_id: str | None) -> str:
    """The cluster to answer for.

    Raises:
        UsageError: several clusters and no choice, or an unknown cluster.
    """
    known_clusters = clusters(lake)
    if cluster_id is not None:
        if cluster_id not in known_clusters:
            raise UsageError(
                f"no cluster {name_cell(cluster_id)} in lake {lake.lake}; clusters there: "
                f"{', '.join(known_clusters) or 'none'}"
            )
        return cluster_id
    if len(known_clusters) > 1:
        raise UsageError(
            f"lake {lake.lake} holds several clusters, give --cluster-id with one of: {', '.join(known_clusters)}"
        )
    return known_clusters[0]


def evidence_rows(lake: Cut) -> list[dict[str, Any]]:
    """One row a state partition of the published cut (`sharelens.lake.tables.EVIDENCE`)."""
    return cast("list[dict[str, Any]]", lake.publication["evidence"])


def clusters(lake: Cut) -> list[str]:
    """The clusters of the published cut; without state, the published cluster."""
    return sorted({row["cluster_id"] for row in evidence_rows(lake)}) or [str(lake.publication["cluster_id"])]
