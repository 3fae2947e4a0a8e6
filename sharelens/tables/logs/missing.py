"""What other logs of log directories list and the state log lacks."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import pyarrow as pa

from sharelens.evidence.metadata_events import MetadataHistory
from sharelens.groups.initialized import initialized_share_partitions
from sharelens.tables.cover import StatePartitionCover
from sharelens.tables.logs.directories import LogDirectories
from sharelens.tables.logs.groups import read_listings
from sharelens.tables.logs.state import PROBE_ABOVE_BYTES, StateLog, size_bytes
from sharelens.tables.missing import LeftOut, MissingEvidence, StateTopic, missing_evidence
from sharelens.tables.places import PLACED
from state_model.columnar.keys import PLACE_KEY
from state_model.metadata.changes import PARTITION, TOPIC
from state_model.topics import OFFSETS_TOPIC, STATE_TOPIC
from state_model.uuids import ZERO_UUID


def missing_of_logs(origin: LogDirectories, read_cover: Callable[[], Sequence[StatePartitionCover]]) -> MissingEvidence:
    """As `_missing`, with the state topics that are left out."""
    ids = {log.partition.topic_id for log in origin.logs}
    left_out = (topic for topic in origin.state_topics if topic.topic_id not in ids)
    return replace(
        _missing(origin, read_cover),
        left_out=tuple(LeftOut(topic.topic_id, topic.last_ms, tuple(sorted(topic.directories))) for topic in left_out),
    )


def _missing(origin: LogDirectories, read_cover: Callable[[], Sequence[StatePartitionCover]]) -> MissingEvidence:
    """What is missing; state logs that a question left unread are probed where they are large.

    `read_cover`: the port's cover, read only where share partitions are initialized.
    """
    logs, topic = origin.logs, state_topic(origin)
    initialized = _initialized(origin)
    if initialized is None or initialized.num_rows == 0:
        return missing_evidence(initialized, PLACED.empty_table(), (), topic)
    size = sum(log.size_bytes for log in logs)
    is_probed = size > PROBE_ABOVE_BYTES and (
        size > origin.source.max_bytes or not all(log.is_read_through for log in logs)
    )
    if is_probed:
        return missing_evidence(initialized, _probed_places(logs), (), topic, is_probed=True)
    places = pa.concat_tables([PLACED.empty_table().select(PLACE_KEY), *(log.places() for log in logs)])
    return missing_evidence(initialized, places, read_cover(), topic)


def state_topic(origin: LogDirectories) -> StateTopic:
    """The folders of the state topic, and its replicas by a metadata log whose beginning is known."""
    logs, history = origin.logs, origin.metadata.history
    nodes = {directory.node_id for directory in origin.directories if directory.node_id is not None}
    replicas = None
    if history is not None and history.has_beginning:
        replicas = _replicas(history, logs[0].partition.topic_id if logs else ZERO_UUID)
    return StateTopic(folders=frozenset(log.number for log in logs), replicas=replicas, nodes=frozenset(nodes))


def _replicas(history: MetadataHistory, topic_id: str) -> dict[int, frozenset[int]] | None:
    """Broker ids by partition of the state topic at the end; None where the metadata log has it by another id."""
    in_force = [row for row in history.validities if row.end is None]
    ids = {row.key[1] for row in in_force if row.key[0] == TOPIC and row.content["name"] == STATE_TOPIC}
    if not ids or topic_id not in (*ids, ZERO_UUID):
        return None
    replicas = {}
    for row in in_force:
        if row.key[0] == PARTITION and row.key[1] in ids:
            brokers = row.content["replicas"]
            assert isinstance(brokers, tuple)
            replicas[int(row.key[2])] = frozenset(broker for broker in brokers if isinstance(broker, int))
    return replicas


def _initialized(origin: LogDirectories) -> pa.Table | None:
    """The initialized share partitions; None without __consumer_offsets, or where it is larger than --max-bytes."""
    logs = [log for log in origin.united if log.topic == OFFSETS_TOPIC]
    if not logs or sum(size_bytes(log) for log in logs) > origin.source.max_bytes:
        return None
    return initialized_share_partitions(read_listings(logs, origin.source.include_uncommitted))


def _probed_places(logs: Sequence[StateLog]) -> pa.Table:
    """PLACE_KEY of share partitions at the beginning of each state log."""
    rows = [dict(zip(PLACE_KEY, (*key, log.number), strict=True)) for log in logs for key in log.probe()]
    return pa.Table.from_pylist(rows, schema=pa.schema([PLACED.field(name) for name in PLACE_KEY]))
