"""The searched records as the parameters of `sharelens locate` say them."""

import base64
import binascii
import os

from sharelens.questions.traces.locate import Sought
from state_model.errors import UsageError

WITHIN_MS = 60_000


def sought(
    *,
    key: str | None,
    key_hex: str | None,
    key_base64: str | None,
    around: int | None,
    within: int | None,
    from_ms: int | None,
    to_ms: int | None,
) -> Sought:
    """Records with a key and in an interval, or with a timestamp at most `within` ms from `around` (None: a minute).

    Raises:
        UsageError: not exactly one of keys and `around`, or a key that can't be read.
    """
    key_bytes = _key(key, key_hex, key_base64)
    if (key_bytes is None) == (around is None):
        raise UsageError("locate: give one of --key, --key-hex, --key-base64 and --around")
    if within is not None and around is None:
        raise UsageError("locate: --within goes with --around")
    if around is None:
        return Sought(key=key_bytes, from_ms=from_ms, to_ms=to_ms)
    if from_ms is not None or to_ms is not None:
        raise UsageError("locate: --around excludes --from and --to; leave them out, or widen it with --within")
    reach = WITHIN_MS if within is None else within
    return Sought(from_ms=around - reach, to_ms=around + reach + 1)


def _key(text: str | None, digits: str | None, encoded: str | None) -> bytes | None:
    """The key's bytes; UsageError for several, or for one that can't be read."""
    if sum(part is not None for part in (text, digits, encoded)) > 1:
        raise UsageError("locate: --key, --key-hex and --key-base64 exclude each other; give one of them")
    if digits is not None:
        try:
            return bytes.fromhex(digits)
        except ValueError:
            raise UsageError(f"--key-hex: {digits!r} is no even number of hexadecimal digits; as in 6b3637") from None
    if encoded is not None:
        try:
            return base64.b64decode(encoded, validate=True)
        except binascii.Error:
            raise UsageError(f"--key-base64: {encoded!r} is no Base64; as in azY3NA==") from None
    return None if text is None else os.fsencode(text)
