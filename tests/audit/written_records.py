"""Records of a coordinator's write side, under the rules on streams and consumer groups."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from state_model.audit.model_groups.history import ModelRecord
from state_model.audit.model_groups.shape import AnyHistory, Check
from state_model.audit.severities import ERROR
from state_model.audit.table import BY_ID
from state_model.group_records import GroupRecord, decode_record, encode_record, to_formatter_json


def errors_in(
    history: AnyHistory, checks: Mapping[int, Check[Any]], log: Iterable[tuple[GroupRecord, int]]
) -> list[tuple[int, str]]:
    """Place and code of the rules of severity error that records with their times violate."""
    errors = {rule: check for rule, check in checks.items() if BY_ID[rule].severity == ERROR}
    violations = []
    for offset, (record, time_ms) in enumerate(log):
        written = decode_record(*encode_record(record))
        assert isinstance(written, GroupRecord)
        printed: Any = to_formatter_json(written)["value"]
        value = None if printed is None else json.loads(json.dumps(printed["data"]))
        name = record.member_id or record.regular_expression
        now = ModelRecord(record.record_type, name, value, offset, time_ms)
        violations += [(offset, BY_ID[rule].code) for rule, check in errors.items() if check(history, now) is not None]
        history.apply(now)
    return violations
