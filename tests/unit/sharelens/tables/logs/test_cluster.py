"""Evidence of a running cluster: what it leaves out of its lists is said, and its log is audited for metrics."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from sharelens.groups.replay import GROUP
from sharelens.live.cluster import Address, LiveCluster, UserTopics
from sharelens.metrics.rule_counts import rule_counts
from sharelens.source.request import Source
from sharelens.tables.logs.cluster import ClusterTables
from sharelens.tables.logs.tables import log_directories
from sharelens.tables.reading import read_group_records, read_places, read_states
from sharelens.tables.where import Keys
from state_model.streams.records import METADATA
from tests.logs.group_files import GroupEntry, epoch, write_group_partition
from tests.logs.state_logs import ORDERS_ID, snapshot, tombstone, update, write_log_directory

OTHER_ID = "AAAAAAAAAAAAAAAAAAAABw"
SKIPS = ("error", "snapshot_epoch_skips")


def evidence(
    folder: Path, records: Sequence[dict[str, Any]], groups: Sequence[str] = (), topic_ids: Sequence[str] = ()
) -> ClusterTables:
    """The evidence of a cluster that lists these groups and topics, and has these state records."""
    source = Source(log_dirs=(str(write_log_directory(folder / "logs", records)),))
    cluster = LiveCluster(Address(bootstrap_server="h:9092"), UserTopics.SAMPLES, most_bytes=1)
    cluster.left_out.begin("h:9092", groups, topic_ids)
    return ClusterTables(source, log_directories(source), cluster)


RECORDS = [
    snapshot("seen"),
    snapshot("hidden"),
    snapshot("seen", topic_id=OTHER_ID),
    snapshot("gone"),
    tombstone("gone"),
]


@pytest.mark.parametrize(
    "read",
    [lambda live: read_states(live, Keys()), lambda live: read_places(live, Keys())],
    ids=["states", "places"],
)
def test_groups_and_topics_with_state_that_the_cluster_does_not_list_are_said_once(tmp_path, capsys, read):
    live = evidence(tmp_path, RECORDS, groups=["seen"], topic_ids=[ORDERS_ID])
    read(live)
    of_groups, of_topics = capsys.readouterr().err.splitlines()
    assert "h:9092: the answer is incomplete: the log has state of 1 group (hidden), which" in of_groups
    assert of_groups.endswith("--operation Describe --group NAME")
    assert f"state of 1 topic ({OTHER_ID}), which" in of_topics
    assert of_topics.endswith("--operation Describe --topic NAME")
    read(live)
    assert capsys.readouterr().err == ""


def test_a_cluster_that_lists_all_is_silent(tmp_path, capsys):
    live = evidence(tmp_path, RECORDS, groups=["seen", "hidden"], topic_ids=[ORDERS_ID, OTHER_ID])
    read_places(live, Keys())
    read_states(live, Keys())
    assert capsys.readouterr().err == ""


def test_share_and_streams_groups_that_the_cluster_does_not_list_are_said(tmp_path, capsys):
    streams = {"epoch": 1, "metadata_hash": 1, "validated_topology_epoch": -1}
    entries = [(GROUP, epoch(2), "gone"), (GROUP, None, "gone"), (METADATA, streams, "hidden-app")]
    entries += [(GROUP, epoch(1), "hidden"), (GROUP, epoch(1), "seen")]
    write_group_partition(
        tmp_path / "logs",
        [GroupEntry(time_ms=1, record_type=kind, value=value, group_id=name) for kind, value, name in entries],
    )
    live = evidence(tmp_path, RECORDS[:1], groups=["seen"])
    read_group_records(live)
    (line,) = capsys.readouterr().err.splitlines()
    assert "has state of 2 groups (hidden, hidden-app), which the cluster does not list" in line


@pytest.mark.parametrize(("second", "findings"), [(1, 0), (5, 1)])
def test_the_findings_of_a_cluster_are_those_of_its_audit(tmp_path, second, findings):
    records = [snapshot(epoch=0), update(epoch=0, batches=[(0, 4, 2, 1)]), snapshot(epoch=second, start=5)]
    counts = rule_counts(evidence(tmp_path, records, ["g"], [ORDERS_ID]))
    assert counts.findings[SKIPS] == findings
    assert len(counts.findings) > 20
