"""Findings about the group of a row, and the words that they share."""

from itertools import chain

from sharelens.findings.finding import Finding, Row
from sharelens.findings.rule import Need
from sharelens.findings.signs import Signs
from sharelens.output.wording import counted, number, place
from sharelens.tables.missing import MissingEvidence
from state_model.java import partition_for_group
from state_model.topics import OFFSETS_TOPIC, STATE_TOPIC

OFFSETS_PARTITIONS = 50
"""Kafka's default of offsets.topic.num.partitions; it can't be changed later without losing groups."""
PARTITIONS_NAMED = 3


def about_group(
    signs: Signs,
    row: Row,
    *,
    severity: str,
    kind: str,
    text: str,
    question: str,
    options: tuple[str, ...] = (),
    remedy: str | None = None,
) -> Finding:
    """A finding about the group of a row, whose share partition is the worst one."""
    topic_id = row.get("topic_id")
    return Finding(
        severity=severity,
        kind=kind,
        text=text,
        question=question,
        options=(f"--group={row['group_id']}", *options),
        group_id=row["group_id"],
        topic_id=topic_id,
        topic=None if topic_id is None else signs.names.get(topic_id),
        partition=row.get("partition"),
        share_partitions=row.get("share_partitions", 0),
        size=row.get("size"),
        since_ms=row.get("since_ms"),
        remedy=remedy,
    )


def offsets_remedy(signs: Signs, group_id: str) -> str:
    """The remedy where the coordinator's log has no record of a group here: the same one for all such groups."""
    numbers: set[int] = set()
    for each in chain((group_id,), signs.groups_without_record):
        numbers.add(partition_for_group(each, OFFSETS_PARTITIONS))
        if len(numbers) > PARTITIONS_NAMED:
            return Need.COORDINATOR_LOG.remedy
    return f"copy {', '.join(f'{OFFSETS_TOPIC}-{number}' for number in sorted(numbers))}"


def states_remedy(missing: MissingEvidence) -> str:
    """The remedy where share partitions lie in state partitions that the evidence lacks."""
    numbers = missing.state_partitions
    if not numbers.items:
        return Need.STATE_LOG.remedy
    further = " and others" if missing.has_others or numbers.count > len(numbers.items) else ""
    return f"copy {', '.join(f'{STATE_TOPIC}-{number}' for number in numbers.items)}{further}"


def share_remedy(signs: Signs, group_id: str) -> str | None:
    """The remedy of a share of all that a group did: None where the state of all its share partitions is here."""
    return states_remedy(signs.missing) if group_id in signs.missing.by_group else None


def where(signs: Signs, row: Row) -> str:
    """The user partition of a row."""
    return place(signs.names.get(row["topic_id"]), row["topic_id"], row["partition"])


def typed_topic(signs: Signs, row: Row) -> str:
    """`payments:3` for --topic; the topic's id where its name is unknown or another topic has it too."""
    topic = signs.names.get(row["topic_id"])
    is_clear = topic is not None and list(signs.names.values()).count(topic) == 1
    return f"{topic if is_clear else row['topic_id']}:{row['partition']}"


def lag_text(row: Row) -> str:
    """A sum of lags, and of how many share partitions."""
    bound = "at least " if row.get("is_lower_bound") else "at most " if row.get("is_upper_bound") else ""
    return f"lag {bound}{number(row['size'])}{spread(row)}"


def spread(row: Row) -> str:
    """Where a sum comes from, if from more than one share partition."""
    return f" in {counted(row['share_partitions'], 'share partition')}" if row["share_partitions"] > 1 else ""


def other_partitions(row: Row) -> str:
    """How many share partitions there are besides the one that the text names."""
    other_count = row["share_partitions"] - 1
    return f", and {counted(other_count, 'more share partition')}" if other_count else ""
