"""Numbers, times and names as a page writes them."""

from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from typing import TypeVar

from sharelens.output import name_cell
from sharelens.output.terminal import cut_in_the_middle
from sharelens.parameters.times import EPOCH, FIRST_MS, LAST_MS, time_text

UNKNOWN = "–"
LONGEST_NAME = 48
LISTED = 10
T = TypeVar("T")


def number(value: int | None) -> str:
    """With thousands separators; a dash where it is unknown."""
    return UNKNOWN if value is None else f"{value:,}"


def counted(count: int, singular: str, plural: str | None = None) -> str:
    """`1 record`, `1,203 records`."""
    return f"{count:,} {singular if count == 1 else plural or singular + 's'}"


def moment(epoch_ms: int | None) -> str:
    """`2026-11-21 03:12:05` in UTC; a dash for an unknown time, the bare number outside the years 1 to 9999."""
    if epoch_ms is None or epoch_ms <= 0:
        return UNKNOWN
    if not FIRST_MS <= epoch_ms <= LAST_MS:
        return time_text(epoch_ms)
    return (EPOCH + timedelta(milliseconds=epoch_ms)).strftime("%Y-%m-%d %H:%M:%S")


def clock(epoch_ms: int | None, now_ms: int) -> str:
    """The time alone where it is on the day of `now_ms`, else with the date."""
    text, now = moment(epoch_ms), moment(now_ms)
    return text[11:] if len(text) == len(now) and text[:11] == now[:11] else text


def offsets(first: int, last: int | None) -> str:
    """`4,711` or `4,711 – 4,720`."""
    return number(first) if last is None or last == first else f"{number(first)} – {number(last)}"


def name(text: object) -> str:
    """A name as one word, everything that is not a printable letter escaped."""
    return name_cell(text)


def short(text: object, max_length: int = LONGEST_NAME) -> str:
    """A name in at most so many columns: the middle of a long one is left out."""
    return cut_in_the_middle(name(text), max_length)


def topic_name(topic: object, topic_id: object) -> str:
    """The name of a topic, its id where the name is unknown."""
    return name(topic if topic is not None else topic_id)


def place(topic: object, topic_id: object, partition: int) -> str:
    """`payments-3`: a topic partition as Kafka writes it."""
    return f"{topic_name(topic, topic_id)}-{partition}"


def listed(names: Iterable[str]) -> str:
    """At most ten names, and how many more there are."""
    in_order = list(names)
    if not in_order:
        return "none"
    return first_of(in_order, name_cell)


def first_of(values: Sequence[T], text: Callable[[T], str], count: int = LISTED) -> str:
    """The texts of at most `count` values, and how many more there are; empty without values."""
    omitted = f" and {len(values) - count} more" if len(values) > count else ""
    return ", ".join(map(text, values[:count])) + omitted
