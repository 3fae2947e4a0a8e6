"""The records that groups gave up, as far as state log, headers and settings tell: by a run, or from the histories."""

import pyarrow as pa

from measures import poison as measure
from measures.headers import begins_of
from measures.schemas import POISON_RECORD
from measures.settings import GroupSettings
from sharelens.questions import headers
from sharelens.questions.measured import Part, Scope, of_parts


def given_up(asked: Scope, settings: GroupSettings, *, near_limit: bool = False) -> pa.Table:
    """POISON_RECORD rows by share partition, life and offset, without what dead letters tell."""

    def of_part(part: Part) -> pa.Table:
        empty = headers.no_records(asked.evidence, begins_of(part.history))
        ranges, held = empty.ranges(), empty.held()
        return measure.poison(part.history, part.deliveries, ranges, held, settings, near_limit=near_limit)

    # A run knows no settings, and what happened after the cut would be in its rows.
    if asked.cut.whole and settings == GroupSettings() and not near_limit:
        taken = asked.evidence.measured("gold.poison_record", POISON_RECORD, asked.keys)
        if taken is not None:
            return taken.sort_by(measure.ORDER)
    return of_parts(asked, of_part).sort_by(measure.ORDER)
