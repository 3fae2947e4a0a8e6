"""Folders packed into one zstd-compressed tar: the demo's logs and the data sets of the tests."""

import io
import tarfile
from pathlib import Path, PurePosixPath

import cramjam

from state_model.errors import SharelensError

SUFFIX = ".tar.zst"
MAX_UNPACKED_BYTES = 256 << 20
"""No data set comes near; what claims more is not one of ours."""


class PackedFolderError(SharelensError):
    """Raised when a packed folder holds what no packed folder of ours holds."""


def pack(folder: Path, names: list[str]) -> bytes:
    """The files at the relative `names` under `folder`, reproducibly: sorted, without owner, mode or time."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name in sorted(names):
            content = (folder / name).read_bytes()
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return bytes(cramjam.zstd.compress(buffer.getvalue(), level=19))


def unpack(packed: Path, into: Path) -> None:
    """Write every file of `packed` under `into`, which is made; names that point elsewhere are refused."""
    content = bytes(cramjam.zstd.decompress(packed.read_bytes()))
    if len(content) > MAX_UNPACKED_BYTES:
        raise PackedFolderError(f"{packed}: unpacks to {len(content)} bytes, more than {MAX_UNPACKED_BYTES}")
    with tarfile.open(fileobj=io.BytesIO(content), mode="r:") as archive:
        for member in archive:
            _write_member(packed, archive, member, into)


def _write_member(packed: Path, archive: tarfile.TarFile, member: tarfile.TarInfo, into: Path) -> None:
    name = PurePosixPath(member.name)
    source = archive.extractfile(member) if member.isfile() else None
    if source is None or name.is_absolute() or ".." in name.parts:
        raise PackedFolderError(f"{packed}: member {member.name!r} is not a plain file below the folder")
    target = into.joinpath(*name.parts)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(source.read())
