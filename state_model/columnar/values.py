"""Values of replay that need no kernel: losses of a log, names of delivery states."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

STATE_NAMES = ("AVAILABLE", "ACQUIRED", "ACKNOWLEDGED", "ARCHIVING", "ARCHIVED")
UNKNOWN_STATE = "unknown_state"
"""The reason of a state that rests on a delivery state or a record type that this version does not know."""
NAME_OF_BYTE = (*STATE_NAMES, *(f"UNKNOWN({i if i < 128 else i - 256})" for i in range(len(STATE_NAMES), 256)))
"""Names of delivery states by their id as an unsigned byte."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """A range of state-log offsets that the evidence lacks (both ends inclusive).

    It touches the share partition that it names, or without a name all share partitions of the state partition. One
    with a name is a single record that could not be decoded.
    """

    first_offset: int
    last_offset: int
    reason: str
    group_id: str | None = None
    topic_id: str | None = None
    partition: int | None = None


def is_unknown_state(states: npt.NDArray[np.int8]) -> npt.NDArray[np.bool_]:
    """Whether each delivery state is one that this version does not know: of a later Kafka, or damage."""
    unknown: npt.NDArray[np.bool_] = states.view(np.uint8) >= len(STATE_NAMES)
    return unknown


def has_unknown_state(state_batches: pa.ListArray) -> npt.NDArray[np.bool_]:
    """Whether each list of state batches has a delivery state that this version does not know."""
    unknown = is_unknown_state(pc.list_flatten(state_batches).field("delivery_state").to_numpy())
    result = np.zeros(len(state_batches), np.bool_)
    if unknown.any():
        result[pc.list_parent_indices(state_batches).to_numpy()[unknown]] = True
    return result


def losses_until(losses: Sequence[Loss], *records: pa.Table) -> list[Loss]:
    """The losses that begin before the last of some records; none without records."""
    end = max((pc.max(rows.column("log_offset")).as_py() for rows in records if rows.num_rows), default=-1)
    return [loss for loss in losses if loss.first_offset < end]


def encoded_names(codes: npt.NDArray[np.integer[Any]], names: Sequence[str | None]) -> pa.DictionaryArray:
    """`names[code]` for each code, dictionary-encoded, with a dictionary of the names that occur, in their order."""
    used = np.zeros(len(names), np.bool_)
    used[codes] = True
    in_dictionary = used & np.array([name is not None for name in names])
    index = (np.cumsum(in_dictionary) - 1).astype(np.int32)[codes]
    unknown = None if in_dictionary[used].all() else ~in_dictionary[codes]
    dictionary = pa.array(
        [name for name, is_included in zip(names, in_dictionary, strict=True) if is_included], pa.string()
    )
    return pa.DictionaryArray.from_arrays(pa.array(index, mask=unknown), dictionary)


def encoded_state_names(states: npt.NDArray[np.int8]) -> pa.DictionaryArray:
    """Names of delivery states, dictionary-encoded; an id that Kafka does not know becomes UNKNOWN(id)."""
    return encoded_names(states.view(np.uint8), NAME_OF_BYTE)


def state_names(states: pa.Array) -> pa.Array:
    """Names of delivery states (int8); an id that Kafka does not know becomes UNKNOWN(id)."""
    return encoded_state_names(states.to_numpy()).dictionary_decode()
