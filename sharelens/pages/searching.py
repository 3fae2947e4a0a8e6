"""The search box: what a text names, and the pages of it."""

import re
from collections.abc import Iterable, Sequence

from sharelens.output.wording import name
from sharelens.pages.address import Address, Session, path
from sharelens.pages.answers import PageError, rows
from sharelens.pages.workers import Workers

PLACE = re.compile(r"(?P<topic>.+?)[:-](?P<partition>\d{1,9})(?:@(?P<offset>\d{1,19}))?")
MOST_GROUPS = 20
"""Groups in which a member is looked for."""
Rows = Sequence[dict[str, object]]
Result = tuple[str, str]
"""A page in words, and its address."""


class Search:
    """Looks for names in the answers of questions."""

    def __init__(self, workers: Workers, session: Session) -> None:
        self._workers, self._session = workers, session

    async def results(self, text: str) -> list[Result]:
        """The pages of what a text names: groups, a kind of finding, topics, a partition or record of one, members.

        Raises:
            PageError: the evidence can't be read.
        """
        text = text.strip()
        if not text:
            return []
        groups = await self._rows("groups") or (await self._rows("overview", part="groups"))
        names = [str(row["group_id"]) for row in groups]
        named = [_group(group) for group in names if group == text]
        if named:
            return named
        shares = await self._rows("lag")
        of_topics = [*_topics(shares, text), *_places(shares, text)]
        if of_topics:
            return of_topics
        return [*await self._findings(text), *await self._members(names, text), *_similar(names, shares, text)]

    async def _findings(self, text: str) -> list[Result]:
        findings = await self._rows("overview", part="findings")
        return [
            (f"{row['kind']}: {row['text']}", "/" if row["group_id"] is None else path("groups", str(row["group_id"])))
            for row in findings
            if str(row["kind"]).replace("_", "-") == text.lower().replace("_", "-")
        ]

    async def _members(self, groups: Sequence[str], text: str) -> list[Result]:
        found_pages = []
        for group in groups[:MOST_GROUPS]:
            members = await self._rows("describe", (("group", group), ("members", "on")))
            if any(text in (row.get("member_id"), row.get("consumer_id")) for row in members):
                found_pages.append((f"Member {name(text)} of group {name(group)}", path("groups", group)))
        return found_pages

    async def _rows(self, question: str, options: tuple[tuple[str, str], ...] = (), part: str = "") -> Rows:
        """The rows of a part of an answer; none where the question has no answer here."""
        try:
            words = Address(question, options).words(self._session)
            parts = await self._workers.ask(rows, question, words)
        except PageError:
            return []
        return parts.get(part, [])


def _topics(shares: Rows, text: str) -> list[Result]:
    """The share partitions of a topic, by its name or id."""
    return [_share_partition(row) for row in shares if text in (row["topic"], row["topic_id"])]


def _places(shares: Rows, text: str) -> list[Result]:
    """The share partitions, or records of them, at TOPIC:PARTITION or TOPIC:PARTITION@OFFSET."""
    match = PLACE.fullmatch(text)
    if match is None:
        return []
    at = [
        row
        for row in shares
        if match["topic"] in (row["topic"], row["topic_id"]) and row["partition"] == int(match["partition"])
    ]
    if match["offset"] is None:
        return [_share_partition(row) for row in at]
    return [
        (f"{words} @ {match['offset']}", f"{place}/{match['offset']}") for words, place in map(_share_partition, at)
    ]


def _similar(groups: Iterable[str], shares: Rows, text: str) -> list[Result]:
    """Groups and topics whose names contain the text."""
    part = text.lower()
    similar = [_group(group) for group in groups if part in group.lower()]
    return [*similar, *(_share_partition(row) for row in shares if part in str(row["topic"] or "").lower())]


def _group(group: str) -> Result:
    return f"Group {name(group)}", path("groups", group)


def _share_partition(row: dict[str, object]) -> Result:
    group, topic, partition = str(row["group_id"]), str(row["topic"] or row["topic_id"]), str(row["partition"])
    return f"{name(topic)}-{partition} of group {name(group)}", path("groups", group, topic, partition)
