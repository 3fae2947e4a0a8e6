"""The source that the parameters of a question describe."""

from typing import TYPE_CHECKING

from sharelens.output import say_warnings
from sharelens.source.request import Source
from state_model.errors import UsageError

if TYPE_CHECKING:
    from sharelens.live.cluster import LiveCluster
    from sharelens.settings.files import SettingsFiles


def source(
    *,
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
    dlq_topic: tuple[str, ...] = (),
    dlq_prefix: str | None = None,
    group_configs: str | None = None,
    broker_config: str | None = None,
) -> Source:
    """A lake, log directories or a cluster, with the files of settings, whose warnings are printed.

    Raises:
        UsageError: not exactly one of them, or options that it doesn't have.
        SharelensError: a file can't be read.
    """
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
    files = None if settings is None else _settings_folder(settings)
    topics_of_folder = files.topics if files is not None and lake is None else None
    log_dirs = _log_directories(log_dir)
    live = live_cluster(bootstrap_server, command_config, user_topics, max_bytes)
    return Source(
        lake=lake,
        log_dirs=log_dirs,
        named_dirs=log_dir,
        cluster_id=cluster_id,
        include_uncommitted=include_uncommitted,
        include_deleted=include_deleted,
        topic_names=topic_names or topics_of_folder,
        max_bytes=max_bytes,
        dlq_topics=dlq_topic,
        dlq_prefix=dlq_prefix,
        settings_files=_with_single_files(files, group_configs, broker_config),
        live=live,
    )


def metadata_source(*, lake: str | None, log_dir: tuple[str, ...], cluster_id: str | None, max_bytes: int) -> Source:
    """A lake, or log directories with the metadata log.

    Raises:
        UsageError: not exactly one of them.
    """
    if (lake is None) == (not log_dir):
        raise UsageError("give either --lake DIR (the tables) or --log-dir DIR (a broker's log directory)")
    log_dirs = _log_directories(log_dir)
    return Source(lake=lake, log_dirs=log_dirs, named_dirs=log_dir, cluster_id=cluster_id, max_bytes=max_bytes)


def live_cluster(
    bootstrap_server: str | None, command_config: str | None, user_topics: str | None, max_bytes: int
) -> "LiveCluster | None":
    """The cluster, which connects at its first use and must be closed; None without one.

    Raises:
        UsageError: options of a cluster without its address.
    """
    if bootstrap_server is None and command_config is None and user_topics is None:
        return None
    from state_model.columnar.startup import import_arrow_without_pandas

    import_arrow_without_pandas()
    from sharelens.live.cluster import LiveCluster, UserTopics, address

    place = address(bootstrap_server, command_config, user_topics)
    return None if place is None else LiveCluster(place, UserTopics(user_topics or "samples"), most_bytes=max_bytes)


def _log_directories(places: tuple[str, ...]) -> tuple[str, ...]:
    if not places:
        return ()
    from sharelens.kafka_log.archives import log_directories

    return log_directories(places)


def _settings_folder(folder: str) -> "SettingsFiles":
    from sharelens.settings.folder import read_settings_folder

    files = read_settings_folder(folder)
    say_warnings(files.warnings)
    return files


def _with_single_files(
    files: "SettingsFiles | None", group_configs: str | None, broker_config: str | None
) -> "SettingsFiles | None":
    """The files of a folder with those that are named one by one."""
    if group_configs is None and broker_config is None:
        return files
    from sharelens.settings.files import NO_SETTINGS_FILES
    from sharelens.settings.folder import with_single_files

    files = with_single_files(files or NO_SETTINGS_FILES, group_configs, broker_config)
    say_warnings(files.warnings)
    return files
