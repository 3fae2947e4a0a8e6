"""From a path or URI to its Storage."""

import os
import re
from urllib.parse import unquote, urlsplit

from lake.errors import LakeError
from lake.local_storage import LocalStorage
from lake.storage import Storage
from lake.store_options import FAMILIES

SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/")
"""The beginning of a URI, also of one that lost a slash on its way (`s3:/bucket`)."""
REFUSED = {
    "hdfs": "reading data files from HDFS needs a JVM in every worker; copy the files to a path or a bucket",
    "http": "a lake needs a storage that can be written to",
    "https": "a lake needs a storage that can be written to",
}


def is_uri(address: str | os.PathLike[str]) -> bool:
    """Whether an address has a scheme other than file."""
    scheme = SCHEME.match(os.fspath(address))
    return scheme is not None and scheme[1].lower() != "file"


def resolve(uri: str | os.PathLike[str]) -> Storage:
    """The storage that a path or URI names.

    Raises:
        LakeError: a scheme without a storage, or a URI without a bucket.
    """
    text = os.fspath(uri)
    scheme = SCHEME.match(text)
    if scheme is None:
        return LocalStorage(root=os.path.abspath(text))
    if scheme[1].lower() == "file":
        return LocalStorage(root=os.path.abspath(unquote(urlsplit(text).path)))
    name = scheme[1].lower()
    if name not in FAMILIES:
        names = ", ".join(f"{known}://" for known in FAMILIES)
        reason = REFUSED.get(name, f"known are {names}")
        raise LakeError(f"{text}: no storage for {name}:// URIs: {reason}")
    from lake.object_storage import object_storage

    return object_storage(text)
