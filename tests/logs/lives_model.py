"""The lives of share partitions offset by offset: a slow model that measures are held against."""

from state_model.batches import coalesce
from state_model.columnar.replay import replay_records
from state_model.machine import PartitionState, apply
from state_model.share_records import ShareRecord
from tests.logs.replay_logs import BATCH, table


def life_events(life, offset):
    """(log offset, state, count) each time the offset came to another state."""
    was, events = None, []
    for log_offset, ranges in life["states"]:
        now = next(((s, c) for first, last, s, c in ranges if first <= offset <= last), None)
        if now is not None and now != was:
            events.append((log_offset, *now))
        was = now
    return events


def lives_of(log, partition):
    """Each life of one share partition of a log, by the reference machine's state after each of its records.

    `states`: (log offset, ranges) after each record; `starts`: start offsets; `back`: (log offset, low, high) where the
    start offset went back; `blind`: what it passed where outcomes may be missing.
    """
    history = [row for row in replay_records(table(log)).history.to_pylist() if row["partition"] == partition]
    state, lives, start = PartitionState(), [], -1
    rows = {row["log_offset"]: row for row in history}
    was_gone, first = True, True
    for log_offset, (key, value, _) in enumerate(log):
        state = apply(state, log_offset, 10 * log_offset, ShareRecord(key=key, value=value))
        if key.partition != partition:
            continue
        current = state.share_partitions.get(key)
        if current is None:
            was_gone, first = True, False
            if lives:
                lives[-1]["deleted"] = True
            continue
        at = rows[log_offset]["life_log_offset"]
        if was_gone or at != lives[-1]["at"]:
            lives.append(
                {
                    "at": at,
                    "begun": log_offset,
                    "states": [],
                    "back": [],
                    "starts": [],
                    "blind": [],
                    "deleted": False,
                    "created": not first
                    or (rows[log_offset]["record_type"], current.snapshot_epoch) == ("snapshot", 0),
                }
            )
            start = -1
        was_gone, first = False, False
        if start >= 0 and 0 <= current.start_offset < start:
            lives[-1]["back"].append((log_offset, current.start_offset, start))
        if 0 <= start < current.start_offset and rows[log_offset]["completeness"] in ("provisional", "incomplete"):
            lives[-1]["blind"].append((start, current.start_offset))
        start = current.start_offset
        lives[-1]["starts"].append(start)
        ranges = [tuple(getattr(batch, name) for name in BATCH) for batch in coalesce(current.state_batches)]
        lives[-1]["states"].append((log_offset, ranges))
    return lives
