"""Command lines that ask a question of the same evidence."""

from collections.abc import Iterable

from sharelens.parameters.times import time_text
from sharelens.shell import option_words, shell_line
from sharelens.source.request import CutChoice, Source

TAKE_SINGLE_FILES = frozenset(
    {"stalled", "pinned", "poison", "dlq", "overview", "timeline", "report", "evidence", "audit"}
)
"""Commands with the options --group-configs and --broker-config."""
TAKE_NO_CUT = frozenset({"audit", "records", "trace", "moments", "diff", "locate", "rebalances", "status"})
TAKE_NO_OFFSETS = TAKE_NO_CUT | {"groups", "describe", "configurations"}
"""Questions without --as-of, and those without --at-offset."""


def command(source: Source, name: str, options: Iterable[str]) -> str:
    """A command line: the command, the path of the evidence, the options; quoted for a shell.

    `options` are whole words (`--group=NAME`), so that a name that begins with a dash stays a value.
    """
    words = ["sharelens", *name.split()]
    words += option_words("--lake", source.lake) if source.lake is not None else ()
    if source.live is not None:
        address = source.live.address
        words += ["--bootstrap-server", address.bootstrap_server]
        words += [] if address.config_file is None else [f"--command-config={address.config_file}"]
    for directory in () if source.live is not None else source.named_dirs or source.log_dirs:
        words += option_words("--log-dir", directory)
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
    return shell_line([*words, *options])


def cut_options(name: str, cut: CutChoice) -> list[str]:
    """The cut of an answer as options of a further question, as far as it takes them."""
    moment = [] if cut.as_of_ms is None or name in TAKE_NO_CUT else [f"--as-of={time_text(cut.as_of_ms)}"]
    places = {} if cut.at_offsets is None or name in TAKE_NO_OFFSETS else cut.at_offsets
    return [*moment, *(f"--at-offset={partition}:{offset}" for partition, offset in sorted(places.items()))]
