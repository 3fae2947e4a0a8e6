"""Classic groups as consumer groups change from and to them, and classic members inside consumer groups."""

from collections import Counter
from collections.abc import Collection
from typing import NamedTuple, TypeAlias, cast

from state_model.consumer.group_values import ConsumerMember, MemberMetadata, member_metadata
from state_model.consumer.hash_order import members_in_hash_order
from state_model.schema import Tree

Protocols: TypeAlias = tuple[tuple[str, bytes], ...]
"""The protocols of a member in the order of its preference: name and metadata."""


class ClassicMember(NamedTuple):
    """A member of a classic group.

    Attributes:
        assignment: as its leader, or the consumer group, gave it; empty before the first one.
    """

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocols: Protocols
    assignment: bytes = b""

    def metadata(self, protocol_name: str) -> bytes | None:
        """Its metadata for a protocol; None for a protocol that it does not have."""
        return next((metadata for name, metadata in self.protocols if name == protocol_name), None)


class ClassicGroup(NamedTuple):
    """A classic group.

    Attributes:
        protocol_type: empty: none.
        protocol_name: None before the first generation.
        members: the first one of a group that was a consumer group leads it.
    """

    generation: int
    protocol_type: str
    protocol_name: str | None
    members: tuple[ClassicMember, ...] = ()
    state_since_ms: int = -1


class Downgrade(NamedTuple):
    """The classic group that a consumer group becomes: stable, each member with its target.

    Its record (type 2) comes last, behind those of the outcome. The members' sessions begin.

    Attributes:
        rebalances: whether a rebalance of the classic group begins at once.
    """

    group: ClassicGroup
    rebalances: bool


def classic_metadata(session_timeout_ms: int, protocols: Protocols) -> Tree:
    """`classic_member_metadata` in the metadata of a member."""
    trees: tuple[Tree, ...] = tuple({"name": name, "metadata": metadata} for name, metadata in protocols)
    return {"session_timeout_ms": session_timeout_ms, "supported_protocols": trees}


def classic_protocols(metadata: MemberMetadata) -> Protocols:
    """The protocols of a classic member in the order of its preference; none of other members."""
    if metadata.classic_member_metadata is None:
        return ()
    trees = cast(tuple[dict[str, str | bytes], ...], metadata.classic_member_metadata["supported_protocols"])
    return tuple((str(tree["name"]), cast(bytes, tree["metadata"])) for tree in trees)


def classic_session_timeout_ms(member: ConsumerMember) -> int | None:
    """The session timeout that a classic member chose; None for other members, which have that of their group."""
    classic = member_metadata(member).classic_member_metadata
    return None if classic is None else cast(int, classic["session_timeout_ms"])


def choose_protocol(members: Collection[Protocols]) -> str | None:
    """The protocol with the most votes; each member votes for the first of its own that all members have.

    Equal numbers: the first in the order of Java's hash table, as in Kafka. None: they have none in common.
    """
    common = set.intersection(*({name for name, _ in protocols} for protocols in members))
    if not common:
        return None
    votes = Counter(next(name for name, _ in protocols if name in common) for protocols in members)
    return max(members_in_hash_order(votes), key=votes.__getitem__)
