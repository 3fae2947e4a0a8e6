"""The members of one group: a fixed number; a member that left or died is replaced after a while."""

from typing import Final

from sharelens.broker.simulator.member import Member
from sharelens.broker.simulator.world import World

REPLACED_MS: Final = 3_000


class Crowd:
    """See the module."""

    def __init__(self, world: World, group_id: str, topics: tuple[str, ...]) -> None:
        self.group_id = group_id
        self.topics = topics
        self._world = world
        self._chance = world.chance(f"crowd {group_id}")
        self._members: dict[str, Member] = {}
        self._is_away = False
        self._created_count = 0

    def gather(self) -> None:
        """Let all members join, one after the other."""
        self._is_away = False
        for _ in range(len(self._members), self._world.settings.members):
            self._world.timers.after_ms(self._chance.randrange(REPLACED_MS), self._add)

    def disperse(self) -> None:
        """Let all members leave, until the group joins again."""
        self._is_away = True
        for member in list(self._members.values()):
            member.leave()

    def _add(self) -> None:
        if self._is_away or len(self._members) >= self._world.settings.members:
            return
        self._created_count += 1
        member = Member(self._world, self.group_id, f"{self.group_id}-{self._created_count}", self.topics, self._gone)
        self._members[member.member_id] = member
        member.join()

    def _gone(self, member: Member) -> None:
        del self._members[member.member_id]
        if not self._is_away:
            self._world.timers.after_ms(self._chance.randrange(REPLACED_MS), self._add)
