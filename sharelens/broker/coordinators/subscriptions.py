"""What a consumer's metadata in JoinGroup subscribes to (ConsumerProtocolSubscription): only the topics are read."""

from struct import Struct

CONSUMER_PROTOCOL_TYPE = "consumer"
_HEAD = Struct(">hi")
_LENGTH = Struct(">h")


def subscribed_topics(metadata: bytes) -> frozenset[str] | None:
    """The topics of a member's metadata; None for bytes that are no subscription."""
    if len(metadata) < _HEAD.size:
        return None
    _, count = _HEAD.unpack_from(metadata)
    at = _HEAD.size
    if not 0 <= count <= (len(metadata) - at) // _LENGTH.size:
        return None
    topics = set()
    for _ in range(count):
        if at + _LENGTH.size > len(metadata):
            return None
        (length,) = _LENGTH.unpack_from(metadata, at)
        at += _LENGTH.size
        if not 0 <= length <= len(metadata) - at:
            return None
        try:
            topics.add(metadata[at : at + length].decode("utf-8"))
        except UnicodeDecodeError:
            return None
        at += length
    return frozenset(topics)
