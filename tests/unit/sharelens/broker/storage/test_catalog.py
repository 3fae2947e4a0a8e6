"""The catalogue: what was set is there after a restart, names follow Kafka's rules, nothing changes by halves."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharelens.broker.errors import (
    DirectoryError,
    InvalidPartitionsError,
    InvalidTopicError,
    StorageError,
    TopicExistsError,
    UnknownTopicError,
)
from sharelens.broker.ports import Topic
from sharelens.broker.storage.catalog import CATALOG_FILE, INTERNAL_TOPICS, PRODUCER_ID_BLOCK, Catalog, new_id
from state_model.uuids import is_uuid_text


class Listener:
    def __init__(self) -> None:
        self.heard: list[tuple[str, str, int]] = []
        self.refuses = False

    def topic_changed(self, topic: Topic) -> None:
        if self.refuses:
            raise StorageError("no room")
        self.heard.append(("changed", topic.name, topic.partitions))

    def topic_deleted(self, topic: Topic) -> None:
        self.heard.append(("deleted", topic.name, topic.partitions))


def test_everything_is_there_after_a_restart(tmp_path):
    catalog = Catalog(tmp_path)
    topic = catalog.create("orders", 3, {"retention.ms": "-1"})
    catalog.add_partitions("orders", 4)
    catalog.set_broker_configs({"group.share.delivery.count.limit": "7"})
    catalog.set_group_configs("g", {"share.auto.offset.reset": "earliest"})
    catalog.set_group_configs("gone", {"share.auto.offset.reset": "earliest"})
    catalog.set_group_configs("gone", {})
    catalog.set_features({"share.version": 2})
    internal = catalog.ensure_internal("__share_group_state")
    catalog.create("deleted", 1)
    catalog.delete("deleted")
    again = Catalog(tmp_path)
    assert again.cluster_id == catalog.cluster_id
    assert again.by_name("orders") == Topic(name="orders", topic_id=topic.topic_id, partitions=4)
    assert again.by_id(internal.topic_id) == internal == again.ensure_internal("__share_group_state")
    assert internal.is_internal
    assert again.topic_configs("orders") == {"retention.ms": "-1"}
    assert again.topic_configs("__share_group_state") == INTERNAL_TOPICS["__share_group_state"].configs
    assert again.broker_configs == {"group.share.delivery.count.limit": "7"}
    assert again.group_configs == {"g": {"share.auto.offset.reset": "earliest"}}
    assert again.features == {"share.version": 2}
    assert list(again.topics) == ["orders", "__share_group_state"]


def test_the_epoch_of_features_rises_with_each_change_and_files_without_one_are_read(tmp_path):
    catalog = Catalog(tmp_path)
    epochs = []
    for level in (1, 1, 0, 2):
        catalog.set_features({"share.version": level})
        epochs.append(Catalog(tmp_path).features_epoch)
    assert epochs == [0, 0, 1, 2]
    (file,) = [path for path in tmp_path.iterdir() if '"features_epoch": 2' in path.read_text()]
    file.write_text(file.read_text().replace(' "features_epoch": 2,\n', ""))
    assert Catalog(tmp_path).features_epoch == 0


def test_a_cluster_id_that_is_given_counts_only_for_a_new_directory(tmp_path):
    assert Catalog(tmp_path, cluster_id="EwX0i205YghpbkM5d3uN7g").cluster_id == "EwX0i205YghpbkM5d3uN7g"
    assert Catalog(tmp_path, cluster_id="another").cluster_id == "EwX0i205YghpbkM5d3uN7g"


@pytest.mark.parametrize("name", ["", ".", "..", "a b", "ä", "a/b", "x" * 250, "a\n", "a\x00"])
def test_illegal_names_are_refused(tmp_path, name):
    with pytest.raises(InvalidTopicError, match="topic name"):
        Catalog(tmp_path).create(name, 1)


def test_names_that_differ_in_dots_and_underscores_alone_collide(tmp_path):
    catalog = Catalog(tmp_path)
    catalog.create("a.b_c", 1)
    with pytest.raises(InvalidTopicError, match="collides with a.b_c"):
        catalog.create("a_b.c", 1)
    with pytest.raises(TopicExistsError):
        catalog.create("a.b_c", 1)
    catalog.create("x" * 249, 1)


def test_partitions_only_grow(tmp_path):
    catalog = Catalog(tmp_path)
    catalog.create("orders", 2)
    for number in (0, 1, 2, 1 << 31):
        with pytest.raises(InvalidPartitionsError):
            catalog.add_partitions("orders", number)
    for number in (0, -1, 1 << 31):
        with pytest.raises(InvalidPartitionsError):
            catalog.create("other", number)


def test_unknown_topics_are_named(tmp_path):
    catalog = Catalog(tmp_path)
    for act in (
        lambda: catalog.delete("x"),
        lambda: catalog.add_partitions("x", 2),
        lambda: catalog.set_topic_configs("x", {}),
        lambda: catalog.ensure_internal("x"),
    ):
        with pytest.raises(UnknownTopicError, match="x"):
            act()


def test_listeners_hear_of_changes_until_they_end_it(tmp_path):
    catalog, listener = Catalog(tmp_path), Listener()
    end = catalog.subscribe(listener)
    catalog.create("orders", 1)
    catalog.add_partitions("orders", 2)
    catalog.set_topic_configs("orders", {"retention.ms": "1"})
    catalog.delete("orders")
    end()
    catalog.create("later", 1)
    assert listener.heard == [
        ("changed", "orders", 1), ("changed", "orders", 2), ("changed", "orders", 2), ("deleted", "orders", 2),
    ]  # fmt: skip


def test_a_change_that_a_listener_refuses_is_undone(tmp_path):
    catalog, listener = Catalog(tmp_path), Listener()
    catalog.create("orders", 1)
    catalog.subscribe(listener)
    listener.refuses = True
    for act in (lambda: catalog.create("more", 1), lambda: catalog.add_partitions("orders", 5)):
        with pytest.raises(StorageError, match="no room"):
            act()
    for stored in (catalog, Catalog(tmp_path)):
        assert {name: topic.partitions for name, topic in stored.topics.items()} == {"orders": 1}


def test_producer_ids_are_given_out_once_over_restarts(tmp_path):
    given_out = []
    for _ in range(3):
        catalog = Catalog(tmp_path)
        given_out += [catalog.allocate_producer_id() for _ in range(PRODUCER_ID_BLOCK + 5)]
    assert len(set(given_out)) == len(given_out)
    assert given_out[:3] == [0, 1, 2]


def test_a_disk_that_is_full_leaves_the_file_as_it_was(tmp_path, monkeypatch):
    catalog = Catalog(tmp_path)
    catalog.create("orders", 1)
    before = (tmp_path / CATALOG_FILE).read_bytes()

    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.pwrite", full)
    with pytest.raises(StorageError, match="No space left on device"):
        catalog.create("more", 1)
    assert (tmp_path / CATALOG_FILE).read_bytes() == before
    assert list(catalog.topics) == ["orders"]


@given(st.data())
def test_any_damage_to_the_file_is_one_clear_error(tmp_path_factory, data):
    directory: Path = tmp_path_factory.mktemp("catalog")
    catalog = Catalog(directory)
    catalog.create("orders", 1, {"retention.ms": "5"})
    catalog.set_group_configs("g", {"a": "b"})
    path = directory / CATALOG_FILE
    document = json.loads(path.read_text())
    where = data.draw(st.sampled_from([document, document["topics"][0], document["group_configs"]]))
    key = data.draw(st.sampled_from(sorted(where)))
    if data.draw(st.booleans()):
        del where[key]
    else:
        where[key] = data.draw(st.none() | st.integers(-5, 5) | st.text(max_size=3) | st.just([1]) | st.just({"x": 1}))
    path.write_text(json.dumps(document))
    try:
        Catalog(directory)
    except DirectoryError as error:
        assert "\n" not in str(error)  # noqa: PT017 - some changes are harmless


def test_bytes_that_are_no_json_are_refused(tmp_path):
    (tmp_path / CATALOG_FILE).write_bytes(b"\xff\x00")
    with pytest.raises(DirectoryError, match="restore it"):
        Catalog(tmp_path)


def test_new_ids_never_look_like_options():
    new_ids = {new_id() for _ in range(2000)}
    assert len(new_ids) == 2000
    assert all(is_uuid_text(text) and not text.startswith("-") for text in new_ids)
