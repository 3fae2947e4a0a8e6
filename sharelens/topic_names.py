"""The file behind --topic-names: a line `TOPIC-ID NAME` for each topic that left no folder behind."""

from sharelens.filters import TOPIC_ID
from sharelens.text_files import read_text_file
from state_model.errors import UsageError


def read_topic_names(path: str) -> dict[str, str]:
    """Names by topic id; blank lines and lines that begin with # are skipped.

    Raises:
        SharelensError: the file can't be read.
        UsageError: a line is not `TOPIC-ID NAME`.
    """
    lines = read_text_file(path, "--topic-names", "lines of TOPIC-ID NAME").splitlines()
    names: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        if len(words) != 2 or not TOPIC_ID.fullmatch(words[0]):
            raise UsageError(f"--topic-names: line {number} of {path} is not `TOPIC-ID NAME` (an id has 22 characters)")
        names[words[0]] = words[1]
    return names
