"""Words of replay that need no kernel: what is missing from a log, names of delivery states."""

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

STATE_NAMES = ("AVAILABLE", "ACQUIRED", "ACKNOWLEDGED", "ARCHIVING", "ARCHIVED")


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """A range of state-log offsets that the evidence lacks (both ends inclusive).

    With a share partition named, only that one is touched; otherwise every share partition of the state partition.
    """

    first_offset: int
    last_offset: int
    reason: str
    group_id: str | None = None
    topic_id: str | None = None
    partition: int | None = None


def state_names(states: pa.Array) -> pa.Array:
    """Names of delivery states; an id that Kafka does not know becomes UNKNOWN(id)."""
    table = [STATE_NAMES[i] if 0 <= i < len(STATE_NAMES) else f"UNKNOWN({i})" for i in range(-128, 128)]
    index = pc.add(pc.cast(states, pa.int32()), 128)
    return pa.array(table).take(index)
