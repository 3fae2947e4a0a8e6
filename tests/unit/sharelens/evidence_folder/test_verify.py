"""Tampering is found, whatever file it is in; sources that are no longer what they were are told."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from sharelens.evidence_folder.errors import EvidenceFolderError, ManifestError
from sharelens.evidence_folder.verify import FINDINGS, MEANING, recompute, verify, verify_sources
from sharelens.source.request import Source
from sharelens.tables.opening import open_evidence
from tests.evidence_folders import STORY, log_directory, write_evidence
from tests.logs.state_logs import START_MS, update
from tests.processes.in_process import make_lake

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return log_directory(tmp_path_factory.mktemp("evidence") / "logs")


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory, logs: Path) -> Path:
    place = tmp_path_factory.mktemp("evidence") / "INC-1"
    write_evidence(place, logs)
    return place


@pytest.fixture
def folder(original: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(original, tmp_path / "copy"))


def codes_of(folder: Path, **options: Any) -> list[tuple[str | None, str | None]]:
    return [(row["code"], row["path"]) for row in verify(folder, **options)[1]]


def sources(folder: Path, *log_dirs: Path, lake: Path | None = None) -> list[tuple[str | None, str | None]]:
    source = Source(log_dirs=tuple(map(str, log_dirs)), lake=None if lake is None else str(lake))
    with open_evidence(source) as evidence:
        read = verify(folder)[0]
        rows = [*verify_sources(evidence, read), *recompute(evidence, read, folder)]
    return [(row["code"], row["path"]) for row in rows]


def test_untouched_evidence_has_nothing_to_report(folder: Path, logs: Path) -> None:
    digest = (folder / "manifest.sha256").read_text("ascii").split()[0]
    assert codes_of(folder, noted_sha256=digest) == []
    assert sources(folder, logs) == []


def test_a_changed_byte_of_any_file_is_found(folder: Path) -> None:
    files = [path for path in sorted(folder.rglob("*")) if path.is_file() and path.name != "manifest.json"]
    assert len(files) > 50
    for path in files:
        before = path.read_bytes()
        path.write_bytes(before[:-2] + bytes([before[-2] ^ 1]) + before[-1:])
        name = str(path.relative_to(folder))
        assert codes_of(folder) == [
            ("manifest_differs", "manifest.json") if path.suffix == ".sha256" else ("changed", name)
        ]
        path.write_bytes(before)
    assert codes_of(folder) == []


def test_missing_extra_and_replaced_files_are_found(folder: Path) -> None:
    (folder / "tables" / "lag.csv").unlink()
    (folder / "tables" / "more.csv").write_text("x")
    (folder / "README.md").unlink()
    (folder / "README.md").symlink_to("/etc/hostname")
    (folder / "manifest.sha256").unlink()
    (folder / "empty").symlink_to(folder)
    assert sorted(codes_of(folder)) == [
        ("changed", "README.md"),
        ("extra", "empty"),
        ("extra", "tables/more.csv"),
        ("missing", "manifest.sha256"),
        ("missing", "tables/lag.csv"),
    ]


def test_a_folder_that_became_a_link_is_not_followed(folder: Path) -> None:
    (folder / "tables").rename(folder.parent / "elsewhere")
    (folder / "tables").symlink_to(folder.parent / "elsewhere")
    codes = codes_of(folder)
    assert len(codes) > 50
    assert {code for code, path in codes if str(path).startswith("tables/")} == {"changed"}
    assert ("extra", "tables") in codes


def test_a_pipe_in_the_place_of_a_file_is_no_file_and_does_not_hang(folder: Path) -> None:
    (folder / "README.md").unlink()
    os.mkfifo(folder / "README.md")
    assert codes_of(folder) == [("changed", "README.md")]


def test_a_rewritten_manifest_is_found_by_the_sidecar_and_by_the_number_noted_elsewhere(folder: Path) -> None:
    noted = (folder / "manifest.sha256").read_text("ascii").split()[0]
    document = json.loads((folder / "manifest.json").read_text("ascii"))
    document["user"] = "somebody"
    (folder / "manifest.json").write_text(json.dumps(document))
    assert codes_of(folder) == [("manifest_differs", "manifest.json")]
    assert codes_of(folder, noted_sha256=noted) == [("manifest_differs", "manifest.json")] * 2


@pytest.mark.parametrize(
    "path",
    [
        "../x",
        "/etc/passwd",
        "tables/../../x",
        "tables//lag.csv",
        "",
        ".",
        "tables/.",
        "a\\b",
        "a\0b",
        "manifest.json",
        "~x",
    ],
)
def test_a_manifest_that_names_other_places_is_refused(folder: Path, path: str) -> None:
    document = json.loads((folder / "manifest.json").read_text("ascii"))
    document["content"][0]["path"] = path
    (folder / "manifest.json").write_text(json.dumps(document))
    with pytest.raises(ManifestError, match="no file of evidence: refused"):
        verify(folder)


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", '{"format": "other"}', "[" * 100_000, '{"format": "sharelens-evidence", "format_version": 2}'],
)
def test_what_is_no_manifest_is_refused(folder: Path, text: str) -> None:
    (folder / "manifest.json").write_text(text)
    with pytest.raises(ManifestError):
        verify(folder)


@pytest.mark.parametrize(
    "broken",
    [
        {"format_version": 2},
        {"question": {}},
        {"question": None},
        {"content": [{"path": "a"}]},
        {"content": [{"path": "a", "size_bytes": -1, "sha256": "0" * 64}]},
        {"content": [{"path": "a", "size_bytes": 1, "sha256": "0" * 63}]},
        {"content": [{"path": "a", "size_bytes": 1, "sha256": "0" * 64}] * 2},
    ],
)
def test_a_broken_manifest_is_refused(folder: Path, broken: dict[str, Any]) -> None:
    document = json.loads((folder / "manifest.json").read_text("ascii"))
    (folder / "manifest.json").write_text(json.dumps(document | broken))
    with pytest.raises(ManifestError):
        verify(folder)


def test_a_place_without_a_manifest_is_refused(tmp_path: Path) -> None:
    for place in (tmp_path, tmp_path / "nothing"):
        with pytest.raises(ManifestError, match=r"has no manifest\.json"):
            verify(place)


def test_content_that_was_changed_together_with_the_manifest_comes_out_differently(tmp_path: Path, logs: Path) -> None:
    lying = log_directory(
        tmp_path / "lying", [*STORY[:3], update("g", batches=[(0, 4, 4, 1)], at_ms=START_MS + 1000), *STORY[4:]]
    )
    write_evidence(tmp_path / "lie", lying)
    assert codes_of(tmp_path / "lie") == []
    codes = sources(tmp_path / "lie", logs)
    assert ("content_differs", "tables/record.csv") in codes
    assert ("content_differs", "tables/record.parquet") in codes
    assert ("source_missing", "meta.properties") not in codes
    assert ("source_changed", "__share_group_state-0/00000000000000000000.log") in codes


def test_sources_that_grew_went_or_were_rewritten_are_told(folder: Path, logs: Path, tmp_path: Path) -> None:
    later = Path(shutil.copytree(logs, tmp_path / "later"))
    with (later / "__share_group_state-0" / "00000000000000000000.log").open("ab") as file:
        file.write(b"\0")
    (later / "orders-0" / "partition.metadata").write_text("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAABQ\n\n")
    (later / "orders-0" / "00000000000000000000.log").write_bytes(b"")
    assert [row for row in sources(folder, later) if row[0] != "content_differs"] == [
        ("source_grown", "__share_group_state-0/00000000000000000000.log"),
        ("source_grown", "orders-0/partition.metadata"),
        ("source_rewritten", "orders-0/00000000000000000000.log"),
    ]
    (later / "orders-0" / "00000000000000000000.log").unlink()
    assert ("source_missing", "orders-0/00000000000000000000.log") in sources(folder, later)


@pytest.mark.soak
def test_evidence_from_a_lake_is_compared_with_its_books(logs: Path, tmp_path: Path) -> None:
    make_lake(tmp_path / "lake", logs)
    write_evidence(tmp_path / "one", lake=tmp_path / "lake")
    assert sources(tmp_path / "one", lake=tmp_path / "lake") == []
    assert sources(tmp_path / "one", logs) == [("source_other_kind", None)]
    document = json.loads((tmp_path / "one" / "manifest.json").read_text("ascii"))
    assert {row["topic"] for row in document["sources"]["extents"]} == {"__share_group_state", "orders"}
    document["sources"]["extents"][0]["sha256"] = "0" * 64
    document["sources"]["extents"][1]["run_id"] = 77
    (tmp_path / "one" / "manifest.json").write_text(json.dumps(document))
    assert [code for code, _ in sources(tmp_path / "one", lake=tmp_path / "lake")] == [
        "source_changed",
        "source_missing",
    ]


def test_evidence_is_never_written_over_anything(folder: Path, logs: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    for place in (folder, tmp_path / "link"):
        with pytest.raises(EvidenceFolderError, match="exists already"):
            write_evidence(place, logs)
    with pytest.raises(EvidenceFolderError, match="not a directory"):
        write_evidence(tmp_path / "no" / "where", logs)
    assert codes_of(folder) == []
    assert sorted(path.name for path in tmp_path.iterdir()) == ["copy", "link"]


def test_evidence_is_for_its_owner_alone(folder: Path) -> None:
    modes = {path.stat().st_mode & 0o777 for path in folder.rglob("*") if path.is_file()}
    assert modes == {0o600}
    assert {path.stat().st_mode & 0o777 for path in (folder, folder / "tables")} == {0o700}


def test_every_finding_has_a_meaning() -> None:
    assert set(FINDINGS) <= set(MEANING)
