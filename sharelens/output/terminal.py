"""Text on a terminal: nothing in it moves the cursor, and its width in columns."""

import unicodedata


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


def _letter_width(letter: str) -> int:
    if unicodedata.combining(letter):
        return 0
    return 2 if unicodedata.east_asian_width(letter) in "WF" else 1
