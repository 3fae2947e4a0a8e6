"""Whether evidence is as its manifest says, whether its sources still are, and whether they give the same again."""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from sharelens.evidence_folder import manifest
from sharelens.evidence_folder.content import look_up, write_content
from sharelens.evidence_folder.errors import ManifestError
from sharelens.evidence_folder.manifest import ContentFile, Manifest
from sharelens.evidence_folder.sources import LAKE, LOG_DIRECTORIES, extents_of, look_at
from sharelens.kafka_log.files import join
from sharelens.output import Answer, by_importance, name_column
from sharelens.output.terminal import visible
from sharelens.tables.lakes.published import PublishedLake
from sharelens.tables.logs.directories import LogDirectories
from sharelens.tables.port import Tables
from sharelens.tables.reading import read_share_partitions
from sharelens.tables.where import Keys
from state_model.topics import STATE_TOPIC

FINDING, NOTE = "finding", "note"
SCHEMA = pa.schema([pa.field(name, pa.string()) for name in ("kind", "code", "path", "detail")])
COLUMNS = by_importance(
    (
        name_column("KIND", "kind"),
        name_column("CODE", "code"),
        name_column("PATH", "path"),
        replace(name_column("DETAIL", "detail"), folds=True),
    ),
    "KIND CODE PATH DETAIL",
)
MEANING = {
    "manifest_differs": "the SHA-256 of the manifest differs from the sidecar or from --manifest-sha256",
    "missing": "a file of the manifest is missing",
    "extra": "a file is not in the manifest",
    "changed": "size or SHA-256 of a file differs from the manifest, or it is no plain file",
    "content_differs": "the content recomputed from the sources differs",
    "same_rows": "the sources give the same rows in other bytes: another version of pyarrow wrote the file",
    "source_changed": "hashed bytes of a state log segment have changed; Kafka only appends to it",
    "source_rewritten": "hashed bytes of another source file have changed: checkpoints, compaction",
    "source_missing": "a source file, or a row of bronze.ingest_extent, does not exist any more; upkeep joins rows",
    "source_grown": "a source file has grown",
    "source_unhashed": "a source file was not hashed (--no-topic-hashes)",
    "source_other_kind": "the source has another kind than that of the evidence (lake, log directories): not compared",
}
"""Findings and notes by code."""
FINDINGS = ("manifest_differs", "missing", "extra", "changed", "content_differs", "source_changed")
Row = dict[str, str | None]


def verify(folder: Path, *, noted_sha256: str | None = None) -> tuple[Manifest, list[Row]]:
    """Compares a folder with its manifest; rows of SCHEMA, none when all is well.

    Raises:
        ManifestError: there is no manifest, or none that can be believed.
    """
    read, digest = manifest.read_manifest(folder)
    return read, [*_manifest_findings(folder, digest, noted_sha256), *_file_findings(folder, read)]


def _row(code: str, path: str | None, detail: str) -> Row:
    return {"kind": FINDING if code in FINDINGS else NOTE, "code": code, "path": path, "detail": detail}


def _manifest_findings(folder: Path, digest: str, noted: str | None) -> Iterator[Row]:
    if noted is not None and noted.lower() != digest:
        yield _row("manifest_differs", manifest.NAME, f"SHA-256 is {digest}, not {noted} as noted")
    try:
        manifest.hashed(folder, manifest.SIDECAR)
    except (FileNotFoundError, NotADirectoryError):
        yield _row("missing", manifest.SIDECAR, "not there")
        return
    except ManifestError as error:
        yield _row("changed", manifest.SIDECAR, str(error))
        return
    with (folder / manifest.SIDECAR).open("rb") as file:
        recorded = file.read(4096)
    if recorded != f"{digest}  {manifest.NAME}\n".encode("ascii"):
        yield _row("manifest_differs", manifest.NAME, f"SHA-256 is {digest}, {manifest.SIDECAR} has another")


def _file_findings(folder: Path, read: Manifest) -> Iterator[Row]:
    for recorded in sorted(read.files, key=lambda file: file.path):
        try:
            actual = manifest.hashed(folder, recorded.path)
        except (FileNotFoundError, NotADirectoryError):
            yield _row("missing", recorded.path, "not there")
            continue
        except ManifestError as error:
            yield _row("changed", recorded.path, str(error))
            continue
        if actual.size_bytes != recorded.size_bytes:
            yield _row("changed", recorded.path, f"{actual.size_bytes} bytes, the manifest has {recorded.size_bytes}")
        elif actual.sha256 != recorded.sha256:
            yield _row("changed", recorded.path, f"SHA-256 is {actual.sha256}, the manifest has {recorded.sha256}")
    named = {file.path for file in read.files} | {manifest.NAME, manifest.SIDECAR}
    for path, is_file in manifest.files_below(folder):
        if path not in named:
            yield _row("extra", visible(path), "not in the manifest" + ("" if is_file else "; no plain file"))


def verify_sources(evidence: Tables, read: Manifest) -> Iterator[Row]:
    """Compares the sources with what the manifest says of them."""
    kind = read.sources.get("kind")
    match evidence.origin:
        case LogDirectories() as origin if kind == LOG_DIRECTORIES:
            yield from _file_sources(origin, read.sources)
        case PublishedLake() as origin if kind == LAKE:
            yield from _book_sources(evidence, origin, read)
        case _:
            yield _row("source_other_kind", None, f"source of the evidence: {visible(str(kind))}")


def _file_sources(origin: LogDirectories, sources: Mapping[str, Any]) -> Iterator[Row]:
    """Searches each recorded file in the directory of its own place, else in all directories of its node."""
    recorded = dict(enumerate(_dicts(sources.get("directories"))))
    for entry in _dicts(sources.get("files")):
        path, size, digest = entry.get("path"), entry.get("size_bytes"), entry.get("sha256")
        if not isinstance(path, str) or not isinstance(size, int) or ".." in path.split("/") or path.startswith("/"):
            raise ManifestError("the manifest has an invalid path of a source file: refused")
        home = recorded.get(entry.get("directory", -1), {}).get("uri")
        homes = [directory.uri for directory in origin.directories if directory.uri == home] or [
            directory.uri for directory in origin.directories if directory.node_id == entry.get("node_id")
        ]
        shown = visible(path) if len(recorded) == 1 else f"{visible(path)} (node {entry.get('node_id')})"
        if not isinstance(digest, str):
            yield _row("source_unhashed", shown, "the manifest has only size and time")
        else:
            yield from _compared(shown, [join(uri, path) for uri in homes], size, digest)


def _compared(shown: str, places: Sequence[str], size: int, digest: str) -> Iterator[Row]:
    files = [file for place in places if (file := look_at(place, size_bytes=size)) is not None]
    if any(file.sha256 == digest and file.size_bytes == size for file in files):
        if not any(_length(place) == size for place in places):
            yield _row("source_grown", shown, f"the first {size} bytes are as recorded")
    elif files:
        code = "source_changed" if shown.startswith(f"{STATE_TOPIC}-") and ".log" in shown else "source_rewritten"
        yield _row(code, shown, f"its first {size} bytes differ from the hashed ones")
    else:
        yield _row("source_missing", shown, "not there any more")


def _length(uri: str) -> int | None:
    digest = look_at(uri, hashed=False)
    return None if digest is None else digest.size_bytes


def _book_sources(evidence: Tables, origin: PublishedLake, read: Manifest) -> Iterator[Row]:
    """Rows of the lake's books: each that was recorded is still there, with the same SHA-256."""
    share_partitions = read_share_partitions(evidence)
    places: dict[str, frozenset[int] | None] = dict.fromkeys(share_partitions.column("topic_id").unique().to_pylist())
    now = {
        _book_key(row): row["sha256"]
        for row in extents_of(evidence, origin, Keys(topics=places), read.question.letter_topics())
    }
    for entry in _dicts(read.sources.get("extents")):
        shown = f"run {entry.get('run_id')}, {visible(str(entry.get('topic')))}-{entry.get('partition')}"
        key = _book_key(entry)
        if key not in now:
            yield _row("source_missing", shown, "not in bronze.ingest_extent any more")
        elif now[key] != entry.get("sha256"):
            yield _row(
                "source_changed",
                shown,
                f"bronze.ingest_extent has SHA-256 {now[key]}, the manifest {entry.get('sha256')}",
            )


def _book_key(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(row.get(name) for name in ("run_id", "source_id", "topic_id", "partition", "content", "from_offset"))


def _dicts(value: object) -> list[dict[str, Any]]:
    if not isinstance(value, list) or not all(isinstance(entry, dict) for entry in value):
        raise ManifestError("the manifest's sources have an unknown form, so sharelens did not write it")
    return value


def recompute(evidence: Tables, read: Manifest, folder: Path) -> Iterator[Row]:
    """Makes the content again from the sources, in a scratch folder, and compares it with the manifest."""
    with tempfile.TemporaryDirectory(prefix="sharelens-verify-") as scratch:
        folder_again = Path(scratch) / "evidence"
        folder_again.mkdir(mode=0o700)
        write_content(evidence, look_up(evidence, read.question), folder_again)
        written = {path: manifest.hashed(folder_again, path) for path, _ in manifest.files_below(folder_again)}
        recorded = {file.path: file for file in read.files}
        for path in sorted(recorded.keys() | written.keys()):
            if path not in written or path not in recorded:
                where = "from the sources" if path not in written else "in the manifest"
                yield _row("content_differs", path, f"no such file {where}")
            elif written[path] != recorded[path]:
                yield _differs(recorded[path], folder / path, folder_again / path)


def _differs(recorded: ContentFile, before: Path, after: Path) -> Row:
    """How a file that comes out differently differs: by its first line, or for Parquet whether by its rows at all."""
    if recorded.path.endswith(".parquet"):
        if _same_rows(before, after):
            return _row(
                "same_rows", recorded.path, "the bytes differ, the rows do not; see the versions in the manifest"
            )
        return _row("content_differs", recorded.path, "other rows")
    return _row("content_differs", recorded.path, _first_difference(before, after))


def _same_rows(before: Path, after: Path) -> bool:
    try:
        with pq.ParquetFile(before) as left_rows, pq.ParquetFile(after) as right:
            if left_rows.schema_arrow != right.schema_arrow or left_rows.metadata.num_rows != right.metadata.num_rows:
                return False
            pairs = zip(left_rows.iter_batches(1 << 14), right.iter_batches(1 << 14), strict=True)
            return all(left_rows.equals(right) for left_rows, right in pairs)
    except (OSError, pa.ArrowInvalid, ValueError):
        return False


def _first_difference(before: Path, after: Path) -> str:
    if not before.is_file() or before.is_symlink():
        return "the file is missing"
    with before.open("rb") as old, after.open("rb") as new:
        number = 0
        while True:
            number += 1
            left_line, right = old.readline(1 << 20), new.readline(1 << 20)
            if left_line != right:
                return f"line {number} differs"
            if not left_line:
                return "equal to the file, which differs from the manifest"


def answer(rows: Sequence[Row], read: Manifest, *, recomputed: bool) -> Answer:
    """The answer to `sharelens verify`."""
    finding_count = sum(row["kind"] == FINDING for row in rows)
    summary = f"{len(read.files)} files of case {visible(read.question.case_id)}: "
    summary += "as the manifest says" if not finding_count else f"{finding_count} findings"
    if recomputed:
        differing = sum(row["code"] == "content_differs" for row in rows)
        summary += (
            "; the recomputed content is equal"
            if not differing
            else f"; {differing} differ from the recomputed content"
        )
    return Answer(
        table=pa.Table.from_pylist(list(rows), schema=SCHEMA),
        columns=COLUMNS,
        summary=summary,
        none="nothing to report",
    )
