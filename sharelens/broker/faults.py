"""Fault injection: rules that choose requests, appends and logs that are opened, and the fault of each.

A rule is a text such as `api=ShareAcknowledge,action=drop,probability=0.1,seed=7,after=20,count=5`,
`append=__share_group_state,action=torn,after=100,count=1` or `open=orders-0,action=truncate:20`. Each rule draws from a
generator of its own, so that equal seeds choose the same requests of the rule's API, and the same appends to its topic
(docs/reference/workloads.md).
"""

import asyncio
import errno
import inspect
import os
import random
import signal
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Final

from kio.schema.errors import ErrorCode

from sharelens.broker.errors import FrameError, OptionError
from sharelens.broker.ports import TopicPartition
from sharelens.broker.protocol.error_answers import error_answer
from sharelens.broker.protocol.messages import encode_answer
from sharelens.broker.protocol.registry import Answer, Api, Handler, RequestContext
from sharelens.kafka_formats.messages.api_keys import ApiKey

ANY: Final = "*"
_SUBJECTS: Final = ("api", "append", "open")
_KEYS: Final = frozenset({*_SUBJECTS, "action", "probability", "seed", "after", "count"})


class Action(StrEnum):
    """The fault. The first five apply to requests, the last to opened logs, the others to appends; `error` to both."""

    DROP = "drop"
    """Neither handled nor answered."""
    LOSE = "lose"
    """Handled; the connection is closed instead of the answer."""
    CLOSE = "close"
    """The connection is closed, nothing is handled."""
    DELAY = "delay"
    """Handled after a time."""
    ERROR = "error"
    """A request is not handled and answered with an error code; an append is refused, as by a full disk."""
    CRASH_BEFORE = "crash_before"
    """The process ends as by kill -9 before the write."""
    CRASH_AFTER = "crash_after"
    """The process ends so after the write, before a client gets an answer."""
    TORN = "torn"
    """A first part of the batch is written, then the process ends so."""
    TRUNCATE = "truncate"
    """The log loses its last offsets, as after an unclean leader election."""


_OF_REQUESTS: Final = frozenset({Action.DROP, Action.LOSE, Action.CLOSE, Action.DELAY, Action.ERROR})
_OF_APPENDS: Final = frozenset({Action.ERROR, Action.CRASH_BEFORE, Action.CRASH_AFTER, Action.TORN})
_POSSIBLE: Final = {"api": _OF_REQUESTS, "append": _OF_APPENDS, "open": frozenset({Action.TRUNCATE})}


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultRule:
    """One rule. One of `api` (a number, or -1 for any), `append` and `open` (topic, topic-partition or *) is set.

    The first `after` matches pass; then the rule strikes each match with `probability`, at most `count` times.
    """

    action: Action
    api: int | None = None
    append: str | None = None
    open: str | None = None
    delay_ms: int = 0
    lost_offsets: int = 0
    error_code: ErrorCode = ErrorCode.unknown_server_error
    probability: float = 1.0
    seed: int = 0
    after: int = 0
    count: int | None = None


def parse_fault(text: str) -> FaultRule:
    """The rule that a text describes. Raises OptionError."""
    values: dict[str, str] = {}
    for part in text.split(","):
        key, separator, value = part.strip().partition("=")
        if not separator or key not in _KEYS or key in values:
            raise OptionError(
                f"--fault {text!r}: {part!r} must be KEY=VALUE, each key once, with a key of {', '.join(sorted(_KEYS))}"
            )
        values[key] = value
    subjects = [key for key in _SUBJECTS if key in values]
    if len(subjects) != 1:
        raise OptionError(f"--fault {text!r} needs either api=NAME, append=TOPIC or open=TOPIC")
    try:
        rule = _with_action(values.get("action", ""), _POSSIBLE[subjects[0]])
        return replace(
            rule,
            api=_api(values["api"]) if "api" in values else None,
            append=values.get("append"),
            open=values.get("open"),
            probability=_number(values, "probability", float, 1.0, highest=1.0),
            seed=_number(values, "seed", int, 0),
            after=_number(values, "after", int, 0),
            count=_number(values, "count", int, None),
        )
    except ValueError as error:
        raise OptionError(f"--fault {text!r}: {error}") from error


def _with_action(text: str, possible: frozenset[Action]) -> FaultRule:
    name, _, argument = text.partition(":")
    if name not in possible:
        raise ValueError(f"action is one of {', '.join(sorted(possible))}")
    rule = FaultRule(action=Action(name))
    if rule.action is Action.DELAY:
        return replace(rule, delay_ms=_delay_ms(argument))
    if rule.action is Action.ERROR and argument:
        return replace(rule, error_code=_error_code(argument))
    if rule.action is Action.TRUNCATE:
        return replace(rule, lost_offsets=_lost_offsets(argument))
    if argument:
        raise ValueError(f"{name} takes no {argument!r}")
    return rule


def _delay_ms(text: str) -> int:
    digits = text.removesuffix("ms")
    if not digits.isdecimal() or digits == text:
        raise ValueError("delay takes a time such as delay:200ms")
    return int(digits)


def _lost_offsets(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) < 1 << 63:
        raise ValueError("truncate takes a number of offsets such as truncate:20")
    return int(text)


def _error_code(text: str) -> ErrorCode:
    try:
        return ErrorCode(int(text)) if text.lstrip("-").isdecimal() else ErrorCode[text.lower()]
    except (ValueError, KeyError):
        raise ValueError(f"{text!r} is no error code of Kafka, such as 15 or NOT_COORDINATOR") from None


def _api(name: str) -> int:
    if name == ANY:
        return -1
    by_name = {key.name.replace("_", ""): key for key in ApiKey}
    try:
        return int(by_name[name.replace("_", "").upper()])
    except KeyError:
        raise ValueError(f"{name!r} is no API of this broker, such as ShareAcknowledge") from None


def _number(
    values: Mapping[str, str], key: str, kind: Callable[[str], Any], default: Any, highest: float = 2**63
) -> Any:
    if key not in values:
        return default
    try:
        value = kind(values[key])
    except ValueError:
        value = -1
    if not 0 <= value <= highest:
        raise ValueError(f"{key}={values[key]} is no number from 0 on" + (" to 1" if highest == 1.0 else ""))
    return value


class _Striker:
    """A rule with its generator and its counters."""

    def __init__(self, rule: FaultRule) -> None:
        self.rule = rule
        self._random = random.Random(rule.seed)
        self._match_count = self._strike_count = 0

    def strikes(self) -> bool:
        """Whether the rule strikes a request or an append that it matches."""
        rule = self.rule
        self._match_count += 1
        if self._match_count <= rule.after or (rule.count is not None and self._strike_count >= rule.count):
            return False
        if rule.probability < 1.0 and self._random.random() >= rule.probability:
            return False
        self._strike_count += 1
        return True


class FaultInjection:
    """Applies the rules to handlers (`around`), to appends and to logs that are opened (storage.local_log.Faults).

    Of several rules that match, the first that strikes counts.
    """

    def __init__(self, rules: Sequence[FaultRule], *, end_process: Callable[[], None] | None = None) -> None:
        self._requests = [_Striker(rule) for rule in rules if rule.api is not None]
        self._appends = [_Striker(rule) for rule in rules if rule.append is not None]
        self._opens = [_Striker(rule) for rule in rules if rule.open is not None]
        self._end_process = end_process or _kill
        self._ends_after_write = False

    def around(self, apis: Mapping[int, Api]) -> Mapping[int, Api]:
        """The same APIs with handlers that apply the rules."""
        return {key: replace(api, handler=self._around(api.handler)) for key, api in apis.items()}

    def _around(self, handler: Handler) -> Handler:
        def handle(broker: Any, request: Any, context: RequestContext) -> Answer | Awaitable[Answer | None] | None:
            rule = self._first_strike(self._requests, lambda candidate: candidate.api in (-1, context.api_key))
            if rule is None:
                return handler(broker, request, context)
            match rule.action:
                case Action.DROP:
                    return None
                case Action.CLOSE:
                    raise FrameError("a fault closes it")
                case Action.ERROR:
                    return error_answer(context.api_key, context.api_version, request, rule.error_code)
                case _:
                    return _later(handler, broker, request, context, rule)

        return handle

    def lost_offsets(self, topic_partition: TopicPartition) -> int:
        """See storage.local_log.Faults."""
        names = _names(topic_partition)
        rule = self._first_strike(self._opens, lambda candidate: candidate.open in names)
        return 0 if rule is None else rule.lost_offsets

    def before_append(self, topic_partition: TopicPartition, data: bytes) -> bytes:
        """See storage.local_log.Faults."""
        names = _names(topic_partition)
        rule = self._first_strike(self._appends, lambda candidate: candidate.append in names)
        match None if rule is None else rule.action:
            case Action.CRASH_BEFORE:
                self._end_process()
            case Action.CRASH_AFTER:
                self._ends_after_write = True
            case Action.TORN:
                self._ends_after_write = True
                return data[: len(data) // 2]
            case Action.ERROR:
                raise OSError(errno.ENOSPC, "No space left on device (a fault)")
            case _:
                pass
        return data

    def after_append(self, topic_partition: TopicPartition) -> None:
        """See storage.local_log.Faults."""
        if self._ends_after_write:
            self._end_process()

    def _first_strike(self, strikers: Sequence[_Striker], matches: Callable[[FaultRule], bool]) -> FaultRule | None:
        return next((striker.rule for striker in strikers if matches(striker.rule) and striker.strikes()), None)


def _names(topic_partition: TopicPartition) -> tuple[str, str, str]:
    """The values of a rule's key that fit a partition."""
    return ANY, topic_partition.topic, str(topic_partition)


async def _later(
    handler: Handler, broker: Any, request: Any, context: RequestContext, rule: FaultRule
) -> Answer | None:
    """Handle the request after the rule's delay; an answer that is to be lost closes the connection."""
    if rule.delay_ms:
        await asyncio.sleep(rule.delay_ms / 1000)
    outcome = handler(broker, request, context)
    answer = await outcome if inspect.isawaitable(outcome) else outcome
    if rule.action is Action.LOSE:
        if answer is not None:
            # Lazy arrays handle their part of the request while the answer is written.
            encode_answer(context.api_key, context.api_version, 0, answer)
        raise FrameError("a fault loses its answer")
    return answer


def _kill() -> None:
    """End this process without any clean-up."""
    os.kill(os.getpid(), signal.SIGKILL)
