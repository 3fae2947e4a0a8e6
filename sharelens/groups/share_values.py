"""The values of records of share groups: for the kernel, and as columns of the histories."""

import json
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sharelens.groups import kernels, schemas
from sharelens.groups import task_numbers as tasks
from sharelens.groups.arrays import Values
from sharelens.groups.json_parts import PartReader
from sharelens.groups.numbers import NumberedRows, codes, columns
from sharelens.groups.replay import KERNEL_TYPES, InitializationKey, initialization_of, metadata_values

Ints = npt.NDArray[np.int64]
METADATA_SCHEMA = pa.schema(
    [schemas.MEMBER_HISTORY.field(name) for name in ("client_id", "client_host", "rack_id", "subscribed_topics")]
)
"""The columns of the member history that follow from the member's subscription alone."""
STATUS_NAMES = (schemas.DELETING, schemas.INITIALIZED, schemas.INITIALIZING)
"""In the order of the rows of the initialization history."""
STATUS_BITS = 2


class ShareValues:
    """The values of share groups (`group_rows.ReadValues`)."""

    group_type = schemas.SHARE
    part_schema = schemas.SHARE_INITIALIZATION_HISTORY

    def __init__(self, rows: NumberedRows) -> None:
        metadata = [(value["epoch"], value["metadataHash"]) for value in _values(rows, kernels.METADATA)]
        targets = [
            (value["assignmentEpoch"], value.get("assignmentTimestamp", 0)) for value in _values(rows, kernels.TARGET)
        ]
        members = [metadata_values(value) for value in _values(rows, kernels.MEMBER)]
        reader, texts = PartReader(), rows.table.column("value_json")
        for kind in (kernels.MEMBER_TARGET, kernels.ASSIGNMENT):
            integers = reader.read(texts, rows.rows_of(kind), KERNEL_TYPES[kind])
        epochs, previous, _ = integers
        self._topic_ids, (self._targets, self._assignments) = reader.lists()
        self._initializations = _Initializations(
            [initialization_of(value) for value in _values(rows, kernels.INITIALIZATION)]
        )
        metadata_columns, target_columns = columns(metadata, 2), columns(targets, 2)
        self.metadata = pa.Table.from_pylist(members, schema=METADATA_SCHEMA).combine_chunks()
        no_numbers, of_groups = np.zeros(0, np.int64), np.zeros(len(rows.group_names), np.int64)
        self.values = Values(
            is_share=True,
            epochs=metadata_columns[0],
            hashes=metadata_columns[1],
            validated=no_numbers,
            standby=no_numbers,
            member_codes=codes(tuple(value.values()) for value in members),
            part_codes=no_numbers,
            target_epochs=target_columns[0],
            target_timestamps_ms=target_columns[1],
            target_codes=no_numbers,
            new_codes=of_groups,
            no_codes=of_groups,
            targets_at=self._targets.at,
            targets=self._targets.numbers,
            states=np.zeros(len(epochs), np.int64),
            member_epochs=epochs,
            previous_epochs=previous,
            member_epoch_codes=no_numbers,
            parts_at=np.append(self._assignments.at, self._assignments.at[-1] + self._initializations.at[1:]),
            parts=np.append(self._assignments.numbers, self._initializations.numbers),
            part_marks=np.append(self._assignments.epochs, self._initializations.topics),
            topology_epochs=no_numbers,
        )

    def assigned_columns(self, positions: Ints) -> dict[str, pa.Array]:
        """Columns of the member history from positions of current assignments; NONE, or LEFT by a tombstone."""
        return {"assigned_partitions": self._assignments.partitions(self._topic_ids, positions)}

    def target_columns(self, positions: Ints) -> dict[str, pa.Array]:
        """Columns of the member history from positions of targets; below 0 there is none."""
        return {"target_partitions": self._targets.partitions(self._topic_ids, positions)}

    def part_columns(self, numbers: Ints, topics: Ints) -> dict[str, pa.Array]:
        """The columns of the initialization history that follow from a share partition in a status and its topic."""
        return self._initializations.columns(numbers, topics)


class _Initializations:
    """Values of ShareGroupStatePartitionMetadata as lists of numbers: place of the topic id, partition, status.

    Value i has the share partitions numbers[at[i]:at[i + 1]], ascending, with the places of their topics' names.
    """

    def __init__(self, values: list[dict[InitializationKey, str | None]]) -> None:
        self._topic_ids = sorted({key.topic_id for value in values for key in value})
        self._names = sorted({name for value in values for name in value.values() if name is not None})
        ids, names = ({text: place for place, text in enumerate(texts)} for texts in (self._topic_ids, self._names))
        entries = [
            (
                (ids[key.topic_id] << tasks.PARTITION_BITS | key.partition - tasks.LEAST_PARTITION) << STATUS_BITS
                | STATUS_NAMES.index(key.status),
                kernels.NONE if name is None else names[name],
            )
            for value in values
            for key, name in sorted(value.items())
        ]
        self.at: Ints = np.cumsum([0, *map(len, values)], dtype=np.int64)
        self.numbers, self.topics = columns(entries, 2)

    def columns(self, numbers: Ints, topics: Ints) -> dict[str, pa.Array]:
        places = numbers >> STATUS_BITS
        partitions = tasks.partition_of(places)
        return {
            "topic_id": pa.array(self._topic_ids, pa.string()).take(pa.array(tasks.name_of(places))),
            "partition": pa.array(partitions, mask=partitions < 0),
            "status": pa.array(STATUS_NAMES).take(pa.array(numbers & ((1 << STATUS_BITS) - 1))),
            "topic": pa.array(self._names, pa.string()).take(pa.array(topics, mask=topics < 0)),
        }


def _values(rows: NumberedRows, kind: int) -> list[dict[str, Any]]:
    """The decoded values of a kind of record, as the reference reads them."""
    return [json.loads(text) for text in rows.texts(kind)]
