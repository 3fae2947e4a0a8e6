"""Kafka's uuid text: URL-safe base64 of the 16 bytes without padding, 22 characters (org.apache.kafka.common.Uuid)."""

import base64
import re

from state_model.errors import InvalidUuidError

UUID_BYTES = 16
ZERO_UUID = "AAAAAAAAAAAAAAAAAAAAAA"
_TEXT = re.compile(r"[A-Za-z0-9_-]{22}")


def uuid_text(raw: bytes) -> str:
    """The 22 characters of 16 bytes, most significant byte first."""
    if len(raw) != UUID_BYTES:
        raise InvalidUuidError(f"a uuid has 16 bytes, these are {len(raw)}: take the bytes of one uuid field")
    return base64.urlsafe_b64encode(raw)[:22].decode("ascii")


def uuid_bytes(text: str) -> bytes:
    """The 16 bytes of a uuid text.

    Raises:
        InvalidUuidError: not 22 characters of the URL-safe alphabet, or its last character holds bits beyond 128
            (Java's decoder drops them; refused here, because two texts would name the same uuid).
    """
    if _TEXT.fullmatch(text) is None:
        raise InvalidUuidError(f"{text!r} is no uuid: type the 22 characters that Kafka prints, such as {ZERO_UUID}")
    raw = base64.urlsafe_b64decode(text + "==")
    if uuid_text(raw) != text:
        raise InvalidUuidError(f"{text!r} is no uuid: did you mean {uuid_text(raw)}?")
    return raw


def is_uuid_text(text: str) -> bool:
    """Whether `uuid_bytes` accepts the text."""
    return _TEXT.fullmatch(text) is not None and text[-1] in "AQgw"
