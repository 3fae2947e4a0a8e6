"""Findings without those that suppressions cover."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from state_model.audit.suppression import Suppression
from state_model.columnar.keys import Ints

UNSUPPRESSED = -1


def suppressed_by(findings: pa.Table, suppressions: Sequence[Suppression]) -> Ints:
    """For each finding (FINDING, with `topic`: the name of the user topic) the first suppression that covers it, by its
    place in the list; UNSUPPRESSED: none does.
    """
    covering: Ints = np.full(findings.num_rows, UNSUPPRESSED, np.int64)
    for index, suppression in enumerate(suppressions):
        covers = _covered(findings, suppression).to_numpy(zero_copy_only=False)
        covering[covers & (covering == UNSUPPRESSED)] = index
    return covering


def _covered(findings: pa.Table, suppression: Suppression) -> pa.ChunkedArray:
    covers = pc.is_in(findings.column("rule"), value_set=pa.array(suppression.rules))
    for column, value in (
        ("group_id", suppression.group),
        ("partition", suppression.partition),
        ("state_partition", suppression.state_partition),
    ):
        if value is not None:
            covers = pc.and_(covers, pc.fill_null(pc.equal(findings.column(column), value), False))
    if suppression.topic is not None:
        names = (findings.column(name) for name in ("topic", "topic_id"))
        covers = pc.and_(covers, pc.or_(*(pc.fill_null(pc.equal(name, suppression.topic), False) for name in names)))
    return covers


@dataclass(frozen=True, slots=True, kw_only=True)
class Sifted:
    """Findings that count, and those that suppressions cover, with `reason` and `until` of the suppression.

    `warnings`: the suppressions that have expired.
    """

    counting: pa.Table
    suppressed: pa.Table
    warnings: tuple[str, ...]


def sifted(findings: pa.Table, suppressions: Sequence[Suppression], today: date) -> Sifted:
    """Parts findings (FINDING with `topic`) by suppressions; expired ones cover none."""
    in_force = [suppression for suppression in suppressions if not suppression.is_expired(today)]
    covering = suppressed_by(findings, in_force)
    is_covered = covering != UNSUPPRESSED
    covered_by = [in_force[index] for index in covering[is_covered].tolist()]
    suppressed = findings.filter(pa.array(is_covered))
    suppressed = suppressed.append_column("reason", pa.array([by.reason for by in covered_by], pa.string()))
    suppressed = suppressed.append_column("until", pa.array([by.until.isoformat() for by in covered_by], pa.string()))
    return Sifted(
        counting=findings.filter(pa.array(np.logical_not(is_covered))),
        suppressed=suppressed,
        warnings=tuple(
            f"{suppression.text()} has expired: its findings count again; renew it, or remove it"
            for suppression in suppressions
            if suppression.is_expired(today)
        ),
    )
