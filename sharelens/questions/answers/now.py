"""Now: the moment until which the evidence was read, at which what still lasts has lasted so long."""

from sharelens.evidence.now import BY_OPTION, LAST_RECORD, READ, Now
from sharelens.parameters.times import lasted, time_text
from sharelens.questions.answers.completeness import evidence_times
from sharelens.source.request import CutChoice
from sharelens.tables.port import Tables
from state_model.errors import UsageError


def now_of(evidence: Tables, cut: CutChoice) -> int:
    """Now (epoch ms), as `now_at`."""
    return now_at(evidence, cut).ms


def now_at(evidence: Tables, cut: CutChoice) -> Now:
    """Now: never before the last record, never after the moment of an earlier cut.

    Where nothing says until when the evidence was read, it is the log time of its last record, and what came later is
    not known. At an earlier cut the evidence goes on, and says what was then.

    Raises:
        UsageError: --now lies before the last record.
    """
    last_ms = evidence_times(evidence)[1] or 0
    if cut.now_ms is not None and cut.now_ms < last_ms:
        raise UsageError(
            f"--now: {time_text(cut.now_ms)} lies before the last record in {evidence.place}, {time_text(last_ms)}; "
            "for an earlier moment type --as-of"
        )
    if cut.at_offsets:
        return Now(ms=last_ms, source=READ)
    read_until_ms = evidence.read_until_ms() if cut.now_ms is None else cut.now_ms
    now_ms = max(last_ms, read_until_ms or last_ms)
    if cut.as_of_ms is not None and cut.as_of_ms < now_ms:
        return Now(ms=cut.as_of_ms, source=READ)
    if cut.now_ms is not None:
        return Now(ms=now_ms, source=BY_OPTION)
    return Now(ms=now_ms, source=LAST_RECORD if read_until_ms is None else READ)


def now_text(evidence: Tables, now_ms: int) -> str:
    """Now, and how much earlier the evidence ends, or the moment of a cut, for the last line of an answer."""
    last_ms = evidence_times(evidence)[1]
    if last_ms is None:
        return f"now {time_text(now_ms)}"
    if now_ms < last_ms:
        return f"as of {time_text(now_ms)}"
    if now_ms == last_ms:
        return f"now {time_text(now_ms)}, by the last record: --now TIME names a later moment"
    return f"now {time_text(now_ms)}, {lasted(now_ms - last_ms)} after the last record"
