"""The common parts of the DAGs: settings, tasks that call the command line, an asset for each published table.

A task calls `sharelens` once or several times, with lists of words: no shell reads them, so a group named
`; rm -rf ~` stays a name. The configuration (conf/README.md) decides whether Spark runs here or on a cluster.
"""

import os
import signal
from collections.abc import Sequence
from datetime import timedelta
from functools import cache
from typing import Any, ClassVar

from airflow.providers.standard.hooks.subprocess import SubprocessHook
from airflow.sdk import Asset, BaseOperator, Context
from airflow.sdk.exceptions import AirflowException, AirflowFailException

from jobs.dag_settings import DagSettings
from jobs.settings import load_settings

USAGE, FINDINGS = 2, 3
"""Exit codes of `sharelens` after which a retry fails in the same way."""
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
    """The setting `dags` of conf/; raises jobs.settings.SettingsError, which Airflow shows as an import error."""
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

    A word that Jinja renders empty is dropped together with the option before it: `["--until", "{{ … }}"]` is empty
    in a run without an interval. `folder` is created first, for its owner only. Returns the last line of the
    output, a job's JSON summary.

    Raises:
        AirflowFailException: the command was wrong, or a gate closed: no retry would help.
        AirflowException: it failed; a retry resumes where it stopped.
    """

    template_fields: ClassVar[Sequence[str]] = ("commands", "folder")

    def __init__(self, *, commands: Sequence[Sequence[str]], folder: str | None = None, **more: Any) -> None:
        super().__init__(**more)
        self.commands = [list(words) for words in commands]
        self.folder = folder
        self._hook: SubprocessHook | None = None

    def execute(self, context: Context) -> str:
        """Runs the commands."""
        last = ""
        if self.folder is not None:
            os.makedirs(self.folder, mode=0o700, exist_ok=True)
        for words in self.commands:
            last = self._run([*settings().command, *_without_empty(words)])
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
    kept: list[str] = []
    for word in words:
        if word:
            kept.append(word)
        elif kept and kept[-1].startswith("--"):
            kept.pop()
    return kept
