"""Findings of the audit without those that suppressions cover."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

import numpy as np
import pyarrow as pa

from state_model.audit.columnar.suppressed import UNSUPPRESSED, suppressed_by
from state_model.audit.suppression import Suppression


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
