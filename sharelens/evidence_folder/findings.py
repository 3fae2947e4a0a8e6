"""The measures over a window, as the tables of a folder of evidence: all as of the last moment of the window."""

from collections.abc import Iterator

from sharelens.evidence_folder.question import Question
from sharelens.output import Answer
from sharelens.parameters.filters import KeyFilter
from sharelens.questions import accounting, lag, life, redelivered, stalled
from sharelens.questions.answers.completeness import times
from sharelens.questions.dead_letters import dlq, poison
from sharelens.source.request import CutChoice
from sharelens.tables.port import Tables
from sharelens.tables.where import Span


def findings(evidence: Tables, question: Question, key_filter: KeyFilter) -> Iterator[tuple[str, Answer]]:
    """Each table's name with its answer."""
    # By the last record, so that the folder is the same whenever and from whichever copy it is made.
    cut = CutChoice(as_of_ms=question.to_ms - 1, now_ms=times(evidence.cover())[1])
    span = Span(from_ms=question.from_ms, to_ms=question.to_ms)
    settings = question.group_settings()
    yield "lag", lag.lag(evidence, key_filter, cut)
    yield "stall", stalled.stalled(evidence, key_filter, cut, span, settings)
    yield "poison", poison.poison(evidence, key_filter, cut, span, settings, near_limit=True, gaps=True)
    yield "redelivered", redelivered.redelivered(evidence, key_filter, cut, span)
    yield "dlq", dlq.dlq(evidence, key_filter, cut, span, settings, topics=question.letter_topics())
    yield "life", life.life(evidence, key_filter, cut, span)
    yield "account", accounting.account(evidence, key_filter, cut, span)
