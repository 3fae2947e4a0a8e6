"""The request of a command line as plain values: its source and its cut."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sharelens.parameters.filters import parse_at_offset
from state_model.errors import UsageError

if TYPE_CHECKING:  # the command line reads this module before it knows its question: no import that takes time
    from sharelens.kafka_log.dead_letter_records import DeadLetterTopics
    from sharelens.live.cluster import LiveCluster
    from sharelens.measures.settings.observations import Settings
    from sharelens.settings.files import SettingsFiles

DEFAULT_MAX_BYTES = 2 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Source of the answer: a lake, log directories (at most `max_bytes` of state log), or a running cluster (`live`).

    `named_dirs`: `log_dirs` as the command line names them, archives and folders of them; empty where nobody did.
    `settings_files`: the files of settings that the command line names; None: none. `needs_state_log`: log directories
    without `__share_group_state` are an error; a question about groups alone can do without. `takes_group_log`:
    `__consumer_offsets` alone will do. `sets_clusters_apart`: log directories of other clusters than that of the state
    log are left out, not refused.
    """

    lake: str | None = None
    log_dirs: tuple[str, ...] = ()
    named_dirs: tuple[str, ...] = ()
    cluster_id: str | None = None
    include_uncommitted: bool = False
    include_deleted: bool = False
    topic_names: str | None = None
    max_bytes: int = DEFAULT_MAX_BYTES
    dlq_topics: tuple[str, ...] = ()
    dlq_prefix: str | None = None
    settings_files: "SettingsFiles | None" = None
    needs_state_log: bool = True
    takes_group_log: bool = False
    sets_clusters_apart: bool = False
    live: "LiveCluster | None" = None

    @property
    def settings(self) -> "Settings":
        """What the files of settings say."""
        from sharelens.measures.settings.observations import UNSET

        return UNSET if self.settings_files is None else self.settings_files.settings()


@dataclass(frozen=True, slots=True, kw_only=True)
class CutChoice:
    """Cut of the state log: its end (neither field), a log time, or offsets of state partitions.

    `now_ms`: until when the evidence was read, where its files do not say it (--now).
    """

    as_of_ms: int | None = None
    at_offsets: dict[int, int] | None = None
    now_ms: int | None = None


def cut_choice(*, at_offset: Sequence[str] = (), as_of_ms: int | None = None, now_ms: int | None = None) -> CutChoice:
    """The cut of --as-of or --at-offset (texts P:O[,P:O]), and --now.

    Raises:
        UsageError: both, or a text that is no place in a state log.
    """
    if as_of_ms is not None and at_offset:
        raise UsageError("--as-of and --at-offset exclude each other; give one of them")
    at_offsets = parse_at_offset(",".join(at_offset)) if at_offset else None
    return CutChoice(as_of_ms=as_of_ms, at_offsets=at_offsets, now_ms=now_ms)


def limiting_topics(dlq_topic: Sequence[str], dlq_prefix: str | None) -> "DeadLetterTopics | None":
    """The dead-letter topics to which options limit an answer; None: all that are searched. Errors as below."""
    topics = dead_letter_topics(dlq_topic, dlq_prefix)
    return topics if dlq_topic or dlq_prefix is not None else None


def dead_letter_topics(names: Iterable[str], prefix: str | None) -> "DeadLetterTopics":
    """Topics whose records are read as dead letters; no prefix: Kafka's default.

    Raises:
        UsageError: an empty prefix, which would mean every topic, or an internal topic.
    """
    from sharelens.kafka_log.dead_letter_records import DEFAULT_PREFIX, INTERNAL, DeadLetterTopics

    names = frozenset(names)
    if prefix == "":
        raise UsageError("--dlq-prefix: an empty prefix means every topic; name the topics with --dlq-topic NAME")
    for name in sorted(names):
        if name.startswith(INTERNAL) or not name:
            raise UsageError(
                f"--dlq-topic: {name!r} can hold no dead letters; name a topic that does not begin with __"
            )
    return DeadLetterTopics(names=names, prefix=DEFAULT_PREFIX if prefix is None else prefix)
