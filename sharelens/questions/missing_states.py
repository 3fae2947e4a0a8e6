"""The initialized share partitions without state in the evidence, by the reason: a part of the answer to `status`."""

from collections.abc import Mapping

import pyarrow as pa

from sharelens.output import Answer
from sharelens.output.layouts import Layout
from sharelens.questions.answers.shape import CLUSTER_ID
from sharelens.tables.missing import REASONS, MissingEvidence
from state_model.columnar.schemas import column

MISSING_STATE = pa.schema(
    [
        CLUSTER_ID,
        column("reason", pa.string(), f"why the state is missing: {', '.join(REASONS)}"),
        column("share_partitions", pa.int64(), "initialized share partitions without a record of state"),
        column("initialized", pa.int64(), "all initialized share partitions of the cluster"),
        column("example_group_id", pa.string(), "group of one of them; null = not among the first ones"),
        column("meaning", pa.string(), "the reason in words"),
    ]
)
LAYOUT = Layout(schema=MISSING_STATE)


def missing_states_part(missing: Mapping[str | None, MissingEvidence]) -> Answer:
    """One row a cluster and reason."""
    rows = [
        {
            "cluster_id": cluster_id,
            "reason": reason,
            "share_partitions": count,
            "initialized": evidence.initialized,
            "example_group_id": next(
                (state.group_id for state in evidence.states.items if state.reason == reason), None
            ),
            "meaning": REASONS[reason],
        }
        for cluster_id, evidence in missing.items()
        for reason, count in evidence.reasons.items()
    ]
    return Answer(table=pa.Table.from_pylist(rows, schema=MISSING_STATE), columns=LAYOUT.columns(), none="none")
