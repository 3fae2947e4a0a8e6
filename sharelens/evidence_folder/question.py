"""The question of an evidence folder: together with the sources it determines the content."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sharelens.evidence_folder.errors import ManifestError
from sharelens.kafka_log.dead_letter_records import DeadLetterTopics
from sharelens.measures.settings.over_time import (
    DEAD_LETTER_TOPIC,
    GROUP_NAMES,
    GroupSettings,
    Setting,
    over_time,
)
from sharelens.source.request import dead_letter_topics
from state_model.errors import UsageError

LONGEST_CASE = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One group and one window: log times from `from_ms` up to, not including, `to_ms` (epoch milliseconds).

    `topics`: as typed (name, id, or either with partitions); none means all. `settings`: those of the group by name,
    the newest ones; `earlier_settings`: those before, each until a time (epoch milliseconds), the first ones first.
    `dlq_topics`, `dlq_prefix`: topics searched for dead letters, besides Kafka's default.
    """

    case_id: str
    group_id: str
    from_ms: int
    to_ms: int
    topics: tuple[str, ...] = ()
    settings: Mapping[str, Setting] = field(default_factory=dict)
    earlier_settings: tuple[tuple[int, Mapping[str, Setting]], ...] = ()
    dlq_topics: tuple[str, ...] = ()
    dlq_prefix: str | None = None

    def letter_topics(self) -> DeadLetterTopics:
        """The topics that are searched for dead letters."""
        return dead_letter_topics(self.dlq_topics, self.dlq_prefix)

    def group_settings(self) -> GroupSettings:
        """The settings as the measures take them."""
        begins = [0, *(until_ms for until_ms, _ in self.earlier_settings)]
        periods = [*(settings for _, settings in self.earlier_settings), self.settings]
        return over_time(
            {begin: {self.group_id: dict(settings)} for begin, settings in zip(begins, periods, strict=True)}, {}
        )

    def as_json(self) -> dict[str, Any]:
        """Values of JSON, for the manifest."""
        document: dict[str, Any] = {
            "case_id": self.case_id,
            "group_id": self.group_id,
            "topics": list(self.topics),
            "dlq_topics": list(self.dlq_topics),
            "dlq_prefix": self.dlq_prefix,
            "from_ms": self.from_ms,
            "to_ms": self.to_ms,
            "settings": _as_json(self.settings),
        }
        if self.earlier_settings:
            document["earlier_settings"] = [
                {"until_ms": until_ms, "settings": _as_json(settings)} for until_ms, settings in self.earlier_settings
            ]
        return document


def ask(
    *,
    case_id: str,
    group_id: str,
    from_ms: int,
    to_ms: int,
    topics: tuple[str, ...],
    settings: GroupSettings,
    dlq_topics: tuple[str, ...] = (),
    dlq_prefix: str | None = None,
) -> Question:
    """The question of a command line.

    Raises:
        UsageError: an empty window, or a case id that is no id.
    """
    if to_ms <= from_ms:
        raise UsageError(
            "evidence: --to does not lie after --from; the window is from --from up to, not including, --to"
        )
    if not case_id.strip() or len(case_id) > LONGEST_CASE or not case_id.isprintable():
        raise UsageError(f"evidence: --case: give an id of 1 to {LONGEST_CASE} printable characters")
    timeline = settings.timeline(group_id, GROUP_NAMES)
    periods = [dict(zip(GROUP_NAMES, values, strict=True)) for _, values in timeline]
    configured = {period[DEAD_LETTER_TOPIC].value for period in periods} - {None, ""}
    ends = [begin_ms for begin_ms, _ in timeline[1:]]
    return Question(
        case_id=case_id,
        group_id=group_id,
        from_ms=from_ms,
        to_ms=to_ms,
        topics=tuple(sorted(topics)),
        settings=periods[-1],
        earlier_settings=tuple(zip(ends, periods[:-1], strict=True)),
        dlq_topics=tuple(sorted({*dlq_topics, *filter(None, configured)})),
        dlq_prefix=dlq_prefix,
    )


def from_json(document: object) -> Question:
    """The question of a manifest.

    Raises:
        ManifestError: it is none.
    """
    match document:
        case {
            "case_id": str(case_id),
            "group_id": str(group_id),
            "topics": list(topics),
            "dlq_topics": list(dlq_topics),
            "dlq_prefix": str() | None as dlq_prefix,
            "from_ms": int(from_ms),
            "to_ms": int(to_ms),
            "settings": dict(settings),
            **more,
        } if all(isinstance(topic, str) for topic in (*topics, *dlq_topics)) and from_ms < to_ms:
            return Question(
                case_id=case_id,
                group_id=group_id,
                from_ms=from_ms,
                to_ms=to_ms,
                topics=tuple(topics),
                settings=_settings(settings),
                earlier_settings=_earlier_settings(more.get("earlier_settings", [])),
                dlq_topics=tuple(dlq_topics),
                dlq_prefix=dlq_prefix,
            )
        case _:
            raise ManifestError(
                "the manifest's question lacks a group, a window or settings, so sharelens did not write it"
            )


def _as_json(settings: Mapping[str, Setting]) -> dict[str, Any]:
    return {name: {"value": setting.value, "origin": setting.origin} for name, setting in sorted(settings.items())}


def _settings(document: Mapping[Any, object]) -> dict[str, Setting]:
    return {str(name): _setting(value) for name, value in document.items()}


def _earlier_settings(entries: object) -> tuple[tuple[int, Mapping[str, Setting]], ...]:
    """The settings before the newest ones; their ends ascend."""
    periods: list[tuple[int, Mapping[str, Setting]]] = []
    last_ms = 0
    for entry in entries if isinstance(entries, list) else [entries]:
        match entry:
            case {"until_ms": int(until_ms), "settings": dict(settings)} if until_ms > last_ms:
                periods.append((until_ms, _settings(settings)))
                last_ms = until_ms
            case _:
                raise ManifestError(
                    "the earlier settings in the manifest's question are no list of times and settings, so sharelens "
                    "did not write it"
                )
    return tuple(periods)


def _setting(value: object) -> Setting:
    match value:
        case {"value": str() | None as text, "origin": str() | None as origin}:
            return Setting(value=text, origin=origin)
        case _:
            raise ManifestError(
                "a setting in the manifest's question has no value and origin, so sharelens did not write it"
            )
