"""Command lines that ask a question of the same evidence."""

import shlex
from collections.abc import Iterable

from sharelens.output.terminal import visible
from sharelens.source.request import Source

TAKE_SINGLE_FILES = frozenset(
    {"stalled", "pinned", "poison", "dlq", "overview", "timeline", "report", "evidence", "audit"}
)
"""Commands with the options --group-configs and --broker-config."""


def command(source: Source, name: str, options: Iterable[str]) -> str:
    """A command line: the command, the path of the evidence, the options; quoted for a shell.

    `options` are whole words (`--group=NAME`), so that a name that begins with a dash stays a value.
    """
    words = ["sharelens", *name.split()]
    words += ["--lake", source.lake] if source.lake is not None else []
    if source.live is not None:
        address = source.live.address
        words += ["--bootstrap-server", address.bootstrap_server]
        words += [] if address.config_file is None else [f"--command-config={address.config_file}"]
    for directory in () if source.live is not None else source.log_dirs:
        words += ["--log-dir", directory]
    words += [f"--cluster-id={source.cluster_id}"] if source.cluster_id is not None else []
    words += ["--include-uncommitted"] if source.include_uncommitted and name != "audit" else []
    words += ["--include-deleted"] if source.include_deleted else []
    files = source.settings_files
    is_in_folder = files is not None and source.topic_names == files.topics
    words += [f"--topic-names={source.topic_names}"] if source.topic_names is not None and not is_in_folder else []
    words += [] if files is None or files.folder is None else [f"--settings={files.folder}"]
    if files is not None and name in TAKE_SINGLE_FILES:
        words += [] if files.group_configs is None else [f"--group-configs={files.group_configs}"]
        words += [] if files.broker_config is None else [f"--broker-config={files.broker_config}"]
    return " ".join(_typed(word) for word in [*words, *options])


def _typed(word: str) -> str:
    """One word for a shell; letters that don't print go into its $'…' form."""
    if word.isprintable():
        return shlex.quote(word)
    return "$'" + visible(word).replace("'", "\\'") + "'"
