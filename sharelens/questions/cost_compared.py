"""What share state costs, beside what KIP-932's early design would have cost for the same writes."""

import pyarrow as pa
import pyarrow.compute as pc

from sharelens.measures.early_draft_cost import draft_cost
from sharelens.measures.schemas import DRAFT_COST
from sharelens.output import Answer
from sharelens.output.layouts import Layout
from sharelens.parameters.filters import KeyFilter
from sharelens.questions.answers.measured import answer, of_parts, scope
from sharelens.questions.answers.shape import answer_schema
from sharelens.source.request import CutChoice
from sharelens.tables.parts import Part
from sharelens.tables.port import Tables
from state_model.errors import SharelensError
from state_model.machine import SNAPSHOT_UPDATE_LIMIT

SUMMED = ("records", "bytes", "draft_records", "draft_bytes")


def cost_compared(evidence: Tables, key_filter: KeyFilter, cut: CutChoice) -> Answer:
    """The answer to `sharelens cost --compare-early-draft`: one row a share partition.

    Raises:
        SharelensError: no share partition has a history that is complete enough.
    """
    scoped = scope(evidence, key_filter, cut)

    def of_part(part: Part) -> pa.Table:
        records = scoped.inputs(part).records()
        return draft_cost(records, part.history, part.deliveries, deltas_per_checkpoint=SNAPSHOT_UPDATE_LIMIT)

    table = of_parts(scoped, of_part)
    if scoped.places.num_rows and not table.num_rows:
        raise SharelensError(
            "no share partition has all its records: no figure; see sharelens status for what is missing"
        )
    sums = {name: pc.sum(table.column(name)).as_py() or 0 for name in SUMMED}
    ratio = f", {sums['draft_bytes'] / sums['bytes']:.2f} times the bytes" if sums["bytes"] else ""
    totals = (
        f"shipped: records {sums['records']}, bytes {sums['bytes']}\n"
        f"early design: records {sums['draft_records']}, bytes {sums['draft_bytes']}{ratio}"
    )
    return answer(evidence, table, LAYOUT, totals=totals, warnings=scoped.warnings, none="no record")


LAYOUT = Layout(
    schema=answer_schema(DRAFT_COST),
    fields="group_id topic partition records draft_records bytes draft_bytes most_records_to_replay "
    "draft_most_records_to_replay draft_checkpoints acknowledged_offsets state_partition completeness",
    important="GROUP TOPIC PARTITION RECORDS DRAFT-RECORDS BYTES DRAFT-BYTES",
)
