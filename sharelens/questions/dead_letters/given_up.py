"""Archived records, by state log, headers and settings: from the gold table, or from the histories."""

from collections.abc import Iterator

import pyarrow as pa

from sharelens.measures import poison as measure
from sharelens.measures.settings.over_time import GroupSettings
from sharelens.questions.answers.measured import Scope, kept_stream, stream_of
from sharelens.questions.answers.streaming import rows_of_stream


def given_up(scope: Scope, settings: GroupSettings, *, near_limit: bool = False) -> pa.Table:
    """POISON_RECORD rows by share partition, life and offset, without causes from dead letters."""
    return rows_of_stream(given_up_stream(scope, settings, near_limit=near_limit), measure.ORDER)


def given_up_stream(scope: Scope, settings: GroupSettings, *, near_limit: bool = False) -> Iterator[pa.Table]:
    """The rows of `given_up` in bounded tables, in any order."""
    is_answered = settings == scope.evidence.settings.groups and not near_limit
    rows = kept_stream(scope, "poison_record") if is_answered else None
    if rows is None:
        rows = stream_of(scope, lambda inputs: measure.rows(inputs, near_limit=near_limit), settings)
    return rows
