"""From a path or URI to its Storage."""

import os
import re
from urllib.parse import unquote, urlsplit

from sharelens.lake.local_storage import LocalStorage
from sharelens.lake.storage import Storage
from sharelens.object_stores.addresses import scheme_of
from state_model.errors import UsageError

ENCODED = re.compile("%[0-9A-Fa-f]{2}")


def resolve(uri: str | os.PathLike[str]) -> Storage:
    """The storage that a path or URI names.

    Raises:
        LakeError: a scheme without a storage, or a URI without a bucket.
        UsageError: a path of this machine that delta-rs takes for another one.
    """
    text = os.fspath(uri)
    scheme = scheme_of(text)
    if scheme is None:
        return _local(text)
    if scheme == "file":
        return _local(unquote(urlsplit(text).path))
    from sharelens.lake.object_storage import object_storage

    return object_storage(text)


def _local(path: str) -> LocalStorage:
    """The folder; delta-rs makes a URL of a path and decodes it once more, so `%20` in it becomes a blank."""
    root = os.path.abspath(path)
    for place in (root, os.path.realpath(root)):
        if encoded := ENCODED.search(place):
            raise UsageError(
                f"{place}: a lake's path can't have {encoded[0]!r}, % followed by two hexadecimal digits; name another "
                "folder"
            )
    return LocalStorage(root=root)
