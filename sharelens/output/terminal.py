"""Text on a terminal: nothing in it moves the cursor, and its width in columns."""

import unicodedata
from itertools import accumulate, takewhile


def visible(text: str) -> str:
    """The text with control characters and backslashes escaped; blanks stay."""
    if text.isprintable() and "\\" not in text:
        return text
    return "".join(escaped(letter) for letter in text)


def escaped(letter: str) -> str:
    """The letter, or its escape where a terminal would act on it."""
    if letter == "\\":
        return "\\\\"
    if letter.isprintable():
        return letter
    short = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}.get(letter)
    if short is not None:
        return short
    code = ord(letter)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def text_width(text: str) -> int:
    """Width of the text on a terminal, in columns."""
    if text.isascii():
        return len(text)
    return sum(_letter_width(letter) for letter in text)


def cut_in_the_middle(text: str, width: int) -> str:
    """The text in at most so many columns of a terminal; of a wider one the middle is left out."""
    if text_width(text) <= width:
        return text
    half = (width - 1) // 2
    return f"{_beginning(text, half)}…{_beginning(text[::-1], half)[::-1]}"


def _beginning(text: str, width: int) -> str:
    """As many letters as fit into so many columns."""
    widths = accumulate(map(_letter_width, text))
    return "".join(letter for letter, end in zip(text, takewhile(lambda end: end <= width, widths), strict=False))


def _letter_width(letter: str) -> int:
    if unicodedata.combining(letter):
        return 0
    return 2 if unicodedata.east_asian_width(letter) in "WF" else 1
