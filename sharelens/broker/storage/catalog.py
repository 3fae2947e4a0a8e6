"""What survives a restart: topics, configurations, features, ACLs, producer ids; one JSON file, replaced atomically.

Implements sharelens.broker.ports.Topics. What Kafka keeps in its metadata log is kept here; a change is durable, or
refused and undone, when the call returns. Topic names: org.apache.kafka.common.internals.Topic.
"""

import json
import re
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, Protocol

from sharelens.broker.errors import (
    DirectoryError,
    InvalidPartitionsError,
    InvalidTopicError,
    TopicExistsError,
    UnknownTopicError,
)
from sharelens.broker.ports import Topic
from sharelens.broker.security.authorization.entries import AclEntry
from sharelens.broker.security.authorization.stored import entries_of_json, entries_to_json
from sharelens.broker.storage import scram_credentials
from sharelens.broker.storage.files import replace_file, storage_errors
from sharelens.broker.storage.json_values import mapping, mappings, number, text, texts
from sharelens.broker.storage.scram_credentials import ScramUsers
from state_model.uuids import is_uuid_text, uuid_text

CATALOG_FILE: Final = "sharelens.catalog.json"
FORMAT_VERSION: Final = 1
MAX_NAME_CHARACTERS: Final = 249
MAX_PARTITIONS: Final = 10_000
PRODUCER_ID_BLOCK: Final = 1000

_LEGAL_NAME: Final = re.compile(r"[a-zA-Z0-9._-]+")
_INT64_MAX: Final = (1 << 63) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class InternalTopic:
    """Partitions and configuration of an internal topic at its creation."""

    partitions: int = 50
    configs: Mapping[str, str] = field(default_factory=dict)


INTERNAL_TOPICS: Final[Mapping[str, InternalTopic]] = {
    "__consumer_offsets": InternalTopic(
        configs={"cleanup.policy": "compact", "compression.type": "producer", "segment.bytes": "104857600"}
    ),
    "__share_group_state": InternalTopic(
        configs={"cleanup.policy": "delete", "retention.ms": "-1", "segment.bytes": "104857600"}
    ),
    "__transaction_state": InternalTopic(
        configs={"cleanup.policy": "compact", "compression.type": "uncompressed", "segment.bytes": "104857600"}
    ),
}


class TopicListener(Protocol):
    """Is called when topics are created, changed and deleted. A StorageError refuses the change, except a deletion."""

    def topic_changed(self, topic: Topic) -> None:
        """A topic was created, got partitions or another configuration."""

    def topic_deleted(self, topic: Topic) -> None:
        """A topic was deleted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _State:
    """The whole content of the file. Mappings are never changed in place."""

    cluster_id: str
    next_producer_id: int = 0
    features: Mapping[str, int] = field(default_factory=dict)
    features_epoch: int = 0
    broker_configs: Mapping[str, str] = field(default_factory=dict)
    group_configs: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    scram_users: ScramUsers = field(default_factory=dict)
    topics: Mapping[str, Topic] = field(default_factory=dict)
    topic_configs: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    acls: tuple[AclEntry, ...] = ()


class Catalog:
    """See the module. `topics` and the configurations have the newest change."""

    def __init__(
        self,
        directory: Path,
        *,
        cluster_id: str | None = None,
        internal_topics: Mapping[str, InternalTopic] = INTERNAL_TOPICS,
        make_id: Callable[[], str] | None = None,
    ) -> None:
        """Read the file of a log directory, or create it with a random cluster id or `cluster_id`.

        make_id: makes the ids of topics and cluster, instead of random ones.
        Raises DirectoryError for a file of another writer, StorageError.
        """
        self._path = directory / CATALOG_FILE
        self._internal_topics = internal_topics
        self._make_id = make_id or new_id
        self._listeners: tuple[TopicListener, ...] = ()
        self._producer_id = self._producer_ids_end = 0
        self._state = _State(cluster_id=cluster_id or self._make_id())
        self._by_id: dict[str, Topic] = {}
        if self._path.exists():
            self._set(_read(self._path))
        else:
            self._save(self._state)

    @property
    def cluster_id(self) -> str:
        """The cluster's id, 22 characters."""
        return self._state.cluster_id

    @property
    def features(self) -> Mapping[str, int]:
        """The finalized features."""
        return self._state.features

    @property
    def features_epoch(self) -> int:
        """The number of changes of the features since they were first set."""
        return self._state.features_epoch

    @property
    def broker_configs(self) -> Mapping[str, str]:
        """The broker's dynamic configuration."""
        return self._state.broker_configs

    @property
    def scram_users(self) -> ScramUsers:
        """Credentials of SCRAM by user and mechanism."""
        return self._state.scram_users

    @property
    def topics(self) -> Mapping[str, Topic]:
        """Topics by name, in the order of their creation."""
        return self._state.topics

    @property
    def group_configs(self) -> Mapping[str, Mapping[str, str]]:
        """Configurations by group id."""
        return self._state.group_configs

    @property
    def acls(self) -> tuple[AclEntry, ...]:
        """The ACL entries, in the order of their creation."""
        return self._state.acls

    def topic_configs(self, name: str) -> Mapping[str, str]:
        """The configuration of a topic; empty when there is none."""
        return self._state.topic_configs.get(name, {})

    def by_name(self, name: str) -> Topic | None:
        """The topic of a name; None when there is none."""
        return self._state.topics.get(name)

    def by_id(self, topic_id: str) -> Topic | None:
        """The topic of an id; None when there is none."""
        return self._by_id.get(topic_id)

    def ensure_internal(self, name: str) -> Topic:
        """An internal topic, created when it is missing. Raises StorageError, UnknownTopicError."""
        topic = self._state.topics.get(name)
        if topic is not None:
            return topic
        if name not in self._internal_topics:
            raise UnknownTopicError(f"{name} is no internal topic")
        settings = self._internal_topics[name]
        return self._create(name, settings.partitions, settings.configs, is_internal=True)

    def check_name(self, name: str) -> None:
        """Whether a new topic may have a name. Raises InvalidTopicError, TopicExistsError."""
        if not 0 < len(name) <= MAX_NAME_CHARACTERS or name in (".", "..") or _LEGAL_NAME.fullmatch(name) is None:
            raise InvalidTopicError(
                f"topic name {name[:80]!r}: 1 to {MAX_NAME_CHARACTERS} of letters, digits, '.', '_' and '-'"
            )
        if name in self._state.topics:
            raise TopicExistsError(f"topic {name} exists already")
        alike = name.replace(".", "_")
        for other in self._state.topics:
            if other.replace(".", "_") == alike:
                raise InvalidTopicError(f"topic {name} collides with {other}: '.' and '_' are the same in metric names")

    def create(self, name: str, partitions: int, configs: Mapping[str, str] | None = None) -> Topic:
        """Create a topic with a new id. An internal topic's name gets its own configuration beneath `configs`.

        Raises InvalidTopicError, TopicExistsError, InvalidPartitionsError, StorageError.
        """
        settings = self._internal_topics.get(name)
        beneath = settings.configs if settings is not None else {}
        return self._create(name, partitions, {**beneath, **(configs or {})}, is_internal=settings is not None)

    def _create(self, name: str, partitions: int, configs: Mapping[str, str], *, is_internal: bool) -> Topic:
        self.check_name(name)
        self.check_partitions(name, partitions)
        topic = Topic(name=name, topic_id=self._make_id(), partitions=partitions, is_internal=is_internal)
        self._change_topic(topic, configs)
        return topic

    def check_partitions(self, name: str, partitions: int) -> None:
        """Whether a topic, new or not, may get a number of partitions. Raises InvalidPartitionsError."""
        topic = self._state.topics.get(name)
        if topic is not None and partitions <= topic.partitions:
            raise InvalidPartitionsError(f"topic {name} has {topic.partitions} partitions: ask for more")
        if not 0 < partitions <= MAX_PARTITIONS:
            raise InvalidPartitionsError(f"{partitions} partitions for {name}: 1 to {MAX_PARTITIONS}")

    def add_partitions(self, name: str, partitions: int) -> Topic:
        """Raise the number of partitions. Raises UnknownTopicError, InvalidPartitionsError, StorageError."""
        topic = self._existing_topic(name)
        self.check_partitions(name, partitions)
        topic = replace(topic, partitions=partitions)
        self._change_topic(topic, self.topic_configs(name))
        return topic

    def set_topic_configs(self, name: str, configs: Mapping[str, str]) -> None:
        """Replace a topic's configuration. Raises UnknownTopicError, StorageError."""
        self._change_topic(self._existing_topic(name), configs)

    def delete(self, name: str) -> Topic:
        """Remove a topic. Raises UnknownTopicError, StorageError."""
        topic = self._existing_topic(name)
        topics = {key: value for key, value in self._state.topics.items() if key != name}
        configs = {key: value for key, value in self._state.topic_configs.items() if key != name}
        self._save(replace(self._state, topics=topics, topic_configs=configs))
        for listener in self._listeners:
            listener.topic_deleted(topic)
        return topic

    def set_broker_configs(self, configs: Mapping[str, str]) -> None:
        """Replace the broker's dynamic configuration. Raises StorageError."""
        self._save(replace(self._state, broker_configs=dict(configs)))

    def set_scram_users(self, users: ScramUsers) -> None:
        """Replace the credentials of all SCRAM users. Raises StorageError."""
        self._save(replace(self._state, scram_users=dict(users)))

    def set_group_configs(self, group_id: str, configs: Mapping[str, str]) -> None:
        """Replace a group's configuration; an empty one forgets the group. Raises StorageError."""
        groups = {**self._state.group_configs, group_id: dict(configs)}
        self._save(replace(self._state, group_configs={key: value for key, value in groups.items() if value}))

    def set_features(self, features: Mapping[str, int]) -> None:
        """Replace the finalized features; a change of those set before raises their epoch. Raises StorageError."""
        state = self._state
        is_change = bool(state.features) and dict(features) != dict(state.features)
        self._save(replace(state, features=dict(features), features_epoch=state.features_epoch + is_change))

    def set_acls(self, acls: Iterable[AclEntry]) -> None:
        """Replace the ACL entries. Raises StorageError."""
        self._save(replace(self._state, acls=tuple(acls)))

    def allocate_producer_id(self) -> int:
        """A new producer id, unique also after a crash: ids are reserved in blocks. Raises StorageError."""
        if self._producer_id == self._producer_ids_end:
            begin = self._state.next_producer_id
            self._save(replace(self._state, next_producer_id=begin + PRODUCER_ID_BLOCK))
            self._producer_id, self._producer_ids_end = begin, begin + PRODUCER_ID_BLOCK
        self._producer_id += 1
        return self._producer_id - 1

    def subscribe(self, listener: TopicListener) -> Callable[[], None]:
        """Call `listener` for changes of topics; the returned function unsubscribes it."""
        self._listeners = (*self._listeners, listener)

        def unsubscribe() -> None:
            self._listeners = tuple(subscriber for subscriber in self._listeners if subscriber is not listener)

        return unsubscribe

    def _existing_topic(self, name: str) -> Topic:
        topic = self._state.topics.get(name)
        if topic is None:
            raise UnknownTopicError(f"there is no topic {name[:MAX_NAME_CHARACTERS]}")
        return topic

    def _change_topic(self, topic: Topic, configs: Mapping[str, str]) -> None:
        """Save, then call the listeners; a StorageError of one of them undoes the change."""
        before = self._state
        topics = {**before.topics, topic.name: topic}
        self._save(replace(before, topics=topics, topic_configs={**before.topic_configs, topic.name: dict(configs)}))
        try:
            for listener in self._listeners:
                listener.topic_changed(topic)
        except Exception:
            self._save(before)
            raise

    def _save(self, state: _State) -> None:
        replace_file(self._path, _to_json(state), durable=True)
        self._set(state)

    def _set(self, state: _State) -> None:
        self._state = state
        self._by_id = {topic.topic_id: topic for topic in state.topics.values()}


def new_id() -> str:
    """A random uuid as Kafka's text; never with a leading '-', which command lines take for an option (Uuid)."""
    while True:
        text = uuid_text(uuid.uuid4().bytes)
        if not text.startswith("-"):
            return text


def _to_json(state: _State) -> str:
    document = {
        "version": FORMAT_VERSION,
        "cluster_id": state.cluster_id,
        "next_producer_id": state.next_producer_id,
        "features": dict(state.features),
        "features_epoch": state.features_epoch,
        "broker_configs": dict(state.broker_configs),
        "group_configs": {group: dict(configs) for group, configs in state.group_configs.items()},
        "scram_users": scram_credentials.to_json(state.scram_users),
        "topics": [
            {
                "name": topic.name,
                "topic_id": topic.topic_id,
                "partitions": topic.partitions,
                "is_internal": topic.is_internal,
                "configs": dict(state.topic_configs.get(topic.name, {})),
            }
            for topic in state.topics.values()
        ],
        "acls": entries_to_json(state.acls),
    }
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def _read(path: Path) -> _State:
    with storage_errors(f"{path} can't be read"):
        raw = path.read_bytes()
    try:
        document = json.loads(raw)
        version = document["version"]
        if version != FORMAT_VERSION:
            raise DirectoryError(f"{path} has format {version}, this broker reads {FORMAT_VERSION}: start a newer one")
        return _state_of(document)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DirectoryError(f"{path} is not a catalogue of this broker ({error}): restore it from a copy") from error


def _state_of(document: Mapping[str, object]) -> _State:
    """Raises ValueError, KeyError, TypeError, AttributeError for what `_to_json` did not write."""
    topics: dict[str, Topic] = {}
    topic_configs: dict[str, Mapping[str, str]] = {}
    for entry in mappings(document["topics"]):
        name, topic_id = text(entry["name"]), text(entry["topic_id"])
        partitions = number(entry["partitions"], MAX_PARTITIONS)
        if not is_uuid_text(topic_id) or name in topics or _LEGAL_NAME.fullmatch(name) is None or not partitions:
            raise ValueError(f"topic {name!r}")
        topics[name] = Topic(
            name=name, topic_id=topic_id, partitions=partitions, is_internal=entry["is_internal"] is True
        )
        topic_configs[name] = texts(entry["configs"])
    groups = mapping(document["group_configs"])
    return _State(
        cluster_id=text(document["cluster_id"]),
        next_producer_id=number(document["next_producer_id"], _INT64_MAX),
        features={name: number(level, 1 << 15) for name, level in mapping(document["features"]).items()},
        features_epoch=number(document.get("features_epoch", 0), _INT64_MAX),  # older files have none
        broker_configs=texts(document["broker_configs"]),
        group_configs={group: texts(configs) for group, configs in groups.items()},
        scram_users=scram_credentials.from_json(document.get("scram_users", {})),  # older files have none
        topics=topics,
        topic_configs=topic_configs,
        acls=entries_of_json(mappings(document.get("acls", []))),  # older files have none
    )
