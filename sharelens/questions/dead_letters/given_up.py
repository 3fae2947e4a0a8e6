"""Archived records, by state log, headers and settings: from the gold table, or from the histories."""

from collections.abc import Iterator, Mapping
from functools import partial

import pyarrow as pa

from sharelens.measures import poison as measure
from sharelens.measures.dlq.causes import without_letter_causes
from sharelens.measures.settings.over_time import GroupSettings
from sharelens.measures.topics.extents import TopicPartition
from sharelens.measures.topics.headers import NoRecords
from sharelens.questions.answers.measured import Scope, kept_stream, stream_of
from sharelens.tables.reading import read_topic_batches


def given_up_stream(scope: Scope, settings: GroupSettings, *, near_limit: bool = False) -> Iterator[pa.Table]:
    """POISON_RECORD rows without causes from dead letters, in bounded tables, in any order."""
    is_answered = settings == scope.evidence.settings.groups and not near_limit
    kept_rows = kept_stream(scope, "poison_record") if is_answered else None
    if kept_rows is None:
        return stream_of(scope, lambda inputs: measure.rows(inputs, near_limit=near_limit), settings)
    return (without_letter_causes(rows, partial(_headers, scope)) for rows in kept_rows)


def _headers(scope: Scope, begins: Mapping[TopicPartition, int]) -> NoRecords:
    return NoRecords.of(read_topic_batches(scope.evidence, begins))
