"""The common parts of the DAGs: settings, tasks that call the command line, an asset for each published table.

A task calls `sharelens` once or several times, with lists of words: no shell reads them, so a group named
`; rm -rf ~` stays a name. The configuration (conf/README.md) decides whether Spark runs here or on a cluster.
"""

import os
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar

from airflow.providers.standard.hooks.subprocess import SubprocessHook
from airflow.sdk import Asset, BaseOperator, Connection, Context
from airflow.sdk.exceptions import AirflowException, AirflowFailException
from airflow.sdk.log import mask_secret

from sharelens.configuration.dags import DagSettings
from sharelens.configuration.settings import load_settings

USAGE, FINDINGS = 2, 3
"""Exit codes of `sharelens` after which a retry fails in the same way."""
LOGIN_MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM": "org.apache.kafka.common.security.scram.ScramLoginModule",
}
"""Kafka's classes for a login, by the beginning of the mechanism's name."""
PUBLISHED_TABLES = (
    "bronze.log_record",
    "bronze.topic_batch",
    "bronze.ingest_extent",
    "bronze.quarantine",
    "bronze.setting",
    "silver.share_record",
    "silver.group_record",
    "silver.odd_group_record",
    "silver.dlq_record",
    "silver.name",
    "silver.metadata_record",
    "silver.clock_step",
    "silver.topic_start",
    "gold.share_partition_state",
    "gold.share_partition_base",
    "gold.share_partition_history",
    "gold.delivery_history",
    "gold.stall",
    "gold.poison_record",
    "gold.redelivered_record",
    "gold.latency",
    "gold.attempts",
    "gold.life_event",
    "gold.lag_over_time",
    "gold.progress",
    "gold.measure_base",
    "gold.dlq_reconciliation",
    "gold.lag",
    "gold.group_history",
    "gold.member_history",
    "gold.task_history",
    "gold.share_initialization_history",
    "gold.configuration_history",
    "gold.topic_history",
    "gold.audit_state",
    "gold.audit_record",
    "gold.audit_counter",
    "gold.audit_finding",
)


@cache
def settings() -> DagSettings:
    """The setting `dags` of conf/; raises sharelens.configuration.settings.SettingsError, which Airflow shows as an
    import error."""
    return load_settings().dags


def table_assets() -> list[Asset]:
    """One asset for each published table, with its path as URI."""
    return [
        Asset(name=f"sharelens.{table}", uri=f"file://{settings().lake}/{table.replace('.', '/')}", group="sharelens")
        for table in PUBLISHED_TABLES
    ]


def defaults() -> dict[str, Any]:
    """default_args of every DAG: owner, number of attempts, longest duration of an attempt."""
    values = settings()
    return {
        "owner": "sharelens",
        "retries": values.retries,
        "retry_delay": timedelta(seconds=values.retry_delay_s),
        "retry_exponential_backoff": True,
        "max_retry_delay": timedelta(hours=1),
        "execution_timeout": timedelta(seconds=values.timeout_s),
    }


class SharelensOperator(BaseOperator):
    """Runs `sharelens` once for each list of words, in order; the first that fails fails the task.

    `cluster_connection`: an Airflow connection; the commands then read that cluster (`--bootstrap-server`), with its
    client properties in a file for this task's user alone, which is removed behind them.

    A word that Jinja renders empty is dropped together with the option before it: `["--until", "{{ … }}"]` is empty
    in a run without an interval. `folder` is created first, for its owner only. Returns the last line of the
    output, a job's JSON summary.

    Raises:
        AirflowFailException: the command was wrong, or a gate closed: no retry would help.
        AirflowException: it failed; a retry resumes where it stopped.
    """

    template_fields: ClassVar[Sequence[str]] = ("commands", "folder")

    def __init__(
        self,
        *,
        commands: Sequence[Sequence[str]],
        folder: str | None = None,
        cluster_connection: str | None = None,
        **operator_arguments: Any,
    ) -> None:
        super().__init__(**operator_arguments)
        self.commands = [list(words) for words in commands]
        self.folder = folder
        self.cluster_connection = cluster_connection
        self._hook: SubprocessHook | None = None

    def execute(self, context: Context) -> str:
        """Runs the commands."""
        last = ""
        if self.folder is not None:
            os.makedirs(self.folder, mode=0o700, exist_ok=True)
        with _cluster_words(self.cluster_connection) as of_cluster:
            for words in self.commands:
                last = self._run([*settings().command, *_without_empty(words), *of_cluster])
        return last

    def _run(self, words: list[str]) -> str:
        self._hook = SubprocessHook()
        ended = self._hook.run_command(words, env=dict(os.environ), cwd=os.getcwd())
        if ended.exit_code == 0:
            return str(ended.output)
        message = f"{' '.join(words[: len(settings().command) + 1])} ended with {ended.exit_code}: {ended.output}"
        raise (AirflowFailException if ended.exit_code in (USAGE, FINDINGS) else AirflowException)(message)

    def on_kill(self) -> None:
        """Ends the command with its JVM and workers: they are one process group."""
        process = None if self._hook is None else self._hook.sub_process
        if process is not None and process.poll() is None:
            os.killpg(process.pid, signal.SIGTERM)


def _without_empty(words: Sequence[str]) -> list[str]:
    """The words without empty values and their options."""
    kept_words: list[str] = []
    for word in words:
        if word:
            kept_words.append(word)
        elif kept_words and kept_words[-1].startswith("--"):
            kept_words.pop()
    return kept_words


@contextmanager
def _cluster_words(connection_id: str | None) -> Iterator[list[str]]:
    """The options that name the cluster of a connection; none for None. Its properties lie in a file meanwhile.

    Raises:
        AirflowFailException: the connection names no broker, or its login can't be used.
    """
    if connection_id is None:
        yield []
        return
    connection = Connection.get(connection_id)
    properties = {str(name): str(value) for name, value in connection.extra_dejson.items()}
    place = f"{connection.host}:{connection.port}" if connection.host and connection.port else ""
    servers = properties.pop("bootstrap.servers", place)
    if not servers:
        raise AirflowFailException(
            f"connection {connection_id} names no broker: give it host and port, or bootstrap.servers in its extra"
        )
    if connection.login and "sasl.jaas.config" not in properties:
        properties["sasl.jaas.config"] = _login(connection_id, connection, properties.get("sasl.mechanism", ""))
    for name in ("sasl.jaas.config", "ssl.key.password"):
        mask_secret(properties.get(name))
    mask_secret(connection.password)
    with TemporaryDirectory(prefix="sharelens-") as folder:  # for its owner alone
        path = Path(folder, "client.properties")
        path.touch(mode=0o600)
        path.write_text("".join(f"{name}={_escaped(value)}\n" for name, value in properties.items()), encoding="utf-8")
        yield ["--bootstrap-server", servers, "--command-config", str(path)]


def _login(connection_id: str, connection: Connection, mechanism: str) -> str:
    """Kafka's sasl.jaas.config for login and password of a connection."""
    module = LOGIN_MODULES.get(mechanism.partition("-")[0])
    if module is None:
        raise AirflowFailException(
            f"connection {connection_id} has a login, and sasl.mechanism in its extra is not PLAIN or SCRAM-SHA-…"
        )
    user, password = (_quoted(text or "") for text in (connection.login, connection.password))
    return f"{module} required username={user} password={password};"


def _quoted(text: str) -> str:
    """A value of sasl.jaas.config."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _escaped(value: str) -> str:
    """A value as a line of a file of properties has it."""
    return value.replace("\\", "\\\\").replace("\n", "\\n")
