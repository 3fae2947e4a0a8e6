"""The incarnations of an internal topic in a lake: one that was deleted and created again has a new id."""

import pyarrow.compute as pc

from jobs import books
from sharelens.evidence.incarnations import newest_first
from sharelens.lake.lake import Lake
from state_model.topics import STATE_TOPIC


def incarnations(lake: Lake, topic: str = STATE_TOPIC, *, up_to_run: int | None = None) -> dict[str, list[str]]:
    """Per cluster the ids of a topic whose records runs took (up to a run), the one with the newest records first."""
    where = (pc.field("topic") == topic) & (pc.field("status") == "taken") & (pc.field("content") == "log_record")
    if up_to_run is not None:
        where &= pc.field("run_id") <= up_to_run
    times: dict[str, list[tuple[str, int | None]]] = {}
    for row in books.extents(lake, where):
        times.setdefault(row["cluster_id"], []).append((row["topic_id"], row["log_time_ms"]))
    return {cluster_id: newest_first(of_cluster) for cluster_id, of_cluster in times.items()}


def newest_incarnations(lake: Lake, topic: str = STATE_TOPIC) -> dict[str, str]:
    """Per cluster the id of a topic with the newest records, from which questions answer."""
    return {cluster_id: ids[0] for cluster_id, ids in incarnations(lake, topic).items()}


def changed_since(lake: Lake, run: int) -> dict[str, str]:
    """The clusters whose state topic is another one than at the end of a run, and its id.

    One whose extents up to the run are not known by themselves, because upkeep joined them, counts as changed.
    """
    several = {cluster_id: ids[0] for cluster_id, ids in incarnations(lake).items() if len(ids) > 1}
    before = incarnations(lake, up_to_run=run) if several else {}
    return {cluster_id: new for cluster_id, new in several.items() if before.get(cluster_id, [""])[0] != new}
