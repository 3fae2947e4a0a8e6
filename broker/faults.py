"""Faults on purpose: rules that say which requests and which writes go wrong, and how.

A rule is a text such as `api=ShareAcknowledge,action=drop,probability=0.1,seed=7,after=20,count=5` or
`append=__share_group_state,action=torn,after=100,count=1`. Each rule draws from a generator of its own, so that equal
seeds meet the same requests of the rule's API, and the same writes of its topic. docs/reference/workloads.md lists all.
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

from broker.errors import FrameError, OptionError
from broker.ports import TopicPartition
from broker.protocol.api_keys import ApiKey
from broker.protocol.error_answers import error_answer
from broker.protocol.messages import encode_answer
from broker.protocol.registry import Answer, Api, Handler, RequestContext

ANY: Final = "*"
_KEYS: Final = frozenset({"api", "append", "action", "probability", "seed", "after", "count"})


class Action(StrEnum):
    """What happens. The first five are for requests, the others for appends; `error` is for both."""

    DROP = "drop"
    """Neither handled nor answered."""
    LOSE = "lose"
    """Handled; the connection is closed instead of the answer."""
    CLOSE = "close"
    """The connection is closed, nothing is handled."""
    DELAY = "delay"
    """Handled after a time."""
    ERROR = "error"
    """Not handled, and answered with an error code; of an append: refused, as a full disk does."""
    CRASH_BEFORE = "crash_before"
    """The process ends as by kill -9 before the write."""
    CRASH_AFTER = "crash_after"
    """The process ends so after the write, before anybody is told."""
    TORN = "torn"
    """A first part of the batch is written, then the process ends so."""


_OF_REQUESTS: Final = frozenset({Action.DROP, Action.LOSE, Action.CLOSE, Action.DELAY, Action.ERROR})
_OF_APPENDS: Final = frozenset({Action.ERROR, Action.CRASH_BEFORE, Action.CRASH_AFTER, Action.TORN})


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultRule:
    """One rule. Either `api` (a number, or -1 for any) or `append` (topic, topic-partition or *) is set.

    It lets the first `after` matching ones pass, then strikes each with `probability`, at most `count` times.
    """

    action: Action
    api: int | None = None
    append: str | None = None
    delay_ms: int = 0
    error_code: ErrorCode = ErrorCode.unknown_server_error
    probability: float = 1.0
    seed: int = 0
    after: int = 0
    count: int | None = None


def parse_fault(text: str) -> FaultRule:
    """A rule of its text. Raises OptionError that says what is wrong with it."""
    given: dict[str, str] = {}
    for part in text.split(","):
        key, separator, value = part.strip().partition("=")
        if not separator or key not in _KEYS or key in given:
            raise OptionError(f"--fault {text!r}: {part!r} is none of {', '.join(sorted(_KEYS))} with a value, once")
        given[key] = value
    if ("api" in given) == ("append" in given):
        raise OptionError(f"--fault {text!r} needs either api=NAME or append=TOPIC")
    is_request = "api" in given
    try:
        rule = _with_action(given.get("action", ""), is_request=is_request)
        return replace(
            rule,
            api=_api(given["api"]) if is_request else None,
            append=given.get("append"),
            probability=_number(given, "probability", float, 1.0, highest=1.0),
            seed=_number(given, "seed", int, 0),
            after=_number(given, "after", int, 0),
            count=_number(given, "count", int, None),
        )
    except ValueError as error:
        raise OptionError(f"--fault {text!r}: {error}") from error


def _with_action(text: str, *, is_request: bool) -> FaultRule:
    name, _, argument = text.partition(":")
    possible = _OF_REQUESTS if is_request else _OF_APPENDS
    if name not in possible:
        raise ValueError(f"action is one of {', '.join(sorted(possible))}")
    rule = FaultRule(action=Action(name))
    if rule.action is Action.DELAY:
        return replace(rule, delay_ms=_delay_ms(argument))
    if rule.action is Action.ERROR and argument:
        return replace(rule, error_code=_error_code(argument))
    if argument:
        raise ValueError(f"{name} takes no {argument!r}")
    return rule


def _delay_ms(text: str) -> int:
    digits = text.removesuffix("ms")
    if not digits.isdecimal() or digits == text:
        raise ValueError("delay takes a time such as delay:200ms")
    return int(digits)


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
        raise ValueError(f"{name!r} is no API that is answered here, such as ShareAcknowledge") from None


def _number(
    given: Mapping[str, str], key: str, kind: Callable[[str], Any], default: Any, highest: float = 2**63
) -> Any:
    if key not in given:
        return default
    try:
        value = kind(given[key])
    except ValueError:
        value = -1
    if not 0 <= value <= highest:
        raise ValueError(f"{key}={given[key]} is no number from 0 on" + (" to 1" if highest == 1.0 else ""))
    return value


class _Striker:
    """A rule with its generator and its counters."""

    def __init__(self, rule: FaultRule) -> None:
        self.rule = rule
        self._random = random.Random(rule.seed)
        self._seen = self._struck = 0

    def strikes(self) -> bool:
        """Whether one that matches goes wrong."""
        rule = self.rule
        self._seen += 1
        if self._seen <= rule.after or (rule.count is not None and self._struck >= rule.count):
            return False
        if rule.probability < 1.0 and self._random.random() >= rule.probability:
            return False
        self._struck += 1
        return True


class FaultInjection:
    """The rules at work: around handlers (`around`), and around writes (storage.local_log.Faults).

    Of several rules that match, the first that strikes counts.
    """

    def __init__(self, rules: Sequence[FaultRule], *, end_process: Callable[[], None] | None = None) -> None:
        self._requests = [_Striker(rule) for rule in rules if rule.api is not None]
        self._appends = [_Striker(rule) for rule in rules if rule.append is not None]
        self._end_process = end_process or _kill
        self._ends_after_write = False

    def around(self, apis: Mapping[int, Api]) -> Mapping[int, Api]:
        """The same APIs, with handlers that go wrong as the rules say."""
        return {key: replace(api, handler=self._around(api.handler)) for key, api in apis.items()}

    def _around(self, handler: Handler) -> Handler:
        def handle(broker: Any, request: Any, context: RequestContext) -> Answer | Awaitable[Answer | None] | None:
            rule = self._struck(self._requests, lambda one: one.api in (-1, context.api_key))
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

    def before_append(self, topic_partition: TopicPartition, data: bytes) -> bytes:
        """As storage.local_log.Faults."""
        names = (ANY, topic_partition.topic, str(topic_partition))
        rule = self._struck(self._appends, lambda one: one.append in names)
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
        """As storage.local_log.Faults."""
        if self._ends_after_write:
            self._end_process()

    def _struck(self, strikers: Sequence[_Striker], matches: Callable[[FaultRule], bool]) -> FaultRule | None:
        return next((one.rule for one in strikers if matches(one.rule) and one.strikes()), None)


async def _later(
    handler: Handler, broker: Any, request: Any, context: RequestContext, rule: FaultRule
) -> Answer | None:
    """Handle it after the rule's time; of what is to be lost, no answer is sent."""
    if rule.delay_ms:
        await asyncio.sleep(rule.delay_ms / 1000)
    outcome = handler(broker, request, context)
    answer = await outcome if inspect.isawaitable(outcome) else outcome
    if rule.action is Action.LOSE:
        if answer is not None:
            # Elements of arrays are computed, and with them parts of the request handled, while the answer is written.
            encode_answer(context.api_key, context.api_version, 0, answer)
        raise FrameError("a fault loses its answer")
    return answer


def _kill() -> None:
    """End this process without any clean-up."""
    os.kill(os.getpid(), signal.SIGKILL)
