"""Key columns that tables share, and share partitions as numbers, so that sets of them are numpy arrays."""

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from state_model.columnar.schemas import TEXT

Ints = npt.NDArray[np.int64]
SHARE_PARTITION_KEY = ["group_id", "topic_id", "partition"]
"""A share partition: a share group and a partition of a user topic."""
STATE_PARTITION_KEY = ["log_topic_id", "state_partition"]
"""A partition of one incarnation of __share_group_state."""
LOG_PARTITION_KEY = ["topic_id", "partition"]
"""A partition of any topic, as the log tables name it."""
PLACE_KEY = [*SHARE_PARTITION_KEY, "state_partition"]
"""A place: a share partition together with the state partition that holds its records (newest incarnation)."""
FULL_PLACE_KEY = [*STATE_PARTITION_KEY, *SHARE_PARTITION_KEY]
"""A place in one incarnation of __share_group_state."""
SHARE_PARTITION_ORDER = [(name, "ascending") for name in SHARE_PARTITION_KEY]
LOG_ORDER = [("state_partition", "ascending"), ("log_offset", "ascending")]
"""Records of one incarnation of the state topic: by state partition, then by log offset."""
_CODED = pa.schema([("group_id", TEXT), ("topic_id", TEXT), ("partition", pa.int32())])


def number_keys(*tables: pa.Table) -> tuple[list[Ints], pa.Table]:
    """The numbers of the rows' share partitions, for each table, and the share partitions by number.

    All tables share one numbering. Text may be dictionary-encoded.
    """
    rows = pa.concat_tables([table.select(SHARE_PARTITION_KEY).cast(_CODED) for table in tables]).unify_dictionaries()
    groups, topics = (rows.column(name).combine_chunks() for name in SHARE_PARTITION_KEY[:2])
    # Two texts and a number, packed step by step into one int64 each: dictionaries have fewer than 2^31 entries, so no
    # product or shift overflows, and a place never compares texts.
    pairs = groups.indices.to_numpy().astype(np.int64) * max(1, len(topics.dictionary)) + topics.indices.to_numpy()
    pair = _numbered(pairs)
    partitions = rows.column("partition").to_numpy().astype(np.int64)
    places = (pair.indices.to_numpy().astype(np.int64) << 32) | (partitions & 0xFFFFFFFF)
    place_numbers = _numbered(places)
    distinct_places = place_numbers.dictionary.to_numpy()
    both_codes = pair.dictionary.to_numpy()[distinct_places >> 32]
    keys = pa.table(
        {
            "group_id": groups.dictionary.take(pa.array(both_codes // max(1, len(topics.dictionary)))),
            "topic_id": topics.dictionary.take(pa.array(both_codes % max(1, len(topics.dictionary)))),
            "partition": distinct_places.astype(np.int32),
        }
    )
    ends = np.cumsum([table.num_rows for table in tables])[:-1]
    return np.split(place_numbers.indices.to_numpy().astype(np.int64), ends), keys


def number_places(*tables: pa.Table) -> tuple[list[Ints], pa.Table]:
    """Numbers for the places (PLACE_KEY) of rows of one incarnation of the state topic, as `number_keys` gives them."""
    numbers, keys = number_keys(*tables)
    state_partitions = [table.column("state_partition").to_numpy().astype(np.int64) for table in tables]
    # Both halves have 31 bits: numbers of share partitions are below that of rows, state partitions not negative.
    numbered = _numbered(np.concatenate(numbers) << 32 | np.concatenate(state_partitions))
    distinct_places = numbered.dictionary.to_numpy()
    places = keys.take(pa.array(distinct_places >> 32)).append_column(
        "state_partition", pa.array((distinct_places & 0xFFFFFFFF).astype(np.int32))
    )
    ends = np.cumsum([table.num_rows for table in tables])[:-1]
    return np.split(numbered.indices.to_numpy().astype(np.int64), ends), places


def _numbered(values: Ints) -> pa.DictionaryArray:
    """Numbers in the order in which they first occur."""
    return pa.array(values).dictionary_encode()


def place_of_keys(keys: pa.Table) -> Ints:
    """The place of each row of `keys` in the order of (group_id, topic_id, partition) and its further columns."""
    order = pc.sort_indices(keys, sort_keys=[(name, "ascending") for name in keys.column_names]).to_numpy()
    # `order` gives the row of each place; its inverse the place of each row.
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    return place


def only_keys_of(state: pa.Table, records: pa.Table) -> pa.Table:
    """The rows of `state` whose share partition occurs in `records`, in their order."""
    (key_of_row, keys_of_records), _ = number_keys(state, records)
    return state.filter(pa.array(np.isin(key_of_row, keys_of_records)))


def without_keys_of(state: pa.Table, records: pa.Table) -> pa.Table:
    """The rows of `state` whose share partition does not occur in `records`, in their order."""
    (key_of_row, keys_of_records), _ = number_keys(state, records)
    return state.filter(pa.array(~np.isin(key_of_row, keys_of_records)))


def numbered_partitions(rows: pa.Table) -> tuple[Ints, list[tuple[str, int]]]:
    """The number of each row's user partition, and the user partitions (topic id, partition) by number."""
    topics = rows.column("topic_id").combine_chunks()
    if isinstance(topics, pa.ChunkedArray):
        topics = pa.concat_arrays(topics.chunks) if topics.num_chunks else pa.array([], pa.string())
    if not isinstance(topics, pa.DictionaryArray):
        topics = topics.dictionary_encode()
    indices = pc.fill_null(topics.indices, 0).to_numpy().astype(np.int64)
    partitions = rows.column("partition").to_numpy().astype(np.int64) & 0xFFFFFFFF
    numbered = pa.array(indices << 32 | partitions).dictionary_encode()
    names = topics.dictionary.to_pylist()
    places = [(names[code >> 32], code & 0xFFFFFFFF) for code in numbered.dictionary.to_pylist()]
    return numbered.indices.to_numpy().astype(np.int64), places
