"""The file behind --topic-names: a line `TOPIC-ID NAME` for each topic, or the output of kafka-topics --describe."""

import re

from sharelens.parameters.filters import TOPIC_ID
from sharelens.settings.text_files import read_text_file
from state_model.errors import UsageError

DESCRIBED = re.compile(r"Topic:\s*(?P<name>\S+)\s+TopicId:\s*(?P<id>\S+)\s+PartitionCount:.*")
DESCRIBED_PARTITION = re.compile(r"Topic:\s*\S+\s+Partition:\s*[0-9]+\s+Leader:.*")


def read_topic_names(path: str, option: str = "--topic-names") -> dict[str, str]:
    """Names by topic id; blank lines and lines that begin with # are skipped.

    Raises:
        SharelensError: the file can't be read.
        UsageError: a line is neither `TOPIC-ID NAME` nor one of kafka-topics --describe.
    """
    lines = read_text_file(path, option, "lines of TOPIC-ID NAME").splitlines()
    names: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        words = line.split()
        if not words or words[0].startswith("#") or DESCRIBED_PARTITION.fullmatch(line.strip()):
            continue
        described = DESCRIBED.fullmatch(line.strip())
        if described is not None:
            words = [described["id"], described["name"]]
        if len(words) != 2 or not TOPIC_ID.fullmatch(words[0]):
            raise UsageError(
                f"{option}: line {number} of {path} is not `TOPIC-ID NAME` (an id has 22 characters), nor what "
                "kafka-topics --describe prints"
            )
        names[words[0]] = words[1]
    return names
