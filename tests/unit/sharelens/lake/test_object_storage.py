"""Addresses of folders in stores; requests are in tests/components."""

import pickle

import pytest

from sharelens.lake.errors import LakeError
from sharelens.lake.locations import resolve
from sharelens.lake.object_storage import ObjectStorage


@pytest.mark.parametrize(
    ("uri", "root", "bucket", "prefix"),
    [
        ("s3://b/lake", "s3://b/lake", "b", "lake"),
        ("S3://b", "s3://b", "b", ""),
        ("s3://b//a///c/", "s3://b/a/c", "b", "a/c"),
        ("az://box/lake", "az://box/lake", "box", "lake"),
        ("abfss://box@account.dfs.core.windows.net/a", "abfss://box@account.dfs.core.windows.net/a", "box", "a"),
    ],
)
def test_a_uri_names_a_folder_of_a_bucket(uri: str, root: str, bucket: str, prefix: str) -> None:
    storage = resolve(uri)
    assert isinstance(storage, ObjectStorage)
    assert (storage.root, storage.bucket, storage.prefix) == (root, bucket, prefix)
    table = storage.folder("gold", "lag")
    assert isinstance(table, ObjectStorage)
    assert (table.root, table.prefix) == (f"{root}/gold/lag", "/".join(filter(None, [prefix, "gold", "lag"])))


@pytest.mark.parametrize("uri", ["s3:/b/lake", "s3://", "s3:///lake", "s3://b/lake?versionId=1", "s3://b/a#b"])
def test_a_uri_without_a_bucket_is_refused(uri: str) -> None:
    with pytest.raises(LakeError, match=r"^no bucket in .*; give s3://BUCKET/FOLDER$"):
        resolve(uri)


@pytest.mark.parametrize(
    ("uri", "words"),
    [
        ("hdfs://name/lake", "reading files from HDFS needs a JVM in every worker"),
        ("https://host/lake", "no storage for https:// URIs: known are s3://, az://, abfss://, gs://"),
        ("s3://b/../lake", "`.` and `..` are no folders of a store"),
    ],
)
def test_a_storage_that_can_hold_no_lake_is_refused_with_the_reason(uri: str, words: str) -> None:
    with pytest.raises(LakeError, match=words):
        resolve(uri)


def test_a_pickled_storage_has_no_options(monkeypatch: pytest.MonkeyPatch) -> None:
    """It goes to tasks, whose plans Spark shows; they find options in their environment."""
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "not-to-be-shown")
    storage = resolve("s3://b/lake")
    assert storage.delta_options() == {"aws_secret_access_key": "not-to-be-shown"} | {
        name: value for name, value in (storage.delta_options() or {}).items() if "secret" not in name
    }
    assert b"not-to-be-shown" not in pickle.dumps(storage)
    assert pickle.loads(pickle.dumps(storage)) == storage
