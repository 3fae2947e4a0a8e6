"""Addresses in object stores: `s3://BUCKET/FOLDER`, and what other schemes are refused with."""

import re
from dataclasses import dataclass, replace
from typing import Final

from sharelens.object_stores.options import FAMILIES
from state_model.errors import SharelensError

SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/")
"""The beginning of a URI, also of one that lost a slash on its way (`s3:/bucket`)."""
URI: Final = re.compile(r"(?P<scheme>[A-Za-z0-9]+)://(?P<bucket>[^/@?#]+)(@[^/?#]+)?(?P<prefix>(/[^?#]*)?)")
HDFS: Final = "reading files from HDFS needs a JVM in every worker; copy the files to a path or a bucket"


class AddressError(SharelensError):
    """Raised when an address names no folder of an object store."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectAddress:
    """A folder or object. `root`: its canonical URI; `key`: its path in the bucket, without slashes around it."""

    root: str
    scheme: str
    bucket: str
    key: str

    def below(self, name: str) -> "ObjectAddress":
        """What has this name in the folder."""
        return replace(self, root=f"{self.root}/{name}", key=f"{self.key}/{name}" if self.key else name)


def scheme_of(address: str) -> str | None:
    """The scheme in lower case; None for a path."""
    scheme = SCHEME.match(address)
    return None if scheme is None else scheme[1].lower()


def parse(uri: str) -> ObjectAddress:
    """The folder or object that a URI names.

    Raises:
        AddressError: a scheme without a store, no bucket, or user, query or fragment in it.
    """
    scheme = scheme_of(uri) or ""
    if scheme not in FAMILIES:
        names = ", ".join(f"{known_scheme}://" for known_scheme in FAMILIES)
        reason = HDFS if scheme == "hdfs" else f"known are {names}"
        raise AddressError(f"{uri}: no storage for {scheme}:// URIs: {reason}")
    parts = URI.fullmatch(uri)
    if parts is None:
        raise AddressError(f"no bucket in {uri.partition('?')[0]}; give {scheme}://BUCKET/FOLDER")
    key = "/".join(name for name in parts["prefix"].split("/") if name)
    if {".", ".."} & set(key.split("/")):
        raise AddressError(f"{uri}: `.` and `..` are no folders of a store; give the folder itself")
    place = uri.partition("://")[2].partition("/")[0]
    root = f"{scheme}://{place}" + (f"/{key}" if key else "")
    return ObjectAddress(root=root, scheme=scheme, bucket=parts["bucket"], key=key)
