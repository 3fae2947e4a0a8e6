"""The rows of advice: a setting that a history suggests, with its evidence and effect."""

import pyarrow as pa

from sharelens.measures.what_if.schema import CERTAINTIES
from state_model.columnar.schemas import column

Row = dict[str, str | None]
WORTH = 0.2
"""A smaller saving than this part suggests nothing."""

ADVICE = pa.schema(
    [
        column("group_id", pa.string(), "share group; null = a setting of the brokers"),
        column("setting", pa.string(), "name of the configuration", nullable=False),
        column("in_force", pa.string(), "its value; null = not set"),
        column("suggested", pa.string(), "the value that the history suggests", nullable=False),
        column("evidence", pa.string(), "what in the history suggests it", nullable=False),
        column("effect", pa.string(), "what it would have changed", nullable=False),
        column("certainty", pa.string(), "of the effect: exact, bound or inferred", nullable=False),
    ]
)


def advice(row: Row, suggested: object, evidence: str, effect: str, certainty: int) -> Row:
    """An ADVICE row; `row` has its group, setting and value in force."""
    texts = {"suggested": str(suggested), "evidence": evidence, "effect": effect, "certainty": CERTAINTIES[certainty]}
    return {**row, **texts}
