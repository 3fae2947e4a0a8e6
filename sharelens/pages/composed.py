"""Pages that put several answers together: which questions each asks."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sharelens.groups.schemas import CONSUMER, STREAMS
from sharelens.output.wording import name
from sharelens.pages.address import MOMENTS, Address, Options, options_of, path
from sharelens.parameters.times import time_text
from sharelens.question_table.table import QUESTIONS, question_of
from state_model.errors import UsageError

RECORDS_SHOWN = "50"
"""Records of the state log on the page of a share partition."""
HOUR_MS = 3_600_000
LAST_HOUR = (("from", "end-1h"),)
"""Of a page without a moment: what is drawn or listed over time."""
NEIGHBOURS = 20
"""Record offsets to each side of a record on its page."""
HEADINGS_OF: Mapping[str, Sequence[str]] = {
    "group": ("GROUP",),
    "topic": ("TOPIC",),
    "partition": ("PARTITION", "TOPIC-PARTITION"),
    "offset": ("RECORD-OFFSET",),
}
"""By the parameter that a page sets the headings of columns that have its value alone."""
MENU: Mapping[str, tuple[str, str]] = {
    "/": ("Overview", "overview"),
    "/groups": ("Groups", "groups"),
    "/dead-letters": ("Dead letters", "dlq"),
    "/audit": ("Audit", "audit"),
    "/evidence": ("Evidence", "status"),
    "/tables": ("Tables", ""),
    "/ask": ("All questions", ""),
}
"""Address -> title, and the question of a page that shows one alone and takes all of its parameters."""
REFRESHED = frozenset({"/", "/groups"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A part of a page: a title and the question that it shows, without columns that the page's title says.

    `unbounded`: the moments of the page that the question does not take.
    """

    title: str
    address: Address
    without: frozenset[str] = frozenset()
    unbounded: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The questions of a page. `way`: (words, address) of the pages above it; `further`: of others."""

    title: str
    sections: Sequence[Section]
    way: Sequence[tuple[str, str]] = ()
    further: Sequence[tuple[str, str]] = ()


def group_page(group: str, options: Options, group_type: str) -> Plan:
    """A group of a type: its members, epochs, lag, share partitions, and what happened."""
    named = (("group", group), *_moments(options))
    titles = {
        "overview": "What is wrong now",
        "describe": "Offsets and lag",
        "stalled": "Stalls",
        "dlq": "Dead letters",
        "rebalances": "Epochs and members over time",
    }
    chosen = ["overview", "describe", "rebalances"] if group_type in (CONSUMER, STREAMS) else [*titles]
    judged = (*named, ("all_groups", "on")) if group_type == CONSUMER else named  # other questions take no such option
    sections = [_section(titles[question], question, judged) for question in chosen]
    offsets = sections.index(_section(titles["describe"], "describe", named))
    sections.insert(offsets + 1, _section("Members", "describe", (*named, ("members", "on"))))
    if group_type == STREAMS:
        sections.insert(offsets + 2, _section("Tasks", "describe", (*named, ("tasks", "on"))))
    elif group_type != CONSUMER:
        sections.insert(offsets + 1, _over_time("Lag", "lag", (*_up_to_moment(named), ("every", "auto"))))
    sections.insert(offsets, _section("State", "describe", (*named, ("state", "on"))))
    sections.append(_over_time("What happened", "timeline", named))
    return Plan(title=f"Group {name(group)}", sections=sections, way=(("Groups", "/groups"),))


def share_partition_page(group: str, topic: str, partition: str, options: Options) -> Plan:
    """A share partition: its state, lag, stalls, records delivered again or archived, and its state records."""
    named = (("group", group), ("topic", topic), ("partition", partition), *_moments(options))
    titles = {
        "state": "State",
        "lag": "Lag",
        "stalled": "Stalls",
        "redelivered": "Delivered more than once",
        "poison": "Archived records",
        "dlq": "Dead letters",
        "life": "Creations, resets and deletions",
    }
    sections = [_section(title, question, named) for question, title in titles.items()]
    sections.append(_over_time("What happened", "timeline", named))
    sections.append(_section("Records of the state log", "records", (*named, ("limit", RECORDS_SHOWN))))
    return Plan(
        title=f"{name(topic)}-{partition}",
        sections=sections,
        way=(("Groups", "/groups"), (name(group), path("groups", group))),
    )


def record_page(group: str, topic: str, partition: str, offset: str, options: Options) -> Plan:
    """A record: its life with the state records that prove it, its dead letter, and its neighbours."""
    place = (("group", group), ("topic", topic), ("partition", partition))
    share_partition = path("groups", group, topic, partition)
    number = int(offset) if re.fullmatch(r"[0-9]{1,19}", offset) else None
    neighbours = () if number is None else tuple(each for each in (number - 1, number + 1) if each >= 0)
    trace = (*place, ("offset", offset), ("members", "on"), *_moments(options))
    sections = [_section("The life of the record", "trace", trace)]
    if number is not None:
        window = (("from_offset", str(max(0, number - NEIGHBOURS))), ("to_offset", str(number + NEIGHBOURS + 1)))
        sections.append(_section("Records around it", "account", (*place, *window, *_moments(options))))
    return Plan(
        title=f"Record {offset} of {name(topic)}-{partition}",
        sections=sections,
        way=(
            ("Groups", "/groups"),
            (name(group), path("groups", group)),
            (f"{name(topic)}-{partition}", share_partition),
        ),
        further=tuple((f"Record {each}", f"{share_partition}/{each}") for each in neighbours),
    )


def before_page(group: str, moment: str) -> Plan:
    """What changed in the hour before a moment: members, epochs, resets, settings, leaders, gaps, in one list.

    Raises:
        UsageError: the moment is not a number of milliseconds.
    """
    if not re.fullmatch(r"[0-9]{1,15}", moment):
        raise UsageError(f"a moment is a number of milliseconds since 1970, not {moment!r}")
    until_ms = int(moment)
    span = (("from", str(max(0, until_ms - HOUR_MS))), ("to", str(until_ms + 1)))
    named = (("group", group), *span)
    return Plan(
        title=f"The hour before {time_text(until_ms)}",
        sections=[_section("What changed", "timeline", named)],
        way=(("Groups", "/groups"), (name(group), path("groups", group))),
    )


def question_page(address: Address, title: str = "") -> Plan:
    """A question alone."""
    words = title or question_of(address.question).summary.rstrip(".")
    return Plan(
        title=words, sections=[Section(title="", address=address)], way=() if title else (("All questions", "/ask"),)
    )


def all_questions() -> dict[str, list[tuple[str, str, str]]]:
    """By heading (name, summary, address) of each question."""
    return {
        heading: [(question.name, question.summary, Address(question.name).url) for question in questions]
        for heading, questions in QUESTIONS.items()
    }


def _section(title: str, question: str, options: Options) -> Section:
    without = frozenset(heading for key, _ in options for heading in HEADINGS_OF.get(key, ()))
    address = Address(question, options_of(question, options))
    unbounded = tuple(key for key, text in options if key in MOMENTS and (key, text) not in address.options)
    return Section(title=title, address=address, without=without, unbounded=unbounded)


def _over_time(title: str, question: str, options: Options) -> Section:
    """What happened in a time: the last hour of the evidence, if the page has no moment."""
    if any(key in MOMENTS for key, _ in options):
        return _section(title, question, options)
    return _section(f"{title} in the last hour", question, (*options, *LAST_HOUR))


def _up_to_moment(options: Options) -> Options:
    """The options with the end of a time in the place of a moment, which a question about a time does not take."""
    ends = tuple(("to", text) for key, text in options if key == "as_of" and "to" not in dict(options))
    return (*(option for option in options if option[0] != "as_of"), *ends)


def _moments(options: Options) -> Options:
    return tuple((key, text) for key, text in options if key in MOMENTS)
