"""The records that groups gave up, as far as state log, headers and settings tell: by a run, or from the histories."""

import pyarrow as pa

from measures import poison as measure
from measures.inputs import NO_SETTINGS
from measures.settings import GroupSettings
from sharelens.questions.measured import Scope, kept_rows, rows_of


def given_up(scope: Scope, settings: GroupSettings, *, near_limit: bool = False) -> pa.Table:
    """POISON_RECORD rows by share partition, life and offset, without what dead letters tell."""
    # A run knows no settings.
    rows = kept_rows(scope, "poison_record") if settings == NO_SETTINGS and not near_limit else None
    if rows is None:
        rows = rows_of(scope, lambda inputs: measure.rows(inputs, near_limit=near_limit), settings)
    return rows.sort_by(measure.ORDER)
