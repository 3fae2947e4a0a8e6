"""ACL entries survive a restart; a change that can't be stored has not happened."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharelens.broker.errors import DirectoryError, StorageError
from sharelens.broker.security.authorization.acl_store import AclStore
from sharelens.broker.security.authorization.entries import (
    AclEntry,
    AclFilter,
    Operation,
    PatternType,
    Permission,
    ResourceType,
)
from sharelens.broker.security.authorization.stored import entries_of_json, entries_to_json
from sharelens.broker.storage.catalog import CATALOG_FILE, Catalog

ALL_ENTRIES = AclFilter(ResourceType.ANY, None, PatternType.ANY, None, None, Operation.ANY, Permission.ANY)
READ = AclEntry(ResourceType.TOPIC, "orders", PatternType.LITERAL, "User:x", "*", Operation.READ, Permission.ALLOW)
DENIED = READ._replace(name="ord", pattern_type=PatternType.PREFIXED, permission=Permission.DENY)
stored_entries = st.builds(
    AclEntry,
    st.sampled_from([each for each in ResourceType if each.name != "ANY"]),
    st.text(min_size=1),
    st.sampled_from([PatternType.LITERAL, PatternType.PREFIXED]),
    st.text(),
    st.text(),
    st.sampled_from([each for each in Operation if each.name != "ANY"]),
    st.sampled_from([Permission.ALLOW, Permission.DENY]),
)


def opened(folder):
    return AclStore(Catalog(folder), super_users=(), allow_everyone=False)


def test_entries_are_there_after_a_restart(tmp_path):
    store = opened(tmp_path)
    store.add([READ, DENIED, READ])
    assert opened(tmp_path).matching(ALL_ENTRIES) == [READ, DENIED]
    store.remove([DENIED])
    assert opened(tmp_path).matching(ALL_ENTRIES) == [READ]
    assert opened(tmp_path).authorizer.is_allowed("User:x", "127.0.0.1", Operation.READ, ResourceType.TOPIC, "orders")


def test_a_change_that_changes_nothing_writes_nothing(tmp_path):
    store = opened(tmp_path)
    store.add([READ])
    (tmp_path / CATALOG_FILE).unlink()
    store.add([READ])
    store.remove([DENIED])
    assert not (tmp_path / CATALOG_FILE).exists()


def test_a_change_that_the_disk_refuses_has_not_happened(tmp_path):
    class FullDisk:
        acls = (READ,)

        def set_acls(self, acls):
            raise StorageError("no room")

    store = AclStore(FullDisk(), super_users=(), allow_everyone=False)
    with pytest.raises(StorageError):
        store.add([DENIED])
    assert store.matching(ALL_ENTRIES) == [READ]


@pytest.mark.slow
@given(st.lists(stored_entries, max_size=5))
def test_stored_entries_are_read_as_they_were(entries):
    assert list(entries_of_json(json.loads(json.dumps(entries_to_json(entries))))) == entries


def test_a_catalogue_without_entries_has_none_and_a_broken_entry_is_refused(tmp_path):
    opened(tmp_path).add([READ])
    path = tmp_path / CATALOG_FILE
    document = json.loads(path.read_text())
    document["acls"][0]["operation"] = "FLY"
    path.write_text(json.dumps(document))
    with pytest.raises(DirectoryError, match="FLY"):
        opened(tmp_path)
    del document["acls"]
    path.write_text(json.dumps(document))
    assert opened(tmp_path).matching(ALL_ENTRIES) == []
