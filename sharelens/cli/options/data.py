"""Command lines without secrets."""

from collections.abc import Sequence

from sharelens.question_table.shared import STORAGE_OPTION


def without_values(words: Sequence[str]) -> list[str]:
    """The words of a command line without the values of --storage-option, for records of it: some are secrets."""
    shown = []
    for before, word in zip(["", *words], words, strict=False):
        option, equals, pair = word.partition("=")
        if before == STORAGE_OPTION.option:
            shown.append(f"{word.partition('=')[0]}=…")
        elif option == STORAGE_OPTION.option and equals:
            shown.append(f"{option}={pair.partition('=')[0]}=…")
        else:
            shown.append(word)
    return shown
