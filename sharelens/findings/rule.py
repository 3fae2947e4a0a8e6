"""A rule as data: what it is about, what it needs, and the function that judges."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum

from sharelens.findings.finding import Finding
from sharelens.findings.signs import Signs
from sharelens.findings.thresholds import Thresholds


class About(Enum):
    """What a rule is about: missing evidence never makes a finding about trouble."""

    TROUBLE = "trouble"
    EVIDENCE = "evidence"


class Need(Enum):
    """An input of rules, with what brings it."""

    STATE_LOG = ("the state log", "copy __share_group_state-*")
    COORDINATOR_LOG = ("the group coordinator's log", "copy __consumer_offsets-*")
    TOPIC_END = (
        "the end of the topic",
        "copy replication-offset-checkpoint or the topics' folders, or give --end-offsets FILE",
    )
    LETTERS = ("the dead-letter topic", "copy the folders of the dead-letter topic")
    GROUP_SETTINGS = (
        "the settings of groups",
        "--group-configs FILE or --settings DIR with group-configs.txt, or copy __cluster_metadata-0",
    )
    NOW = ("the time of the copy", "--now TIME")
    SETTINGS = ("the settings of brokers and groups", "--broker-config FILE or --settings DIR")
    HEADERS = ("the headers of the topics", "copy the topics' folders")
    METADATA_LOG = ("the metadata log", "copy __cluster_metadata-0")
    AUDIT = ("an audit", "sharelens run")

    @property
    def remedy(self) -> str:
        """What brings the input."""
        return self.value[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A rule: `judge` gives what it finds, and what it can't judge; what it gives nothing of is clear.

    `severities`: those that its findings may have. `when`, `threshold`: for the page of findings. `decisive`: without
    it a subject is not judged where values compatible with the evidence give both clear and a warning or error.
    `refining`: without it only size, age or cause is unknown. `unjudged`: what is not judged of several groups.
    """

    kind: str
    about: About = About.TROUBLE
    subject: str
    severities: tuple[str, ...]
    when: str
    threshold: str = ""
    decisive: tuple[Need, ...] = ()
    refining: tuple[Need, ...] = ()
    judge: Callable[[Signs, Thresholds], Iterable[Finding]]
    unjudged: str = ""
