"""Archived records, by state log, headers and settings: from the gold table, or from the histories."""

from collections.abc import Iterator, Mapping
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from sharelens.measures import poison as measure
from sharelens.measures.dlq.causes import without_letter_causes
from sharelens.measures.settings.over_time import GroupSettings
from sharelens.measures.topics.extents import TopicPartition
from sharelens.measures.topics.headers import NoRecords
from sharelens.questions.answers.measured import Scope, kept_stream, stream_of
from sharelens.tables.reading import read_topic_batches


def given_up_stream(scope: Scope, settings: GroupSettings, *, near_limit: bool = False) -> Iterator[pa.Table]:
    """POISON_RECORD rows without causes from dead letters, in bounded tables, in any order."""
    kept_rows = stored_given_up(scope, settings, near_limit=near_limit)
    if kept_rows is None:
        return stream_of(scope, lambda inputs: measure.rows(inputs, near_limit=near_limit), settings)
    return (without_letter_causes(rows, partial(_headers, scope)) for rows in kept_rows)


def stored_given_up(
    scope: Scope, settings: GroupSettings, *, near_limit: bool = False, where: pc.Expression | None = None
) -> Iterator[pa.Table] | None:
    """The rows that a run stored, with the causes of their dead letters; None where they don't answer the question."""
    is_answered = settings == scope.evidence.settings.groups and not near_limit
    return kept_stream(scope, "poison_record", where=where) if is_answered else None


def _headers(scope: Scope, begins: Mapping[TopicPartition, int]) -> NoRecords:
    return NoRecords.of(read_topic_batches(scope.evidence, begins))
