"""What a run reads, as options of the command line say it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from sharelens.cli.asking import parameters
from sharelens.cli.moments import dated
from sharelens.cli.options.common import Command, Size, Time, becomes
from sharelens.parameters.times import BeforeEnd, Rounding, TimeOfDay
from sharelens.question_table.shared import (
    BOOTSTRAP,
    CLUSTER,
    COMMAND_CONFIG,
    DELETED,
    DLQ_PREFIX,
    DLQ_TOPIC,
    LOG_DIR,
    SETTINGS,
    TOPIC_NAMES,
    UNCOMMITTED,
    USER_TOPICS,
)
from state_model.errors import UsageError

if TYPE_CHECKING:
    from jobs.options import Fetch


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The values of the options, under their names; without any a run reads the lake alone.

    `until`: only records with log times below it, in epoch ms. `max_bytes`: about the most to fetch from a cluster in
    one run.
    """

    log_dir: tuple[str, ...] = ()
    bootstrap_server: str | None = None
    command_config: str | None = None
    user_topics: str | None = None
    max_bytes: int | None = None
    until: int | TimeOfDay | BeforeEnd | None = None
    cluster_id: str | None = None
    include_uncommitted: bool = False
    include_deleted: bool = False
    topic_names: str | None = None
    settings: str | None = None
    dlq_topic: tuple[str, ...] = ()
    dlq_prefix: str | None = None
    dlq_values: str = "hash"

    def fetching(self, rebuild: str | None) -> "Fetch | None":
        """Fetches from the cluster that the options name; None without one.

        Raises:
            UsageError: options of a cluster with those of log directories.
            ClusterError: the cluster does not answer.
        """
        if self.max_bytes is not None and self.bootstrap_server is None:
            raise UsageError("--max-bytes goes with --bootstrap-server")
        named = (self.bootstrap_server, self.command_config, self.user_topics)
        if all(value is None for value in named):
            return None
        from sharelens.live.cluster import UserTopics, address

        place = address(*named)
        if place is None:
            return None
        excluded = {
            "--log-dir": self.log_dir,
            "--include-uncommitted": self.include_uncommitted,
            "--include-deleted": self.include_deleted,
            "--rebuild": rebuild,
        }
        for option, value in excluded.items():
            if value:
                raise UsageError(f"--bootstrap-server and {option} exclude each other; leave one of them out")
        from jobs.ingest.cluster import DEFAULT_FETCHED_BYTES, ClusterOfRuns
        from sharelens.kafka_live.connection import Connection

        with Connection(place.bootstrap_server, place.config):  # before there is a lake
            cluster = ClusterOfRuns(
                address=place,
                user_topics=UserTopics(self.user_topics or "samples"),
                most_bytes=self.max_bytes or DEFAULT_FETCHED_BYTES,
            )
        return cluster.fetch

    def until_ms(self, log_dirs: Sequence[str]) -> int | None:
        """The moment below which log times lie; a time of day is the newest one in these log directories.

        Raises:
            SharelensError: they can't be read.
        """
        if not isinstance(self.until, TimeOfDay | BeforeEnd):
            return self.until
        from sharelens.source.request import Source
        from sharelens.tables.ends import GOES_ON, evidence_end

        source = Source(log_dirs=tuple(log_dirs), cluster_id=self.cluster_id, include_deleted=self.include_deleted)
        until_ms: int = dated({"until": self.until}, evidence_end(source) if log_dirs else GOES_ON)["until"]
        return until_ms


NOTHING_TO_READ = Reading()
READING = becomes(
    "reading",
    Reading,
    parameters(LOG_DIR, BOOTSTRAP, COMMAND_CONFIG, USER_TOPICS),
    click.option(
        "--max-bytes",
        type=Size(),
        metavar="SIZE",
        help="With --bootstrap-server, about the most to fetch in one run; the next one goes on.  [default: 4G]",
    ),
    click.option(
        "--until",
        type=Time(Rounding.UP),
        metavar="TIME",
        help="Ingest only records with log times before TIME.",
    ),
    parameters(CLUSTER, UNCOMMITTED, DELETED, TOPIC_NAMES, SETTINGS, DLQ_TOPIC, DLQ_PREFIX),
    click.option(
        "--dlq-values",
        type=click.Choice(["hash", "keep"]),
        default="hash",
        show_default=True,
        help="Keys and values of dead letters: keep their size and SHA-256, or the bytes (bronze.log_record).",
    ),
)
READING_OF_SETTINGS: Callable[[Command], Command] = becomes("reading", Reading, parameters(CLUSTER, SETTINGS))
"""For a stage that reads the lake, and settings of groups."""
