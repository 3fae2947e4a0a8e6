"""What classic consumers send as their metadata."""

import struct
from collections.abc import Iterable

from state_model.consumer_protocol import NamedPartitions


def subscription_bytes(
    version: int, topics: Iterable[str], owned: NamedPartitions = frozenset(), rack: str | None = None
) -> bytes:
    """A ConsumerProtocolSubscription without data of an assignor."""
    names = sorted(topics)
    parts = [struct.pack(">hi", version, len(names)), *map(_text, names), struct.pack(">i", -1)]
    if version >= 1:
        by_topic = {topic: sorted(number for name, number in owned if name == topic) for topic, _ in sorted(owned)}
        parts.append(struct.pack(">i", len(by_topic)))
        for topic, numbers in by_topic.items():
            parts += [_text(topic), struct.pack(f">i{len(numbers)}i", len(numbers), *numbers)]
    if version >= 2:
        parts.append(struct.pack(">i", 7))
    if version >= 3:
        parts.append(struct.pack(">h", -1) if rack is None else _text(rack))
    return b"".join(parts)


def _text(text: str) -> bytes:
    return struct.pack(">h", len(text)) + text.encode()
