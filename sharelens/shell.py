"""Command lines that a shell takes as they are printed: every word is quoted here."""

import shlex
from collections.abc import Sequence

RAW_BYTES = range(0xDC80, 0xDD00)
"""Letters by which Python stands for bytes of a path that are no UTF-8 (`os.fsdecode`)."""


def shell_line(words: Sequence[str]) -> str:
    """One printable line with the words, quoted for a POSIX shell; words that don't print are in bash's form."""
    return " ".join(map(shell_word, words))


def shell_word(word: str) -> str:
    """One printable word for a shell; letters that don't print go into its $'…' form."""
    if word.isprintable():
        return shlex.quote(word)
    return "$'" + "".join(map(_letter, word)) + "'"


def option_words(option: str, value: str) -> tuple[str, ...]:
    """An option with its value: two words, or one where the value begins with a dash and would look like an option."""
    return (f"{option}={value}",) if value.startswith("-") else (option, value)


def lake_command(name: str, lake: object, *options: str) -> str:
    """The line of a command about a lake (its path or URI), for messages."""
    return shell_line(["sharelens", name, *option_words("--lake", str(lake)), *options])


def _letter(letter: str) -> str:
    code = ord(letter)
    if letter in "\\'":
        return "\\" + letter
    if letter.isprintable():
        return letter
    if code < 0x80 or code in RAW_BYTES:
        return f"\\x{code & 0xFF:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
