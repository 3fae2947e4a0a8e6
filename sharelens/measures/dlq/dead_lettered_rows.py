"""The records given up that dead letters name."""

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from sharelens.measures.dlq.reconciliation import candidate_places, readable_letters
from state_model.columnar.keys import number_keys


def named_rows(given_up: pa.Table, letters: pa.Table, names: Mapping[str, str]) -> pa.Array:
    """Whether a dead letter names an offset of each POISON_RECORD row."""
    candidates = candidate_places(readable_letters(letters), names)
    if candidates.num_rows == 0 or given_up.num_rows == 0:
        return pa.repeat(False, given_up.num_rows)
    (row_key, key), _ = number_keys(given_up, candidates)
    offset = readable_letters(letters).column("offset").to_numpy()[candidates.column("letter").to_numpy()]
    offsets = np.unique(offset)
    size = len(offsets) + 1
    named = np.sort(key * size + np.searchsorted(offsets, offset))
    low = row_key * size + np.searchsorted(offsets, given_up.column("first_offset").to_numpy())
    end = row_key * size + np.searchsorted(offsets, given_up.column("last_offset").to_numpy(), "right")
    return pa.array(np.searchsorted(named, low) < np.searchsorted(named, end))
