"""Events of a metadata log in offset order: records, snapshots that replace the state, and gaps.

Transactions are applied at their end (metadata-log §4): a record between BEGIN and END counts from END on, nothing of
an aborted or unfinished transaction counts.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from state_model.metadata import schemas
from state_model.metadata.records import MetadataRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """A complete snapshot: the state of all offsets below `end_offset`; `timestamp_ms`: of the last of them."""

    end_offset: int
    timestamp_ms: int
    records: tuple[MetadataRecord, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """Offsets (last one inclusive) whose records are missing, damaged or of an unknown type."""

    first_offset: int
    last_offset: int


Event = MetadataRecord | Snapshot | Gap


def applied(events: Iterable[Event]) -> Iterator[Event]:
    """The events with each transaction's records at its end.

    In a gap a transaction may have ended, and most are not aborted: its records before the gap count. A snapshot has
    no open transaction.
    """
    pending: list[MetadataRecord] | None = None
    for event in events:
        if isinstance(event, Snapshot):
            pending = None
            yield event
        elif isinstance(event, Gap):
            yield from pending or ()
            pending = None
            yield event
        elif event.is_control:
            yield event
        elif event.record_type == schemas.BEGIN_TRANSACTION:
            pending = []
        elif event.record_type == schemas.ABORT_TRANSACTION:
            pending = None
        elif event.record_type == schemas.END_TRANSACTION:
            for record in pending or ():
                yield record._replace(offset=event.offset, timestamp_ms=event.timestamp_ms)
            pending = None
        elif pending is not None:
            pending.append(event)
        else:
            yield event
