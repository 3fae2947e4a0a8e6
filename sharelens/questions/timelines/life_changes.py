"""What the timeline lists between two moments about share partitions that differ: their lives and their groups."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from sharelens.evidence.conditions import filter_rows
from sharelens.measures.life import RECREATED, RESET
from sharelens.measures.schemas import EVENTS
from sharelens.parameters.filters import KeyFilter
from sharelens.questions.answers.measured import scope
from sharelens.questions.answers.share_partitions import Key, key_of, rows_of_keys
from sharelens.questions.life import event_rows
from sharelens.questions.timelines.entries import (
    MEMBERSHIP,
    Entry,
    group_entries,
    life_entries,
    timeline_table,
)
from sharelens.questions.traces import vocabulary
from sharelens.source.request import CutChoice
from sharelens.tables.limits import TooMuchError
from sharelens.tables.port import Tables
from sharelens.tables.reading import read_group_records
from sharelens.tables.where import Span

WORD_OF = {EVENTS[RECREATED]: vocabulary.RECREATED, EVENTS[RESET]: vocabulary.RESET}


@dataclass(frozen=True, slots=True, kw_only=True)
class LifeChanges:
    """Entries of the timeline (TIMELINE, in the order of time), and what they mean for each share partition."""

    entries: pa.Table
    warnings: Sequence[str] = ()
    of_share_partition: Mapping[Key, Sequence[Entry]] = field(default_factory=dict)
    of_group: Mapping[str, Sequence[Entry]] = field(default_factory=dict)

    def lives(self) -> pa.Table:
        """The entries without members and group epochs, which come and go every day."""
        return self.entries.filter(pc.invert(pc.is_in(self.entries.column("event"), value_set=pa.array(MEMBERSHIP))))

    def words(self, key: Key) -> list[str]:
        """How new lives of the share partition began, in the vocabulary of meanings, each once."""
        events = (entry["event"] for entry in self.of_share_partition.get(key, ()))
        words = list(dict.fromkeys(WORD_OF[event] for event in events if event in WORD_OF))
        return words or [vocabulary.RESET]


def life_changes(evidence: Tables, keys: Collection[Key], groups: Collection[str], span: Span) -> LifeChanges:
    """The entries of the span about the lives of the share partitions and about the groups.

    `keys`: share partitions whose life may differ: (group, topic id, partition).
    """
    warnings = []
    entries = list(life_entries(_events(evidence, keys, span))) if keys else []
    try:
        entries += group_entries(read_group_records(evidence, frozenset(groups))) if groups else []
    except TooMuchError as error:
        warnings.append(f"members and deletions of groups are left out: {error}")
    table = timeline_table(entries, evidence.names({key[1] for key in keys}), span)
    rows = table.to_pylist()
    return LifeChanges(
        entries=table,
        warnings=warnings,
        of_share_partition=_by_key(row for row in rows if row["topic_id"] is not None),
        of_group={key[0]: of_key for key, of_key in _by_key(row for row in rows if row["topic_id"] is None).items()},
    )


def _by_key(rows: Iterable[Entry]) -> dict[Key, list[Entry]]:
    """The rows of each share partition, in their order; a whole group has no topic and partition."""
    by_key: dict[Key, list[Entry]] = {}
    for row in rows:
        by_key.setdefault(key_of(row), []).append(row)
    return by_key


def _events(evidence: Tables, keys: Collection[Key], span: Span) -> pa.Table:
    """LIFE rows of the share partitions in the span."""
    chosen = sorted(keys)
    scoped = scope(evidence, KeyFilter(groups=frozenset(key[0] for key in chosen)), CutChoice())
    scoped = scoped.only(rows_of_keys(scoped.places, chosen))
    return rows_of_keys(filter_rows(event_rows(scoped), span.expression()), chosen)
