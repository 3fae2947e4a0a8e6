"""Makes a folder of evidence: whole or not at all, for its owner alone."""

import os
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from sharelens.evidence_folder import manifest
from sharelens.evidence_folder.content import Content, look_up, sync_folder, write_content
from sharelens.evidence_folder.errors import EvidenceFolderError
from sharelens.evidence_folder.manifest import ContentFile
from sharelens.evidence_folder.question import Question
from sharelens.evidence_folder.sources import sources_of
from sharelens.evidence_folder.writers import write_file
from sharelens.tables.port import Tables


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """The written folder: content, files, and the SHA-256 of the manifest."""

    content: Content
    files: tuple[ContentFile, ...]
    manifest_sha256: str


def make_evidence(
    evidence: Tables,
    question: Question,
    out: Path,
    *,
    command_line: list[str],
    hash_topics: bool = True,
    require_complete: bool = False,
) -> Written:
    """Writes the folder `out`: into a temporary folder beside it first, which then takes its name.

    Raises:
        EvidenceFolderError: `out` is there already, its parent is not, or the evidence is not complete though required.
        SharelensError: as `content.look_up` and `content.write_content`.
    """
    check_place(out)
    begun_ms = time.time_ns() // 1_000_000
    with tempfile.TemporaryDirectory(prefix=".sharelens-evidence-", dir=out.parent) as scratch:
        folder = Path(scratch) / "evidence"
        folder.mkdir(mode=0o700)
        resolved = look_up(evidence, question)
        sources = sources_of(evidence, resolved.places, question.letter_topics(), hash_topics=hash_topics)
        content = write_content(evidence, resolved, folder)
        if require_complete and content.incomplete:
            because = "; ".join(note.detail for note in content.incomplete)
            raise EvidenceFolderError(f"not complete, nothing was written (--require-complete): {because}")
        files = tuple(manifest.hashed(folder, path) for path, _ in manifest.files_below(folder))
        described = manifest.described(
            question,
            cluster_id=evidence.cluster_id,
            sources=sources,
            files=files,
            notes=[{"code": note.code, "detail": note.detail} for note in content.incomplete],
            command_line=command_line,
            begun_ms=begun_ms,
            now_ms=time.time_ns() // 1_000_000,
        )
        write_file(folder / manifest.NAME, described)
        digest = manifest.hashed(folder, manifest.NAME).sha256
        write_file(folder / manifest.SIDECAR, f"{digest}  {manifest.NAME}\n".encode("ascii"))
        sync_folder(folder)
        check_place(out)
        os.rename(folder, out)
        sync_folder(out.parent)
    return Written(content=content, files=files, manifest_sha256=digest)


def check_place(out: Path) -> None:
    """Refuses a place that is taken, or that has no parent."""
    if os.path.lexists(out):
        raise EvidenceFolderError(f"--out: {out} exists already; evidence is never overwritten; name another folder")
    if not out.parent.is_dir():
        raise EvidenceFolderError(f"--out: {out.parent} is not a directory; make it first")
