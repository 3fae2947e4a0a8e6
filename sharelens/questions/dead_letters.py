"""The dead letters of one record."""

import pyarrow as pa

from sharelens.questions.evidence import Evidence
from sharelens.questions.letter_evidence import Letters


def letters_of_record(evidence: Evidence, group_id: str, topic_id: str, partition: int, offset: int) -> pa.Table:
    """DLQ_RECORD rows of one record of a group, as they lie in their topics; none where no dead letter is held.

    A dead letter names the topic, not its id: one of an earlier topic of the same name may be among them.
    """
    topics = frozenset({topic_id, evidence.names([topic_id]).get(topic_id, topic_id)})
    letters = Letters(groups=frozenset({group_id}), topics=topics, partitions=frozenset({partition}), offset=offset)
    return evidence.dead_letters(letters)
