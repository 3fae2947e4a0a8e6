"""The packed data sets are whole, within their budget, and unpack to what they were packed from."""

import hashlib
import json

import pytest

from sharelens.demo_data.packed import SUFFIX, PackedFolderError, pack, unpack
from tests import datasets

BUDGET_BYTES = 20 << 20


@pytest.mark.parametrize("name", datasets.packed_names())
def test_packed_data_set_has_the_recorded_checksum(name):
    content = (datasets.DATA / f"{name}{SUFFIX}").read_bytes()
    assert hashlib.sha256(content).hexdigest() == datasets.expected_sha256(name)


def test_packed_data_sets_keep_to_their_budget():
    sizes = [path.stat().st_size for path in datasets.DATA.iterdir()]
    assert len(sizes) > 20
    assert sum(sizes) <= BUDGET_BYTES


def test_data_set_unpacks_once_a_run_with_truth_beside_the_logs():
    folder = datasets.dataset("basic")
    assert folder == datasets.dataset("basic")
    assert (folder / "logs" / "replication-offset-checkpoint").is_file()
    last_checkpoint = (folder / "checkpoints.jsonl").read_text().splitlines()[-1]
    assert json.loads(last_checkpoint)["states"]


def test_unknown_data_set_is_refused_with_the_names_there_are():
    with pytest.raises(LookupError, match="no data set 'nothing'.*basic"):
        datasets.dataset("nothing")


def test_larger_data_sets_are_found_where_the_setting_points(tmp_path, monkeypatch):
    (tmp_path / "huge" / "logs").mkdir(parents=True)
    (tmp_path / "huge" / datasets.SHARE_STATE).touch()
    monkeypatch.setenv(datasets.MORE_LOGS_VARIABLE, str(tmp_path))
    assert datasets.scenarios()[-1] == "huge"
    assert datasets.dataset("huge") == tmp_path / "huge"


def test_further_logs_without_share_state_are_no_scenarios(tmp_path, monkeypatch):
    for name in ("queues", "streams-alone"):
        (tmp_path / name / "logs").mkdir(parents=True)
    (tmp_path / "queues" / datasets.SHARE_STATE).touch()
    monkeypatch.delenv(datasets.MORE_LOGS_VARIABLE, raising=False)
    carried = datasets.scenarios()
    monkeypatch.setenv(datasets.MORE_LOGS_VARIABLE, str(tmp_path))
    assert datasets.scenarios() == (*carried, "queues")


def test_changed_data_set_is_refused(tmp_path, monkeypatch):
    (tmp_path / f"basic{SUFFIX}").write_bytes(b"something else")
    (tmp_path / "SHA256SUMS").write_text(f"{'0' * 64}  basic{SUFFIX}\n")
    monkeypatch.setattr(datasets, "DATA", tmp_path)
    with pytest.raises(ValueError, match="fetch it again"):
        datasets.dataset("basic")


def test_packing_is_reproducible_and_unpacks_to_the_same_bytes(tmp_path):
    source = tmp_path / "source"
    (source / "a").mkdir(parents=True)
    (source / "a" / "x").write_bytes(b"\x00" * 1000)
    (source / "empty").write_bytes(b"")
    packed = pack(source, ["empty", "a/x"])
    assert packed == pack(source, ["a/x", "empty"])
    (tmp_path / "p").write_bytes(packed)
    unpack(tmp_path / "p", tmp_path / "out")
    assert (tmp_path / "out" / "a" / "x").read_bytes() == b"\x00" * 1000
    assert (tmp_path / "out" / "empty").read_bytes() == b""


def test_member_that_points_outside_the_folder_is_refused(tmp_path):
    (tmp_path / "outside").write_bytes(b"x")
    (tmp_path / "folder").mkdir()
    (tmp_path / "p").write_bytes(pack(tmp_path / "folder", ["../outside"]))
    with pytest.raises(PackedFolderError, match="not a plain file"):
        unpack(tmp_path / "p", tmp_path / "out")
