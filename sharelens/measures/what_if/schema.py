"""The rows of counterfactual answers: a figure of a share partition in the history and under another setting.

figure     in_history  at_least  at_most  certainty
snapshots           3         7        7  exact      the log has everything that the figure depends on
given_up           12         4       12  bound      the true figure lies between the two
bytes            9120      9400     9400  inferred   an estimate: what it rests on is in the log only in part
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from sharelens.measures.ranges.steps import Flags, Ints
from state_model.columnar.keys import FULL_PLACE_KEY
from state_model.columnar.schemas import COMPLETENESS, LOG_POSITION, SHARE_PARTITION, column

CERTAINTIES = ("exact", "bound", "inferred")
EXACT, BOUND, INFERRED = range(3)

WHAT_IF = pa.schema(
    [
        *LOG_POSITION[:2],
        *SHARE_PARTITION,
        column("figure", pa.string(), "name of the figure", nullable=False),
        column("in_history", pa.int64(), "the figure in the history; null = the log does not have it"),
        column("at_least", pa.int64(), "smallest value under the other setting", nullable=False),
        column("at_most", pa.int64(), "largest value under the other setting", nullable=False),
        column(
            "certainty",
            pa.string(),
            "exact (both values are the figure), bound (the figure lies between them), or inferred (an estimate, from "
            "what the log shows only in part: the figure may lie outside)",
            nullable=False,
        ),
        *COMPLETENESS,
    ]
)
"""One row a share partition and figure."""


def figure_rows(
    places: pa.Table,
    marks: pa.Table,
    figure: str,
    in_history: Ints | pa.Array,
    at_least: Ints,
    at_most: Ints,
    certainty: Ints,
) -> pa.Table:
    """WHAT_IF rows of a figure; all arguments have one entry a place.

    `places`: FULL_PLACE_KEY. `marks`: their completeness and its reason. `certainty`: EXACT, BOUND or INFERRED.
    """
    columns = {name: places.column(name) for name in FULL_PLACE_KEY}
    columns |= {
        "figure": pa.array(np.full(places.num_rows, figure, object), pa.string()),
        "in_history": in_history if isinstance(in_history, pa.Array) else pa.array(in_history),
        "at_least": pa.array(at_least),
        "at_most": pa.array(at_most),
        "certainty": pa.array(CERTAINTIES, pa.string()).take(pa.array(certainty)),
    }
    columns |= {name: marks.column(name) for name in marks.column_names}
    return pa.table({name: columns[name] for name in WHAT_IF.names}).cast(WHAT_IF)


def certainty_of(at_least: Ints, at_most: Ints, is_inferred: Flags) -> Ints:
    """EXACT where both bounds meet, else BOUND; INFERRED where the flag says so."""
    return np.where(is_inferred, INFERRED, np.where(at_least == at_most, EXACT, BOUND))


def together_in_order(tables: Sequence[pa.Table], schema: pa.Schema = WHAT_IF) -> pa.Table:
    """The rows of several figures by share partition; figures keep their order."""
    rows = pa.concat_tables([schema.empty_table(), *tables])
    order = [(name, "ascending") for name in FULL_PLACE_KEY]
    numbered = rows.append_column("row", pa.array(np.arange(rows.num_rows)))
    return numbered.sort_by([*order, ("row", "ascending")]).drop_columns(["row"])
