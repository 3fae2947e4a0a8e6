"""Rules about the evidence: what is missing in it, or can't be read, so that rules about trouble can't judge."""

from collections.abc import Iterator, Mapping

import pyarrow.compute as pc

from sharelens.findings.finding import ERROR, WARNING, Finding
from sharelens.findings.rule import About, Need, Rule
from sharelens.findings.signs import Signs
from sharelens.findings.thresholds import OLD_EVIDENCE_MS, Thresholds
from sharelens.output.wording import counted, number
from sharelens.parameters.times import lasted
from state_model.topics import STATE_TOPIC


def no_state_log(signs: Signs, thresholds: Thresholds) -> Iterator[Finding]:
    """Share partitions that the coordinator initialized, and no folder of the log of their state."""
    if signs.cover or signs.groups is None:
        return
    initialized = pc.sum(signs.groups.column("initialized_partitions")).as_py() or 0
    if initialized:
        yield Finding(
            severity=ERROR,
            kind="no_state_log",
            text=f"{counted(initialized, 'initialized share partition')}, and no folder of the state log",
            question="status",
            share_partitions=initialized,
            remedy=Need.STATE_LOG.remedy,
        )


def state_log_unreadable(signs: Signs, thresholds: Thresholds) -> Iterator[Finding]:
    """A state log of which no record could be decoded."""
    quarantined = sum(part.quarantined for part in signs.cover)
    if quarantined and all(part.first_ms is None for part in signs.cover) and not signs.lag.num_rows:
        yield Finding(
            severity=ERROR,
            kind="state_log_unreadable",
            text=f"none of {counted(quarantined, 'record')} of the state log could be decoded",
            question="status",
            size=quarantined,
            remedy="a version of sharelens that knows the records of this Kafka",
        )


def evidence_old(signs: Signs, thresholds: Thresholds) -> Iterator[Finding]:
    """The whole log is silent for long."""
    age_ms = signs.now_ms - signs.last_ms
    if signs.cover and age_ms >= OLD_EVIDENCE_MS and signs.last_ms:
        yield Finding(
            severity=WARNING,
            kind="evidence_old",
            text=f"the evidence ends {lasted(age_ms)} ago: nothing was written to the state log since",
            question="status",
            since_ms=signs.last_ms,
        )


def evidence_gap(signs: Signs, thresholds: Thresholds) -> Iterator[Finding]:
    """Ranges of the state log that the evidence lacks behind its beginning, and what could not be read."""
    gaps = [
        loss
        for part in signs.cover
        for loss in part.losses
        if loss.group_id is None and loss.first_offset >= part.log_start_offset
    ]
    quarantined = sum(part.quarantined for part in signs.cover)
    if gaps or quarantined:
        lost = sum(loss.last_offset - loss.first_offset + 1 for loss in gaps)
        yield Finding(
            severity=WARNING,
            kind="evidence_gap",
            text=f"{counted(lost, 'record')} of the state log are missing here, {number(quarantined)} in quarantine",
            question="status",
            size=lost,
        )


RULES: Mapping[str, Rule] = {
    rule.kind: rule
    for rule in (
        Rule(
            kind="no_state_log",
            about=About.EVIDENCE,
            subject="cluster",
            severities=(ERROR,),
            when=f"The coordinator's log names initialized share partitions, and there is no folder of {STATE_TOPIC}: "
            "there is no verdict.",
            judge=no_state_log,
        ),
        Rule(
            kind="state_log_unreadable",
            about=About.EVIDENCE,
            subject="cluster",
            severities=(ERROR,),
            when="No record of the state log could be decoded: there is no verdict.",
            judge=state_log_unreadable,
        ),
        Rule(
            kind="evidence_old",
            about=About.EVIDENCE,
            subject="cluster",
            severities=(WARNING,),
            when="Now lies long after the last record of the state log.",
            threshold="10 minutes",
            judge=evidence_old,
        ),
        Rule(
            kind="evidence_gap",
            about=About.EVIDENCE,
            subject="cluster",
            severities=(WARNING,),
            when="The state log has gaps, or records that can't be read.",
            judge=evidence_gap,
        ),
    )
}
