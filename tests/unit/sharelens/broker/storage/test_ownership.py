"""Whose directory it is: ours and empty ones are taken, everything else is left as it was."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from sharelens.broker.errors import DirectoryError
from sharelens.broker.storage import ownership
from sharelens.kafka_formats.properties import parse

CLUSTER = "EwX0i205YghpbkM5d3uN7g"


def snapshot(directory: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


def locked_elsewhere(directory: Path) -> bool:
    """Whether another process finds the lock taken: POSIX locks don't keep their own process out."""
    program = (
        "import fcntl, os, sys\n"
        "descriptor = os.open(sys.argv[1], os.O_RDWR)\n"
        "try:\n    fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)\n"
        "except OSError:\n    sys.exit(3)\n"
    )
    return subprocess.run([sys.executable, "-c", program, directory / ".lock"], check=False).returncode == 3


@pytest.mark.parametrize("exists", [True, False])
def test_an_empty_or_missing_directory_is_claimed_and_marked(tmp_path, exists):
    directory = tmp_path / "deep" / "logs"
    if exists:
        directory.mkdir(parents=True)
    claim = ownership.claim(directory)
    assert (directory / ownership.MARK_FILE).exists()
    assert locked_elsewhere(directory)
    claim.release()
    assert not locked_elsewhere(directory)
    if not exists:
        assert directory.stat().st_mode & 0o777 == 0o700


def test_our_own_directory_is_claimed_again(tmp_path):
    ownership.claim(tmp_path).release()
    (tmp_path / "orders-0").mkdir()
    (tmp_path / "meta.properties").write_text("version=1\n")
    again = ownership.claim(tmp_path)
    assert locked_elsewhere(tmp_path)
    again.release()
    assert (tmp_path / "orders-0").is_dir()


@pytest.mark.parametrize(
    "name",
    [
        "meta.properties",
        "recovery-point-offset-checkpoint",
        "orders-0/00000000000000000000.log",
        "orders-0.abc-delete/partition.metadata",
        "00000000000000000000.log",
        "notes.txt",
    ],
)
def test_another_brokers_directory_is_refused_and_left_as_it_was(tmp_path, name):
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("evidence")
    before = snapshot(tmp_path)
    with pytest.raises(DirectoryError, match="name an empty or missing directory"):
        ownership.claim(tmp_path)
    assert snapshot(tmp_path) == before


def test_a_locked_directory_is_refused(tmp_path):
    program = (
        "import fcntl, os, sys\n"
        "descriptor = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)\n"
        "fcntl.lockf(descriptor, fcntl.LOCK_EX)\n"
        "print('held', flush=True)\nsys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, tmp_path / ".lock"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(DirectoryError, match="in use"):
            ownership.claim(tmp_path)
        assert not (tmp_path / ownership.MARK_FILE).exists()
        holder.stdin.close()
    ownership.claim(tmp_path).release()


def test_a_file_is_no_directory(tmp_path):
    (tmp_path / "logs").write_text("")
    with pytest.raises(DirectoryError, match="no directory"):
        ownership.claim(tmp_path / "logs")
    with pytest.raises(DirectoryError, match="can't be used"):
        ownership.claim(tmp_path / "logs" / "deeper")


@pytest.mark.parametrize("mark", ["", "[]", '{"format": 2}', "{}", "\x00"])
def test_a_mark_that_is_not_ours_is_refused(tmp_path, mark):
    (tmp_path / ownership.MARK_FILE).write_text(mark)
    with pytest.raises(DirectoryError, match="mark"):
        ownership.claim(tmp_path)


def test_meta_properties_are_kafkas_and_name_one_cluster_and_node(tmp_path):
    directory_id = ownership.ensure_meta(tmp_path, cluster_id=CLUSTER, node_id=1)
    actual = parse((tmp_path / "meta.properties").read_text())
    assert actual == {"version": "1", "cluster.id": CLUSTER, "node.id": "1", "directory.id": directory_id}
    assert ownership.ensure_meta(tmp_path, cluster_id=CLUSTER, node_id=1) == directory_id
    with pytest.raises(DirectoryError, match="node.id=1"):
        ownership.ensure_meta(tmp_path, cluster_id=CLUSTER, node_id=2)
    with pytest.raises(DirectoryError, match="cluster.id"):
        ownership.ensure_meta(tmp_path, cluster_id="another", node_id=1)
    (tmp_path / "meta.properties").write_text("version=\\u1\n")
    with pytest.raises(DirectoryError, match="meta.properties:1: "):
        ownership.ensure_meta(tmp_path, cluster_id=CLUSTER, node_id=1)


def test_a_directory_that_takes_no_write_says_so_in_one_line(tmp_path, monkeypatch):
    def refuse(*_: object, **__: object) -> int:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(DirectoryError, match="can't be used: Read-only file system$"):
        ownership.claim(tmp_path)
