"""From a path or URI to its Storage."""

import os
from urllib.parse import unquote, urlsplit

from sharelens.lake.local_storage import LocalStorage
from sharelens.lake.storage import Storage
from sharelens.object_stores.addresses import scheme_of


def resolve(uri: str | os.PathLike[str]) -> Storage:
    """The storage that a path or URI names.

    Raises:
        LakeError: a scheme without a storage, or a URI without a bucket.
    """
    text = os.fspath(uri)
    scheme = scheme_of(text)
    if scheme is None:
        return LocalStorage(root=os.path.abspath(text))
    if scheme == "file":
        return LocalStorage(root=os.path.abspath(unquote(urlsplit(text).path)))
    from sharelens.lake.object_storage import object_storage

    return object_storage(text)
