"""Rules about the evidence: what is missing in it, or can't be read, so that rules about trouble can't judge."""

from collections.abc import Iterator, Mapping

from sharelens.findings.about import states_remedy
from sharelens.findings.finding import ERROR, WARNING, Finding
from sharelens.findings.rule import About, Need, Rule
from sharelens.findings.signs import Signs
from sharelens.findings.thresholds import OLD_EVIDENCE_MS, Thresholds
from sharelens.output.wording import counted, number
from sharelens.parameters.times import lasted
from sharelens.tables.cover import undecoded_reasons
from sharelens.tables.missing import HELD_BACK, UNREADABLE
from state_model.topics import STATE_TOPIC


def no_state_log(signs: Signs, thresholds: Thresholds) -> Iterator[Finding]:
    """Share partitions that the coordinator initialized, and no folder of the log of their state."""
    if not signs.missing.lacks_state_log:
        return
    initialized = signs.missing.initialized or 0
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
    reasons = undecoded_reasons(signs.cover)
    if reasons and not signs.lag.num_rows and not signs.events.num_rows:
        ((detail, _),) = reasons.most_common(1)
        yield Finding(
            severity=ERROR,
            kind="state_log_unreadable",
            text=f"none of {counted(reasons.total(), 'record')} of the state log could be decoded: {detail}",
            question="status",
            size=reasons.total(),
            remedy="a version of sharelens that knows the records of this Kafka",
        )


def state_log_partial(signs: Signs, thresholds: Thresholds) -> Iterator[Finding]:
    """Share partitions whose state lies in state partitions that aren't here, or can't be read."""
    missing = signs.missing
    if missing.lacks_state_log:
        return
    of_all = f"of {counted(missing.initialized or 0, 'initialized share partition')}"
    if missing.absent:
        verb = "lies in a state partition that isn't" if missing.absent == 1 else "lie in state partitions that aren't"
        yield _partial(missing.absent, f"{of_all} {verb} here", states_remedy(missing))
    held_back, unreadable = (missing.reasons.get(reason, 0) for reason in (HELD_BACK, UNREADABLE))
    if held_back:
        text = f"{of_all} have their state at or above the high watermark"
        yield _partial(held_back, text, "--include-uncommitted")
    if unreadable:
        text = f"{of_all} lie in state partitions with gaps or unreadable records"
        yield _partial(unreadable, text, "another copy of the state log")


def _partial(count: int, text: str, remedy: str) -> Finding:
    return Finding(
        severity=ERROR,
        kind="state_log_partial",
        text=f"{number(count)} {text}",
        question="status",
        share_partitions=count,
        remedy=remedy,
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
        for loss in part.gaps
        if loss.group_id is None and loss.first_offset >= part.log_start_offset
    ]
    quarantined = sum(part.quarantined for part in signs.cover)
    if gaps or quarantined:
        lost = sum(loss.last_offset - loss.first_offset + 1 for loss in gaps)
        yield Finding(
            severity=WARNING,
            kind="evidence_gap",
            text=f"{counted(lost, 'record')} of the state log {'is' if lost == 1 else 'are'} missing here, "
            f"{number(quarantined)} in quarantine",
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
            kind="state_log_partial",
            about=About.EVIDENCE,
            subject="share partition",
            severities=(ERROR,),
            when="Initialized share partitions have their state in state partitions that are not in the evidence, or "
            "behind what can be read: they are not judged.",
            judge=state_log_partial,
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
