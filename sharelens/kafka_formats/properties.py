"""Java's properties format (java.util.Properties), as server.properties and meta.properties are written."""

import re
from collections.abc import Iterator

from state_model.errors import SharelensError

_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_BLANKS = " \t\f"
_UNICODE = re.compile(r"[0-9A-Fa-f]{4}")


class PropertiesError(SharelensError):
    """Raised when a text is not in the properties format; the message names file and line."""


def parse(text: str, name: str = "properties") -> dict[str, str]:
    """Keys and values; the last value of a repeated key counts.

    Raises:
        PropertiesError: a broken \\u escape; the message names file and line.
    """
    return {key: value for _, key, value in numbered(text, name)}


def numbered(text: str, name: str = "properties") -> Iterator[tuple[int, str, str]]:
    """(line, key, value) of each line with a key, as `parse` reads them.

    Raises:
        PropertiesError: as `parse`.
    """
    for number, line in _logical_lines(text):
        key, value = _split(line)
        try:
            yield number, _unescape(key), _unescape(value)
        except ValueError:
            raise PropertiesError(f"{name}:{number}: a \\u needs four hexadecimal digits") from None


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines without comments and blanks, continued ones joined, with the number of their first line."""
    pending, first = "", 0
    for number, raw in enumerate(re.split(r"\r\n|\r|\n", text), 1):
        line = raw.lstrip(_BLANKS)
        if not pending and (not line or line[0] in "#!"):
            continue
        first = first or number
        backslashes = len(line) - len(line.rstrip("\\"))
        if backslashes % 2:
            pending += line[:-1]
            continue
        yield first, pending + line
        pending, first = "", 0
    if pending:
        yield first, pending


def _split(line: str) -> tuple[str, str]:
    """Key and value of a line: parted by `=`, `:` or blanks, the first that is not escaped."""
    at = 0
    while at < len(line) and line[at] not in "=:" + _BLANKS:
        at += 2 if line[at] == "\\" else 1
    key, rest = line[:at], line[at:].lstrip(_BLANKS)
    if rest[:1] in ("=", ":"):
        rest = rest[1:].lstrip(_BLANKS)
    return key, rest


def _unescape(text: str) -> str:
    """A text without its backslashes. Raises ValueError for a broken unicode escape."""
    if "\\" not in text:
        return text
    out = []
    at = 0
    while at < len(text):
        char = text[at]
        at += 1
        if char != "\\":
            out.append(char)
            continue
        escaped = text[at : at + 1]
        at += 1
        if escaped == "u":
            digits = text[at : at + 4]
            if _UNICODE.fullmatch(digits) is None:
                raise ValueError(digits)
            out.append(chr(int(digits, 16)))
            at += 4
        else:
            out.append(_ESCAPES.get(escaped, escaped))
    return "".join(out)
