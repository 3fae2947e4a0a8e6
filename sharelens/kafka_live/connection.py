"""Connections to the brokers of a cluster: requests of the library kafka-python, to several brokers at a time."""

import logging
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self, TypeVar

from kafka import errors as kafka_errors
from kafka.net.compat import KafkaNetClient
from kafka.net.connection import KafkaConnection
from kafka.net.manager import KafkaConnectionManager
from kafka.net.selector import NetworkSelector

from sharelens.kafka_formats.addresses import listeners
from sharelens.kafka_live.command_config import PLAINTEXT, CommandConfig
from sharelens.kafka_live.errors import ClusterError
from sharelens.kafka_live.failures import LISTENER_HINT, explain, is_final

CLIENT_ID = "sharelens"
CONNECT_S = 5.0
LARGEST_RESPONSE_BYTES = 256 << 20
"""A broker sends the first batch of a response whole, however large."""
GRACE_MS = 500
MOST_FAILURES = 8
"""Failures of connections after which the first connection to a cluster, with a pause behind each, is given up."""
OF_CONNECTIONS = (kafka_errors.KafkaTimeoutError, kafka_errors.KafkaConnectionError, kafka_errors.NodeNotReadyError)
"""Errors of a request behind which another of its connection may stand, which says more."""
CUT = (kafka_errors.KafkaConnectionError, kafka_errors.NodeNotReadyError, OSError)
TRIES, PAUSE_S = 5, 0.2
"""How often a request is sent that only reads, and the first pause between two tries; each is twice the one before."""
UNREADABLE = (TypeError, AttributeError, ValueError, LookupError, ArithmeticError)
"""Errors of code that reads an answer in which something is null, missing or out of range that never is."""
Result = TypeVar("Result")


class _Connections(KafkaConnectionManager):  # type: ignore[misc]
    """The library's connections; they remember why the last one of them failed, and end tries that can't succeed."""

    failure: BaseException | None = None
    failures = 0

    def get_connection(self, node_id: Any, **options: Any) -> KafkaConnection:
        """A connection to the broker, perhaps one that is being made."""
        connection = super().get_connection(node_id, **options)
        if "close" not in vars(connection):  # a new one
            connection.close_future.add_errback(self._remember)
            close = connection.close

            def close_with(error: BaseException | None = None) -> None:
                if error is not None:  # which is lost where the broker has closed the connection before
                    self._remember(error)
                close(error)

            connection.close = close_with
            # The library would wait as long as a broker says; `Connection` waits, within the request's time-out.
            connection._maybe_throttle = lambda _: None
        return connection

    def maybe_raise_auth_failure(self, node_id: Any) -> None:
        """Raises what the last connection failed of, if another one would fail of it, too."""
        is_hopeless = not self.bootstrapped and self.failures >= MOST_FAILURES
        if self.failure is not None and (is_hopeless or self.has_final_failure):
            raise self.failure

    @property
    def has_final_failure(self) -> bool:
        """Whether another connection would fail, too."""
        return self.failure is not None and is_final(self.failure)

    def _remember(self, error: BaseException) -> None:
        self.failures += 1
        if not self.has_final_failure:
            self.failure = error


class Connection:
    """Connections to the brokers of a cluster; `config`: how to connect.

    Raises:
        ClusterError: no broker can be reached at the address.
        UsageError: an address is no HOST:PORT, or files that `config` names can't be used.
    """

    def __init__(self, bootstrap_server: str, config: CommandConfig = PLAINTEXT) -> None:
        logging.getLogger("kafka").setLevel(logging.CRITICAL)  # its lines repeat what the error says
        self.bootstrap_server = bootstrap_server
        self._config = config
        self._timeout_ms = config.timeout_ms
        self.rack = config.rack
        self._ensure_a_listener()
        configs = config.client_configs() | {
            "bootstrap_servers": bootstrap_server.split(","),
            "client_id": CLIENT_ID,
            "receive_message_max_bytes": LARGEST_RESPONSE_BYTES,
        }
        try:
            loop = NetworkSelector(**configs)
            self._connections = _Connections(loop, **configs)
            self._client = KafkaNetClient(net=loop, manager=self._connections)
        except (kafka_errors.KafkaError, ValueError, OSError) as error:
            raise ClusterError(f"--bootstrap-server {bootstrap_server}: {explain(error, config)}") from error
        try:
            self._connections.run(self._bootstrap)
        except (kafka_errors.KafkaError, OSError, ValueError) as error:
            self.close()
            raise ClusterError(self._unreachable(error)) from error

    async def _bootstrap(self) -> None:
        """Connects; the library alone would wait for ever for a listener that answers nothing to TLS."""
        bootstrapped = self._connections.bootstrap_async(self._timeout_ms)
        await self._connections.wait_for(bootstrapped, self._timeout_ms + GRACE_MS)

    def _ensure_a_listener(self) -> None:
        """Raises ClusterError at once where no address of the list takes a connection: the library tries for long."""
        for host, port in listeners(self.bootstrap_server):
            try:
                socket.create_connection((host, port), timeout=CONNECT_S).close()
                return
            except OSError as error:
                problem = f"the cluster does not answer ({error.strerror or error}); {LISTENER_HINT}"
        raise ClusterError(f"--bootstrap-server {self.bootstrap_server}: {problem}")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Closes all connections."""
        self._client.close()

    def nodes(self) -> Sequence[int]:
        """The ids of the brokers, ascending; at least one."""
        nodes = sorted(broker.node_id for broker in self._client.cluster.brokers())
        if not nodes:
            raise ClusterError(self._unreachable(kafka_errors.KafkaError("no broker answers")))
        return nodes

    def learn_brokers(self, metadata: Any) -> None:
        """Takes over the brokers of a Metadata answer."""
        self._client.cluster.update_metadata(metadata)

    def ask(self, node: int, request: Any, read: Callable[[Any], Result]) -> Result:
        """What `read` makes of the answer of a broker to a request of the library.

        Raises:
            ClusterError: the broker does not answer, or with what the protocol does not allow.
        """
        return self.ask_all({node: request}, read)[node]

    def ask_all(self, requests: Mapping[int, Any], read: Callable[[Any], Result]) -> Mapping[int, Result]:
        """What `read` makes of the answers of several brokers, by node id, to a request each.

        They handle them at the same time. Requests read alone, so one whose connection was cut is sent again. A broker
        that wants to be left alone is, for as long as the time-out of a request.

        Raises:
            ClusterError: a broker does not answer, or with what the protocol does not allow.
        """
        answers: dict[int, Any] = {}
        for attempt in range(TRIES):
            time.sleep(PAUSE_S * 2**attempt if attempt else 0)
            failures = self._ask_once(
                {node: request for node, request in requests.items() if node not in answers}, answers
            )
            if not failures:
                break
            if any(not isinstance(error, CUT) for error in failures) or self._connections.has_final_failure:
                break
        if failures:
            raise ClusterError(self._unreachable(failures[0])) from failures[0]
        self._pause(requests, answers)
        return {node: self._read(node, requests[node], answer, read) for node, answer in answers.items()}

    def _pause(self, requests: Mapping[int, Any], answers: Mapping[int, Any]) -> None:
        """Waits as long as the brokers want; ClusterError where one wants more than the time-out of a request."""
        pauses_s = {node: _throttle_s(answer) for node, answer in answers.items()}
        node, pause_s = max(pauses_s.items(), key=lambda each: each[1], default=(0, 0.0))
        if pause_s * 1000 > self._timeout_ms:
            raise ClusterError(
                f"{self._named(node, requests[node])} and wants to be left alone for {pause_s:,.0f} s; a request "
                f"may take {self._timeout_ms / 1000:,.0f} s (request.timeout.ms in --command-config): look for "
                "quotas of this user with kafka-configs.sh --describe"
            )
        time.sleep(pause_s)

    def _read(self, node: int, request: Any, answer: Any, read: Callable[[Any], Result]) -> Result:
        try:
            return read(answer)
        except UNREADABLE as error:
            text = " ".join(str(error).split())[:200]
            raise ClusterError(
                f"{self._named(node, request)} with what Kafka's protocol does not allow ({type(error).__name__}: "
                f"{text}); look whether a Kafka broker answers there, and no proxy changes what it says"
            ) from error

    def _named(self, node: int, request: Any) -> str:
        """Who answered what, as the beginning of a line."""
        api = str(getattr(request, "name", type(request).__name__)).removesuffix("Request")
        return f"--bootstrap-server {self.bootstrap_server}: broker {node} answers {api}"

    def _ask_once(self, requests: Mapping[int, Any], answers: dict[int, Any]) -> list[BaseException]:
        """Sends all requests, then adds the answers as they come; the errors of those that failed."""
        pending, failures = {}, []
        for node, request in requests.items():
            try:
                self._client.await_ready(node, timeout_ms=self._timeout_ms)
                pending[node] = self._client.send(node, request)
            except (kafka_errors.KafkaError, OSError) as error:
                failures.append(error)
        for node, future in pending.items():
            self._client.poll(timeout_ms=self._timeout_ms, future=future)
            if future.succeeded():
                answers[node] = future.value
            else:
                failures.append(future.exception or kafka_errors.KafkaTimeoutError("Request timed out"))
        return failures

    def _unreachable(self, error: BaseException) -> str:
        cause = self._connections.failure if isinstance(error, OF_CONNECTIONS) else None
        return f"--bootstrap-server {self.bootstrap_server}: {explain(cause or error, self._config)}"


def _throttle_s(answer: Any) -> float:
    """How long the broker wants to be left alone; messages of kio have a timedelta."""
    throttle_ms = getattr(answer, "throttle_time_ms", 0)
    throttle_s = answer.throttle_time.total_seconds() if hasattr(answer, "throttle_time") else throttle_ms / 1000
    return max(0.0, float(throttle_s))
