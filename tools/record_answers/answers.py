"""An answer as a file of a recording: the command line, the exit code, both streams, the files that were written."""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

MAX_CHARACTERS = 2 << 20
"""A longer text is cut, and its SHA-256 is added."""
ARGUMENTS, EXIT, STDOUT, STDERR, FILE = "arguments", "exit", "stdout", "stderr", "file "
MARK = "=== "


class NoAnswerError(ValueError):
    """Raised when a file of a recording has no answer in its form."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputFile:
    """A file that a call wrote."""

    name: str
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One recorded call."""

    words: tuple[str, ...]
    exit_code: str
    stdout: str
    stderr: str
    files: tuple[OutputFile, ...] = ()

    def sections(self) -> dict[str, str]:
        """Every part by its title, in the order of the file."""
        return {
            ARGUMENTS: json.dumps(self.words),
            EXIT: self.exit_code,
            STDOUT: self.stdout,
            STDERR: self.stderr,
            **{FILE + json.dumps(file.name): file.content for file in self.files},
        }


def write_answer(answer: Answer, path: Path) -> None:
    """Write an answer: each part behind a line with its title and its number of characters."""
    path.parent.mkdir(parents=True, exist_ok=True)
    parts = {title: cut(text) for title, text in answer.sections().items()}
    lines = [f"{MARK}{title} {len(text)}\n{text}\n" for title, text in parts.items()]
    path.write_bytes("".join(lines).encode("utf-8", errors="backslashreplace"))


def read_sections(path: Path) -> dict[str, str]:
    """The parts of a recorded answer by title. Raises NoAnswerError."""
    text = path.read_bytes().decode("utf-8")
    sections: dict[str, str] = {}
    position = 0
    while position < len(text):
        end = text.find("\n", position)
        title, _, size = text[position:end].removeprefix(MARK).rpartition(" ")
        if not text.startswith(MARK, position) or not size.isdecimal():
            raise NoAnswerError(f"{path}: no title of a part at character {position}")
        sections[title] = text[end + 1 : end + 1 + int(size)]
        position = end + 2 + int(size)
    return sections


def cut(text: str) -> str:
    """A text of at most MAX_CHARACTERS; a longer one ends with the size and the SHA-256 of the whole text.

    Characters that UTF-8 does not have are escaped first, so that the number of characters is that of the file.
    """
    text = text.encode("utf-8", errors="backslashreplace").decode("utf-8")
    if len(text) <= MAX_CHARACTERS:
        return text
    digest = hashlib.sha256(text.encode("utf-8")).hexdigest()
    return f"{text[:MAX_CHARACTERS]}\n... cut: {len(text)} characters, SHA-256 {digest}\n"
