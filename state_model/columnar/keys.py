"""Share partitions as numbers, so that sets of them are numpy arrays."""

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Ints = npt.NDArray[np.int64]
KEY = ["group_id", "topic_id", "partition"]
ORDER = [(name, "ascending") for name in KEY]
_KEYS = pa.schema([("group_id", pa.string()), ("topic_id", pa.string()), ("partition", pa.int32())])


def number_keys(*tables: pa.Table) -> tuple[list[Ints], pa.Table]:
    """For each table the number of each row's share partition, in one numbering; and the share partitions by number."""
    both = pa.concat_tables([table.select(KEY).cast(_KEYS) for table in tables]).combine_chunks()
    groups = both.column("group_id").combine_chunks().dictionary_encode()
    topics = both.column("topic_id").combine_chunks().dictionary_encode()
    partitions = both.column("partition").to_numpy().astype(np.int64)
    pairs = groups.indices.to_numpy().astype(np.int64) * max(1, len(topics.dictionary)) + topics.indices.to_numpy()
    pair = np.unique(pairs, return_inverse=True)[1].astype(np.int64)
    _, row, number = np.unique((pair << 32) | (partitions & 0xFFFFFFFF), return_index=True, return_inverse=True)
    ends = np.cumsum([table.num_rows for table in tables])[:-1]
    return np.split(number.astype(np.int64), ends), both.take(pa.array(row))


def only_keys_of(state: pa.Table, records: pa.Table) -> pa.Table:
    """The rows of `state` whose share partition occurs in `records`, in their order."""
    (held, touched), _ = number_keys(state, records)
    return state.filter(pa.array(np.isin(held, touched)))


def without_keys_of(state: pa.Table, records: pa.Table) -> pa.Table:
    """The rows of `state` whose share partition does not occur in `records`, in their order."""
    (held, touched), _ = number_keys(state, records)
    return state.filter(pa.array(~np.isin(held, touched)))
