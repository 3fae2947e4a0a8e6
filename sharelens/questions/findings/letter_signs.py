"""Dead letters that are missing, and those whose topic is not in the evidence."""

import pyarrow as pa
import pyarrow.compute as pc

from sharelens.measures.dlq.schemas import DLQ_RECONCILIATION, MISSING, UNKNOWN
from sharelens.measures.figures import COUNT, counted
from sharelens.measures.schemas import LAG
from sharelens.measures.settings.over_time import DEAD_LETTER_TOPIC, GroupSettings
from sharelens.questions.answers.measured import Scope, is_stored
from sharelens.questions.answers.streaming import Sums
from sharelens.questions.dead_letters.reconciled import TABLE, judged_stream
from sharelens.source.request import CutChoice
from sharelens.tables.reading import (
    read_dead_letter_partitions,
)
from state_model.columnar.keys import SHARE_PARTITION_KEY

LETTERS = pa.schema(
    [
        *(LAG.field(name) for name in SHARE_PARTITION_KEY),
        DLQ_RECONCILIATION.field("reason"),
        pa.field("records", pa.int64()),
    ]
)


def unaccounted_letters(
    scoped: Scope, cut: CutChoice, settings: GroupSettings, given_up: pa.Table
) -> tuple[pa.Table, pa.Table]:
    """LETTERS rows: the records whose dead letter is missing, and those of which that can't be judged.

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
    sums = {
        name: Sums([*SHARE_PARTITION_KEY, "reason"], {COUNT: "sum"})
        for name in ("dead_letters_missing", "dead_letters_unjudged")
    }
    statuses = pa.array([MISSING, UNKNOWN], pa.string())
    for rows in judged_stream(scoped, cut, settings, pc.field("status").isin(statuses)):
        for name, of_name in sums.items():
            of_name.add(counted(name, rows))
    missing, unjudged = (of_name.table().cast(LETTERS) for of_name in sums.values())
    return missing, unjudged


def _letter_topics(scoped: Scope, settings: GroupSettings) -> dict[str, str]:
    """The topic for dead letters of each group that has one."""
    groups = scoped.places.column("group_id").unique().to_pylist()
    topics = {group: settings.of(group, DEAD_LETTER_TOPIC).value for group in groups}
    return {group: topic for group, topic in topics.items() if topic}
