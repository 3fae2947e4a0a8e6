"""The initial state of a share partition: the start offset, and the window from the share coordinator (§2, §3)."""

from sharelens.broker.ports import Log, ShareGroupSettings
from sharelens.broker.share.window import CachedBatch, Run, Window
from state_model.batches import Batches
from state_model.share_records import NOT_DETERMINED, DeliveryState

PERSISTED_STATES = frozenset(
    (DeliveryState.AVAILABLE, DeliveryState.ACKNOWLEDGED, DeliveryState.ARCHIVING, DeliveryState.ARCHIVED)
)


def resolve_start(start_offset: int, settings: ShareGroupSettings, log: Log, now_ms: int) -> int:
    """The start offset; where the state has none, by share.auto.offset.reset.

    latest is the high watermark whatever the isolation level; so is a duration that reaches back to no record.
    """
    if start_offset != NOT_DETERMINED:
        return start_offset
    match settings.auto_offset_reset:
        case "latest":
            return log.high_watermark
        case "earliest":
            return log.log_start_offset
        case duration_ms:
            position = log.offset_for_timestamp(now_ms - duration_ms)
            return log.high_watermark if position is None else position[1]


def load(start_offset: int, batches: Batches) -> Window | None:
    """The window of a state; None when the batches are invalid."""
    window = Window(start_offset)
    expected = start_offset
    for batch in sorted(batches, key=lambda batch: batch.first_offset):
        if batch.first_offset < expected or batch.last_offset < batch.first_offset:
            return None
        if batch.delivery_state not in PERSISTED_STATES:
            return None
        state = DeliveryState(batch.delivery_state)
        window.load(CachedBatch([Run(batch.first_offset, batch.last_offset, state, batch.delivery_count)]))
        expected = batch.last_offset + 1
    return window
