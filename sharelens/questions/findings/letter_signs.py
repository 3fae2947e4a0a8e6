"""Dead letters that are missing, and those whose topic is not in the evidence."""

import pyarrow as pa
import pyarrow.compute as pc

from sharelens.measures.dlq.schemas import DLQ_RECONCILIATION, MISSING, UNKNOWN
from sharelens.measures.schemas import LAG
from sharelens.measures.settings.over_time import DEAD_LETTER_TOPIC, GroupSettings
from sharelens.questions.answers.measured import Scope, is_stored
from sharelens.questions.answers.streaming import by_share_partition
from sharelens.questions.dead_letters.reconciled import JUDGED, TABLE, judged_stream
from sharelens.source.request import CutChoice
from sharelens.tables.reading import (
    read_dead_letter_partitions,
)
from state_model.columnar.keys import SHARE_PARTITION_KEY

JUDGED_ROWS = pa.schema([DLQ_RECONCILIATION.field(name) for name in JUDGED])
LETTERS = pa.schema([*(LAG.field(name) for name in SHARE_PARTITION_KEY), pa.field("records", pa.int64())])


def unaccounted_letters(
    scoped: Scope, cut: CutChoice, settings: GroupSettings, given_up: pa.Table
) -> tuple[pa.Table, pa.Table]:
    """LETTERS rows: the records whose dead letter is missing, and those of which its topic is not in the evidence.

    A dead letter is due where a group's settings name a topic for them, or where a record was ARCHIVING.
    """
    no_letters = LETTERS.empty_table()
    if scoped.places.num_rows == 0:
        return no_letters, no_letters
    topics = _letter_topics(scoped, settings)
    searched = set(read_dead_letter_partitions(scoped.evidence).column("dlq_topic").to_pylist())
    was_archiving = given_up.num_rows > given_up.column("archiving_ms").null_count
    if not (is_stored(scoped, TABLE, settings) or topics or searched or was_archiving):
        return no_letters, no_letters
    statuses = pa.array([MISSING, UNKNOWN], pa.string())
    rows = pa.concat_tables(
        [JUDGED_ROWS.empty_table(), *judged_stream(scoped, cut, settings, pc.field("status").isin(statuses))]
    )
    missing = rows.filter(pc.field("status") == MISSING)
    absent = pa.array([group for group, topic in topics.items() if topic not in searched], pa.string())
    is_due = pc.field("group_id").isin(absent)
    if not searched:
        is_due |= pc.field("archiving_ms").is_valid()
    unjudged = rows.filter((pc.field("status") == UNKNOWN) & is_due)
    return tuple(by_share_partition("dead_letters_missing", [each]).cast(LETTERS) for each in (missing, unjudged))


def _letter_topics(scoped: Scope, settings: GroupSettings) -> dict[str, str]:
    """The topic for dead letters of each group that has one."""
    groups = scoped.places.column("group_id").unique().to_pylist()
    topics = {group: settings.of(group, DEAD_LETTER_TOPIC).value for group in groups}
    return {group: topic for group, topic in topics.items() if topic}
