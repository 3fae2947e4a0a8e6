"""What meta.properties says about a log directory."""

import pytest

from sharelens.kafka_log.checkpoints import Meta, read_meta
from sharelens.kafka_log.errors import CheckpointError
from sharelens.kafka_log.filesystem import folder_at


@pytest.mark.parametrize(
    ("text", "meta"),
    [
        (None, Meta(cluster_id=None, node_id=None)),
        ("#Thu\nversion=1\nnode.id=2 \ncluster.id=a\\=b\n", Meta(cluster_id="a=b", node_id=2)),
        ("version=0\nbroker.id=3\ncluster.id=\n", Meta(cluster_id=None, node_id=3)),
        ("node.id=x\n", Meta(cluster_id=None, node_id=None)),
    ],
)
def test_cluster_and_node_are_read_where_the_file_has_them(tmp_path, text, meta):
    if text is not None:
        (tmp_path / "meta.properties").write_text(text)
    assert read_meta(folder_at(str(tmp_path))) == meta


def test_a_broken_escape_names_the_file(tmp_path):
    (tmp_path / "meta.properties").write_text("cluster.id=\\u12\n")
    with pytest.raises(CheckpointError, match="meta.properties:1: .*copy it again"):
        read_meta(folder_at(str(tmp_path)))
