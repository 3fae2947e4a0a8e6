"""Logs of one state partition for tests of the audit: violations of the reference form and of the audit over Arrow."""

from state_model.audit.columnar.auditor import Auditor
from state_model.columnar.values import Loss
from state_model.share_records import SharePartitionKey, ShareRecord
from tests.audit.reference.passed_offsets import Passed, passed_offsets
from tests.audit.reference.steps import steps
from tests.audit.reference.violations import violations
from tests.logs.replay_logs import table


def reference_rows(log, *, is_from_zero=True, losses=(), limits=None):
    """(rule, share partition, log offset, field, at, expected, seen, snapshot, previous) of each violation, sorted."""
    walked = _steps(log, is_from_zero=is_from_zero, losses=losses, limits=limits)
    return sorted(
        (
            violation.rule_id,
            violation.key,
            violation.log_offset,
            int(violation.difference.field),
            violation.difference.at,
            violation.difference.expected,
            violation.difference.actual,
            violation.snapshot,
            violation.previous,
        )
        for violation in violations(walked)
    )


def _steps(log, **options):
    entries = [(offset, 10 * offset, ShareRecord(key=key, value=value)) for offset, (key, value, *_) in enumerate(log)]
    return steps(entries, **options)


def reference_passed(log, **options):
    """What start offsets pass without an outcome."""
    return list(passed_offsets(_steps(log, **options)))


def columnar_passed(log, *, is_from_zero=True, losses=(), chunk=None):
    """The same of the audit over Arrow, in chunks of so many records."""
    auditor = Auditor(is_from_zero=is_from_zero)
    whole_log = table([(key, value, False) for key, value, *_ in log])
    lost = [_loss(offset, key) for offset, key in losses]
    passed = {}
    step = chunk or max(1, whole_log.num_rows)
    for begin in range(0, whole_log.num_rows, step):
        auditor.take(whole_log.slice(begin, step), lost if begin == 0 else ())
        for row in auditor.passed.to_pylist():
            key = SharePartitionKey(row["group_id"], row["topic_id"], row["partition"])
            assert row["log_time_ms"] == 10 * row["log_offset"]
            places = row["snapshot_log_offset"], row["previous_log_offset"]
            record = Passed(key, row["log_offset"], row["start_offset"], (), *places)
            passed.setdefault(record, []).extend(range(row["first_offset"], row["last_offset"] + 1))
    return [record._replace(offsets=tuple(offsets)) for record, offsets in passed.items()]


def columnar_rows(log, *, is_from_zero=True, losses=(), limits=None, chunk=None):
    """The same of the audit over Arrow, in chunks of so many records."""
    auditor = Auditor(is_from_zero=is_from_zero, limit_of_group=(limits or {}).get)
    whole_log = table([(key, value, False) for key, value, *_ in log])
    lost = [_loss(offset, key) for offset, key in losses]
    rows = []
    step = chunk or max(1, whole_log.num_rows)
    for begin in range(0, whole_log.num_rows, step):
        violated = auditor.take(whole_log.slice(begin, step), lost if begin == 0 else ())
        keys = auditor.keys.to_pylist()
        for row in violated.to_pylist():
            key = tuple(keys[row["share_partition"]].values())
            names = ("field", "at", "expected", "seen", "snapshot_log_offset", "previous_log_offset")
            rows.append((row["rule"], key, row["log_offset"], *(row[name] for name in names)))
    return sorted(rows)


def _loss(offset, key):
    names = {} if key is None else {"group_id": key.group_id, "topic_id": key.topic_id, "partition": key.partition}
    return Loss(first_offset=offset, last_offset=offset, reason="gap", **names)
