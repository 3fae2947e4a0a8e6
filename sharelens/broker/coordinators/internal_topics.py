"""The internal topics of streams groups: created after a heartbeat that misses them (streams-group §4.9)."""

import logging
from collections.abc import Callable, Sequence
from functools import partial

from sharelens.broker.errors import BrokerError, TopicExistsError
from sharelens.broker.ports import Timers
from state_model.streams.topology import NAMED_TOPICS_MAX
from state_model.streams.values import TopicInfo

_log = logging.getLogger(__name__)


class InternalTopics:
    """Creates topics with `create`, each once at a time; a refused one is tried again after a while."""

    def __init__(self, timers: Timers, create: Callable[[TopicInfo], None]) -> None:
        self._timers = timers
        self._create = create
        self._in_flight: set[str] = set()
        self._refused: dict[str, tuple[str, int]] = {}

    def problems(self, topics: Sequence[TopicInfo]) -> str:
        """What follows in the status about topics whose creation was refused lately; empty when none was."""
        refused = self._lately_refused()
        texts = [f"{topic.name} ({refused[topic.name]})" for topic in topics if topic.name in refused]
        if not texts:
            return ""
        remainder_text = f" and {len(texts) - NAMED_TOPICS_MAX} more" if len(texts) > NAMED_TOPICS_MAX else ""
        return f"; Creation failed: {', '.join(texts[:NAMED_TOPICS_MAX])}{remainder_text}."

    def create_later(self, topics: Sequence[TopicInfo], *, remember_ms: int) -> None:
        """Create topics after this call; those that are on their way or were refused within `remember_ms` are not."""
        refused = self._lately_refused()
        for topic in topics:
            if topic.name not in self._in_flight and topic.name not in refused:
                self._in_flight.add(topic.name)
                self._timers.after_ms(0, partial(self._create_now, topic, remember_ms))

    def _create_now(self, topic: TopicInfo, remember_ms: int) -> None:
        self._in_flight.discard(topic.name)
        try:
            self._create(topic)
        except TopicExistsError:
            return
        except BrokerError as error:
            _log.warning("the internal topic %s could not be created: %s", topic.name, error)
            self._refused[topic.name] = (str(error), self._timers.now_ms() + remember_ms)

    def _lately_refused(self) -> dict[str, str]:
        now_ms = self._timers.now_ms()
        self._refused = {name: refusal for name, refusal in self._refused.items() if refusal[1] > now_ms}
        return {name: text for name, (text, _) in self._refused.items()}
