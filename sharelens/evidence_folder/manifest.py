"""The manifest: sources, author, time and versions of the content, and the SHA-256 of each content file."""

import getpass
import hashlib
import json
import os
import platform
import re
import socket
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import sharelens
from sharelens.evidence_folder.errors import ManifestError
from sharelens.evidence_folder.question import Question, from_json
from sharelens.parameters.times import time_text
from state_model.rule_sets import RULE_SETS

NAME, SIDECAR = "manifest.json", "manifest.sha256"
FORMAT, FORMAT_VERSION = "sharelens-evidence", 1
LARGEST = 256 << 20
BLOCK_BYTES = 1 << 22
MOST_DEPTH = 8
LIBRARIES = ("pyarrow", "numpy", "numba", "deltalake", "duckdb", "obstore", "cramjam", "crc32c")
PART = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
"""A name in a content path: what this version writes, so nothing that leads elsewhere."""
SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ContentFile:
    """A content file as the manifest has it; `path` is relative, its parts plain names."""

    path: str
    size_bytes: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """A manifest: the whole document, and its parsed parts."""

    document: Mapping[str, Any]
    question: Question
    files: tuple[ContentFile, ...]

    @property
    def sources(self) -> Mapping[str, Any]:
        """Where the content comes from."""
        sources = self.document.get("sources")
        return sources if isinstance(sources, dict) else {}


def described(
    question: Question,
    *,
    cluster_id: str | None,
    sources: Mapping[str, Any],
    files: tuple[ContentFile, ...],
    notes: list[dict[str, Any]],
    command_line: list[str],
    begun_ms: int,
    now_ms: int,
) -> bytes:
    """The manifest's bytes (JSON, indented, ASCII)."""
    document = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "case_id": question.case_id,
        "cluster_id": cluster_id,
        "question": question.as_json(),
        "window": {"from": time_text(question.from_ms), "to": time_text(question.to_ms)},
        "complete": not notes,
        "incomplete_because": notes,
        "begun_at": time_text(begun_ms),
        "begun_at_ms": begun_ms,
        "written_at": time_text(now_ms),
        "written_at_ms": now_ms,
        "command_line": command_line,
        "user": _user(),
        "host": socket.gethostname(),
        "versions": versions(),
        "rule_set": {"replay": "the same for all versions", "writers_known": sorted(RULE_SETS)},
        "sources": dict(sources),
        "content": [{"path": file.path, "size_bytes": file.size_bytes, "sha256": file.sha256} for file in files],
    }
    return (json.dumps(document, indent=1, allow_nan=False) + "\n").encode("ascii")


def versions() -> dict[str, str | None]:
    """Versions of sharelens, Python, the libraries and the system."""
    versions: dict[str, str | None] = {"sharelens": sharelens.__version__, "python": platform.python_version()}
    for name in LIBRARIES:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            versions[name] = None
    return versions | {"platform": platform.platform()}


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"


def files_below(folder: Path) -> Iterator[tuple[str, bool]]:
    """Every path below a folder, sorted, relative, and whether it is a plain file; links are not followed."""

    def walk(place: Path, prefix: str, depth: int) -> Iterator[tuple[str, bool]]:
        with os.scandir(place) as listing:
            entries = sorted(listing, key=lambda entry: entry.name)
        for entry in entries:
            path = f"{prefix}{entry.name}"
            if entry.is_dir(follow_symlinks=False) and depth < MOST_DEPTH:
                yield from walk(place / entry.name, f"{path}/", depth + 1)
            else:
                yield path, entry.is_file(follow_symlinks=False)

    yield from walk(folder, "", 0)


def hashed(folder: Path, path: str) -> ContentFile:
    """Size and SHA-256 of a plain file below the folder; no link on the way is followed.

    Raises:
        FileNotFoundError, NotADirectoryError: it is not there.
        ManifestError: it is no plain file, or a link leads there.
    """
    at = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        *parents, name = path.split("/")
        for parent in parents:
            below = _open_in(at, parent, path, os.O_RDONLY | os.O_DIRECTORY)
            os.close(at)
            at = below
        descriptor = _open_in(at, name, path, os.O_RDONLY | os.O_NONBLOCK)
    finally:
        os.close(at)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise ManifestError(f"{path} is no plain file")
        digest = hashlib.sha256()
        size = 0
        while block := file.read(BLOCK_BYTES):
            digest.update(block)
            size += len(block)
    return ContentFile(path=path, size_bytes=size, sha256=digest.hexdigest())


def _open_in(folder: int, name: str, path: str, flags: int) -> int:
    try:
        return os.open(name, flags | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    except (FileNotFoundError, PermissionError):
        raise
    except OSError as error:  # ELOOP, ENOTDIR: a link or a file where a folder should be
        raise ManifestError(f"{path}: a link or no plain file on the way ({error.strerror})") from error


def read_manifest(folder: Path) -> tuple[Manifest, str]:
    """The manifest of a folder, and its SHA-256.

    Raises:
        ManifestError: none is there, it is no manifest of this format, or it names files that no evidence has.
    """
    try:
        manifest = hashed(folder, NAME)
    except (FileNotFoundError, NotADirectoryError):
        raise ManifestError(f"{folder} has no {NAME}; give the folder that `sharelens evidence --out` wrote") from None
    if manifest.size_bytes > LARGEST:
        raise ManifestError(f"{folder / NAME} is larger than {LARGEST >> 20} MiB, so sharelens did not write it")
    try:
        content = (folder / NAME).read_bytes()
        document = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise ManifestError(f"{folder / NAME} is no JSON: {error}") from error
    if hashlib.sha256(content).hexdigest() != manifest.sha256:
        raise ManifestError(f"{folder / NAME} changed while it was read; try again")
    return parsed(document, str(folder / NAME)), manifest.sha256


def parsed(document: object, place: str) -> Manifest:
    """A manifest from its JSON; `place` is for messages.

    Raises:
        ManifestError: it is none, or names files that no evidence has.
    """
    match document:
        case {
            "format": str(kind),
            "format_version": int(version),
            "question": question,
            "content": list(content),
        } if kind == FORMAT:
            if version != FORMAT_VERSION:
                raise ManifestError(f"{place} has format version {version}, this sharelens reads {FORMAT_VERSION}")
            files = tuple(_content_file(entry, place) for entry in content)
            if len({entry.path for entry in files}) != len(files):
                raise ManifestError(f"{place} names a file twice, so sharelens did not write it")
            assert isinstance(document, dict)
            return Manifest(document=document, question=from_json(question), files=files)
        case _:
            raise ManifestError(f"{place} is no manifest of evidence")


def _content_file(entry: object, place: str) -> ContentFile:
    match entry:
        case {"path": str(path), "size_bytes": int(size), "sha256": str(digest)}:
            parts = path.split("/")
            if not all(PART.fullmatch(part) for part in parts) or path in (NAME, SIDECAR) or len(parts) > MOST_DEPTH:
                raise ManifestError(
                    f"{place} names {path[:100]!r}, which is no file of evidence: refused; sharelens did not write it"
                )
            if size < 0 or not SHA256.fullmatch(digest):
                raise ManifestError(f"{place}: size or SHA-256 of {path} is invalid, so sharelens did not write it")
            return ContentFile(path=path, size_bytes=size, sha256=digest)
        case _:
            raise ManifestError(f"{place}: an entry of `content` lacks path, size_bytes or sha256")
