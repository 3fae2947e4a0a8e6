"""A runtime that brings an archive of its own classes needs none of ours."""

from sharelens.spark import train_class_archive
from sharelens.spark.java import Java


def test_runtime_with_its_own_archive_needs_no_base(tmp_path):
    (tmp_path / "lib" / "server").mkdir(parents=True)
    (tmp_path / "lib" / "server" / "classes.jsa").write_bytes(b"x")
    assert train_class_archive.base_options(Java(home=tmp_path, version=21, origin="test")) == ()
