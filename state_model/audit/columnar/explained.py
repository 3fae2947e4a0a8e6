"""Findings with the causes that explain them, from the findings alone: the same over log directories and in a lake."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from state_model.audit.causes import CAUSES, inferred_causes
from state_model.audit.common_causes import BEYOND_TOPIC, LEFT_BEHIND, SHARED, TOPIC_CREATED_AGAIN, TOPIC_DELETED
from state_model.audit.rule import GROUP_RECORD_RULES
from state_model.audit.sightings import NONE, Sighting
from state_model.audit.table import BY_CODE, BY_ID
from state_model.columnar.keys import PLACE_KEY, Ints
from state_model.topics import METADATA_TOPIC, OFFSETS_TOPIC, STATE_TOPIC

OF_ONE_PLACE: Final = frozenset({*CAUSES, *(effect for effects in CAUSES.values() for effect in effects)})
INVOLVED: Final = frozenset(BY_CODE[code].id for code in OF_ONE_PLACE | SHARED)
"""Ids of the rules whose findings explain others or are explained."""
READ: Final = ["rule", "number", "severity", *PLACE_KEY, "first_log_offset", "first_seen_ms", "records"]
TOPIC_EVENTS: Final = (None, TOPIC_DELETED, TOPIC_CREATED_AGAIN)
"""What has happened to the topic, by the number of records of the metadata log that prove a finding."""


def with_causes(findings: pa.Table) -> pa.Table:
    """The rows (columns of FINDING) with `cause_inferred`; they are all findings of the rules INVOLVED of a cluster."""
    causes: list[str | None] = [None] * findings.num_rows
    rows = _candidates(findings)
    sightings = [_sighting(row) for row in findings.select(READ).take(pa.array(rows)).to_pylist()]
    for row, cause in zip(rows.tolist(), inferred_causes(sightings), strict=True):
        causes[row] = cause
    place = findings.schema.get_field_index("cause_inferred")
    return findings.set_column(place, findings.schema.field(place), pa.array(causes, pa.string()))


def of_rules(findings: pa.Table, rules: Iterable[int]) -> pa.Table:
    """The rows of some rules, by their ids."""
    codes = pa.array([BY_ID[rule].code for rule in rules], pa.string())
    return findings.filter(pc.is_in(findings.column("rule"), value_set=codes))


def _candidates(findings: pa.Table) -> Ints:
    """The rows that others can explain, or that can explain others: nothing else at a place explains a lone one."""
    is_shared = pc.is_in(findings.column("rule"), value_set=pa.array(sorted(SHARED))).to_numpy()
    is_own = pc.is_in(findings.column("rule"), value_set=pa.array(sorted(OF_ONE_PLACE))).to_numpy()
    own_rows = np.flatnonzero(is_own)
    places = [findings.column(name).take(pa.array(own_rows)).cast(pa.string()) for name in PLACE_KEY]
    keys = pc.binary_join_element_wise(*places, "/", null_handling="replace", null_replacement="")
    _, number, count = np.unique(keys.to_numpy(), return_inverse=True, return_counts=True)
    return np.union1d(np.flatnonzero(is_shared), own_rows[count[number] > 1])


def _sighting(row: Mapping[str, Any]) -> Sighting:
    rule, first = BY_CODE[row["rule"]], row["first_log_offset"]
    topic = OFFSETS_TOPIC if rule.number in GROUP_RECORD_RULES else STATE_TOPIC
    log_records = [record for record in row["records"] if record["topic"] == topic and record["offset"] <= first]
    before = [record["offset"] for record in log_records if record["offset"] < first]
    of_metadata = sum(record["topic"] == METADATA_TOPIC for record in row["records"])
    return Sighting(
        rule=rule.code,
        place=tuple(row[name] for name in PLACE_KEY),
        log_offset=first,
        since=NONE if rule.code in BEYOND_TOPIC else min(before, default=first),
        severity=row["severity"],
        after=max(before, default=NONE),
        first_ms=row["first_seen_ms"],
        group_id=row["group_id"],
        topic_id=row["topic_id"],
        partition=row["partition"],
        log=(topic, log_records[0]["partition"]) if log_records else None,
        event=TOPIC_EVENTS[of_metadata] if rule.code in LEFT_BEHIND else None,
    )
