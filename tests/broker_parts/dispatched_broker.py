"""A whole broker in this process, in virtual time: requests and answers as bytes, but no sockets."""

import re

from kio.index import load_request_schema, load_response_schema

from sharelens.broker.broker import Broker, Options
from sharelens.broker.config.settings import Settings
from sharelens.broker.faults import parse_fault
from sharelens.broker.handlers.all import MODULES
from sharelens.broker.protocol.dispatch import Dispatcher
from sharelens.broker.protocol.registry import ANONYMOUS
from sharelens.kafka_formats.messages.reader import read
from sharelens.kafka_formats.messages.writer import write
from tests.broker_parts.broker_memory import ManualTimers
from tests.broker_parts.broker_messages import plain

WITH_UNITS = {"rebalance_timeout_ms", "heartbeat_interval_ms", "throttle_time_ms", "task_offset_interval_ms"}


class _Timers(ManualTimers):
    def stop(self):
        self.forget()


class _Connection:
    id = 1
    listener = "PLAINTEXT"

    def __init__(self, principal):
        self.principal = principal

    def on_close(self, callback):
        """It stays open."""


class DispatchedBroker:
    """`call(key, version, **fields)` is the answer as a mapping; `restart` begins again, perhaps with fault rules."""

    def __init__(self, folder, now_ms=1_000_000, make_id=None, **settings):
        """make_id: see sharelens.broker.broker.Options."""
        self._folder = folder
        self._settings = {"offsets_topic_num_partitions": "2"} | settings
        self._now_ms = now_ms
        self._make_id = make_id
        self._open()

    def _open(self, *faults):
        self.timers = _Timers(self._now_ms)
        texts = {name.replace("_", "."): str(value) for name, value in self._settings.items()}
        rules = [parse_fault(rule) for rule in faults]
        options = Options(log_dir=self._folder, listeners=[], faults=rules, make_id=self._make_id)
        self.broker = Broker(Settings(texts), self.timers, options)
        self.broker.load()
        assert MODULES
        self._dispatcher = Dispatcher(self.broker, self.broker.apis)

    def restart(self, *faults):
        self._now_ms = self.timers.now_ms()
        self.close()
        self._open(*faults)

    def close(self):
        self.broker.close()

    def call(self, key, version, **fields):
        return self.call_as(ANONYMOUS, key, version, fields)

    def call_as(self, principal, key, version, fields, client_id="c"):
        schema, response = load_request_schema(key, version), load_response_schema(key, version)
        names = {"request_api_key": key, "request_api_version": version, "correlation_id": 5, "client_id": client_id}
        frame = write(schema.__header_schema__, names) + write(schema, fields)
        pieces = self._dispatcher.dispatch(frame, _Connection(principal), "/127.0.0.1")
        self.timers.advance(0)
        raw = b"".join(map(bytes, pieces))
        _, at = read(response.__header_schema__, raw, 4)
        return plain(read(response, raw, at)[0])

    def create(self, name, partitions):
        topic = {"name": name, "num_partitions": partitions, "replication_factor": 1}
        (created,) = self.call(19, 7, topics=[topic])["topics"]
        assert created["error_code"] == 0, created["error_message"]


def of_json(value):
    """The fields of a message from Kafka's JSON."""
    if isinstance(value, dict):
        return {_field(name): of_json(each) for name, each in value.items()}
    return [of_json(each) for each in value] if isinstance(value, list) else value


def _field(name):
    snake = re.sub(r"(?<=[a-z])([A-Z])", r"_\1", name).lower()
    return snake.removesuffix("_ms") if snake in WITH_UNITS else snake
