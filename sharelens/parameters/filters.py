"""Filters of a command line: `--group`, `--topic NAME|ID[:0,1]`, `--partition`, `--at-offset`."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from sharelens.shell import shell_word
from state_model.errors import UsageError

TOPIC_ID = re.compile(r"[A-Za-z0-9_-]{22}")
PARTITION = re.compile(r"\d{1,10}")
LAST_PARTITION = 2**31 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicChoice:
    """A topic as typed (name or id) and the partitions named with it; None means all of them."""

    text: str
    partitions: frozenset[int] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyFilter:
    """Groups, topics and partitions to keep; an empty field keeps all."""

    groups: frozenset[str] = frozenset()
    topics: tuple[TopicChoice, ...] = ()
    partitions: frozenset[int] = frozenset()

    @property
    def keeps_all(self) -> bool:
        """The filter keeps every share partition."""
        return not (self.groups or self.topics or self.partitions)


def parse_partition(text: str, *, option: str, example: str | None = None) -> int:
    """A partition number (0 to 2^31 - 1); UsageError otherwise, with the line to type."""
    if not PARTITION.fullmatch(text) or int(text) > LAST_PARTITION:
        raise UsageError(
            f"{option}: {text!r} is no partition; type a number from 0 on, as in {example or option + ' 0'}"
        )
    return int(text)


def parse_topic(text: str) -> TopicChoice:
    """`orders`, `orders:0,2` or a topic id in the place of the name, as Kafka's own tools take it."""
    name, colon, numbers = text.partition(":")
    if not name:
        raise UsageError(f"--topic: {text!r} names no topic; type --topic NAME, --topic NAME:0,1 or --topic ID")
    if not colon:
        return TopicChoice(text=name)
    example = f"--topic {shell_word(name)}:0,1"
    partitions = (
        parse_partition(number.strip(), option=f"--topic {text}", example=example) for number in numbers.split(",")
    )
    return TopicChoice(text=name, partitions=frozenset(partitions))


def parse_key_filter(groups: Iterable[str], topics: Iterable[str], partitions: Iterable[int]) -> KeyFilter:
    """The filter of a command line."""
    return KeyFilter(
        groups=frozenset(groups),
        topics=tuple(parse_topic(topic) for topic in topics),
        partitions=frozenset(partitions),
    )


def parse_topic_filter(topic: str, partitions: Iterable[int]) -> KeyFilter:
    """The filter of partitions of one topic, of all groups."""
    return parse_key_filter([], [topic], partitions)


def parse_partition_filter(group: str, topic: str, partition: int | None) -> KeyFilter:
    """The filter of one share partition: `--topic NAME --partition N` or `--topic NAME:N`; UsageError without it."""
    if partition is not None:
        return parse_key_filter([group], [topic], [partition])
    choice = parse_topic(topic)
    if choice.partitions is None or len(choice.partitions) != 1:
        raise UsageError(
            f"--topic: {topic!r} does not name one partition; add --partition N, or type "
            f"--topic {shell_word(choice.text)}:N"
        )
    return KeyFilter(groups=frozenset([group]), topics=(choice,))


def parse_at_offset(text: str) -> dict[int, int]:
    """Last log offset of each state partition in `P:O[,P:O...]`, inclusive; -1: none of its records."""
    cuts: dict[int, int] = {}
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d{1,10}):(-1|\d{1,19})\s*", part)
        if match is None or int(match[1]) > LAST_PARTITION or int(match[2]) >= 2**63:
            raise UsageError(
                f"--at-offset: {part!r} is not STATE-PARTITION:OFFSET; type --at-offset 0:1234,3:77 (-1 = none)"
            )
        if int(match[1]) in cuts:
            raise UsageError(f"--at-offset: state partition {match[1]} is named twice; name it once")
        cuts[int(match[1])] = int(match[2])
    return cuts
