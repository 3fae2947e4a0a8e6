"""Groups and topics of a cluster's logs that the cluster leaves out of its lists, as it does what one may not see."""

from collections.abc import Collection, Iterator

from sharelens.output import name_cell
from sharelens.output.wording import counted

MOST_NAMES = 5
ADD = "kafka-acls.sh --add --allow-principal User:NAME --operation"


class LeftOut:
    """What is left out, each said once. `groups`, `topic_ids`: those that the cluster lists."""

    def __init__(self) -> None:
        self.groups: frozenset[str] = frozenset()
        self.topic_ids: frozenset[str] = frozenset()
        self._where = ""
        self._named: set[tuple[str, str]] = set()

    def begin(self, where: str, groups: Collection[str], topic_ids: Collection[str]) -> None:
        """Begins a new answer; `where`: the cluster."""
        self._where, self.groups, self.topic_ids = where, frozenset(groups), frozenset(topic_ids)

    def lines(self, groups: Collection[str], topic_ids: Collection[str]) -> Iterator[str]:
        """A line about groups and one about topics (by id) with live state that the cluster does not list."""
        yield from self._line("group", set(groups) - self.groups, "settings", "Describe --group")
        yield from self._line(
            "topic", set(topic_ids) - self.topic_ids, "names, end offsets and records", "Describe --topic"
        )

    def without_settings(self, groups: Collection[str]) -> Iterator[str]:
        """A line about groups whose settings one may not see."""
        text = "{}: the answer is incomplete: no right to the settings of {}, so the brokers' settings stand for theirs"
        yield from self._said_once("settings", groups, text, "DescribeConfigs --group")

    def _line(self, kind: str, names: Collection[str], unknown: str, right: str) -> Iterator[str]:
        text = (
            f"{{}}: the answer is incomplete: the log has state of {{}}, which the cluster does not list, so their "
            f"{unknown} are unknown: deleted a moment ago, or hidden from this user"
        )
        yield from self._said_once(kind, names, text, right)

    def _said_once(self, kind: str, names: Collection[str], text: str, right: str) -> Iterator[str]:
        names = sorted(name for name in names if (kind, name) not in self._named)
        if names:
            self._named.update((kind, name) for name in names)
            shown = ", ".join(map(name_cell, names[:MOST_NAMES]))
            remainder_text = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
            phrase = f"{counted(len(names), 'topic' if kind == 'topic' else 'group')} ({shown}{remainder_text})"
            yield f"{text.format(self._where, phrase)}; add the right with {ADD} {right} NAME"
