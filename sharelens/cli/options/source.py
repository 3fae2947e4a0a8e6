"""The options that name the evidence: a lake, log directories or a running cluster, and how to read them."""

import functools
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from sharelens.cli.interrupts import unwinding_on_sigterm
from sharelens.cli.options.common import (
    BOOTSTRAP,
    CLUSTER,
    COMMAND_CONFIG,
    DELETED,
    DLQ_PREFIX,
    DLQ_TOPIC,
    SETTINGS,
    TOPIC_NAMES,
    UNCOMMITTED,
    USER_TOPICS,
    Command,
    Size,
    stacked,
)
from sharelens.cli.options.data import lake_option, log_dir_option
from sharelens.output import say_warnings
from sharelens.source.request import DEFAULT_MAX_BYTES, Source
from state_model.errors import UsageError

if TYPE_CHECKING:
    from sharelens.live.cluster import LiveCluster
    from sharelens.settings.files import SettingsFiles


def evidence_options(command: Command) -> Command:
    """--lake, --log-dir or --bootstrap-server with their options; the command gets `source`."""

    @functools.wraps(command)
    def gathered(
        *args: Any,
        lake: str | None,
        log_dir: tuple[str, ...],
        bootstrap_server: str | None,
        command_config: str | None,
        user_topics: str | None,
        cluster_id: str | None,
        include_uncommitted: bool,
        include_deleted: bool,
        topic_names: str | None,
        settings: str | None,
        max_bytes: int,
        **other_options: Any,
    ) -> None:
        if [lake is None, not log_dir, bootstrap_server is None].count(False) != 1:
            raise UsageError(
                "give either --lake DIR (the tables) or --log-dir DIR (a broker's log directory), or "
                "--bootstrap-server HOST:PORT (a running cluster)"
            )
        if not log_dir and (include_uncommitted or include_deleted or (lake is not None and topic_names)):
            raise UsageError(
                "--include-uncommitted, --include-deleted and --topic-names go with --log-dir; for a lake, with `run`; "
                "a cluster gives committed records alone"
            )
        files = None if settings is None else _settings_files(settings)
        source = Source(
            lake=lake,
            log_dirs=_log_directories(log_dir) if log_dir else (),
            cluster_id=cluster_id,
            include_uncommitted=include_uncommitted,
            include_deleted=include_deleted,
            topic_names=topic_names or (files.topics if files is not None and lake is None else None),
            max_bytes=max_bytes,
            settings_files=files,
            live=live_cluster(bootstrap_server, command_config, user_topics, max_bytes),
        )
        command(*args, source=source, **other_options)

    return stacked(
        gathered,
        [
            lake_option("The lake that `sharelens run` wrote."),
            log_dir_option(),
            BOOTSTRAP,
            COMMAND_CONFIG,
            USER_TOPICS,
            CLUSTER,
            UNCOMMITTED,
            DELETED,
            TOPIC_NAMES,
            SETTINGS,
            click.option(
                "--max-bytes",
                type=Size(),
                default=DEFAULT_MAX_BYTES,
                show_default="2G",
                help="Largest state log to read.",
            ),
        ],
    )


def _log_directories(places: tuple[str, ...]) -> tuple[str, ...]:
    from sharelens.kafka_log.archives import log_directories

    return log_directories(places)


def _settings_files(folder: str) -> "SettingsFiles":
    from sharelens.settings.folder import read_settings_folder

    files = read_settings_folder(folder)
    say_warnings(files.warnings)
    return files


def live_cluster(
    bootstrap_server: str | None, command_config: str | None, user_topics: str | None, max_bytes: int
) -> "LiveCluster | None":
    """The cluster; its connections end, and its copy goes, when the command ends."""
    if bootstrap_server is None and command_config is None and user_topics is None:
        return None
    from state_model.columnar.startup import import_arrow_without_pandas

    import_arrow_without_pandas()
    from sharelens.live.cluster import LiveCluster, UserTopics, address

    place = address(bootstrap_server, command_config, user_topics)
    if place is None:
        return None
    cluster = LiveCluster(place, UserTopics(user_topics or "samples"), most_bytes=max_bytes)
    context = click.get_current_context()
    context.with_resource(unwinding_on_sigterm())
    context.call_on_close(cluster.close)
    return cluster


def dead_letter_options(command: Command) -> Command:
    """--dlq-topic and --dlq-prefix; they become part of `source`. Apply it below evidence_options."""

    @functools.wraps(command)
    def gathered(
        *args: Any, source: Source, dlq_topic: tuple[str, ...], dlq_prefix: str | None, **other_options: Any
    ) -> None:
        command(*args, source=replace(source, dlq_topics=dlq_topic, dlq_prefix=dlq_prefix), **other_options)

    return stacked(gathered, [DLQ_TOPIC, DLQ_PREFIX])
