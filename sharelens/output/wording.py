"""Numbers, times, names and command lines as a page writes them."""

import shlex
from collections.abc import Iterable
from datetime import timedelta

from sharelens.output import name_cell
from sharelens.output.terminal import visible
from sharelens.parameters.request import Source
from sharelens.parameters.times import EPOCH, FIRST_MS, LAST_MS, time_text

UNKNOWN = "–"
LONGEST_NAME = 48


def number(value: int | None) -> str:
    """With thousands separators; a dash where it is unknown."""
    return UNKNOWN if value is None else f"{value:,}"


def counted(count: int, singular: str, plural: str | None = None) -> str:
    """`1 record`, `1,203 records`."""
    return f"{count:,} {singular if count == 1 else plural or singular + 's'}"


def moment(epoch_ms: int | None) -> str:
    """`2026-11-21 03:12:05` in UTC; a dash for an unknown time, the bare number outside the years 1 to 9999."""
    if epoch_ms is None or epoch_ms <= 0:
        return UNKNOWN
    if not FIRST_MS <= epoch_ms <= LAST_MS:
        return time_text(epoch_ms)
    return (EPOCH + timedelta(milliseconds=epoch_ms)).strftime("%Y-%m-%d %H:%M:%S")


def clock(epoch_ms: int | None, now_ms: int) -> str:
    """The time alone where it is on the day of `now_ms`, else with the date."""
    text, now = moment(epoch_ms), moment(now_ms)
    return text[11:] if len(text) == len(now) and text[:11] == now[:11] else text


def offsets(first: int, last: int | None) -> str:
    """`4,711` or `4,711 – 4,720`."""
    return number(first) if last is None or last == first else f"{number(first)} – {number(last)}"


def name(text: object) -> str:
    """A name as one word, everything that is not a printable letter escaped."""
    return name_cell(text)


def short(text: object, most: int = LONGEST_NAME) -> str:
    """A name that fits into a chart: the middle of a long one is left out."""
    shown = name(text)
    half = (most - 1) // 2
    return shown if len(shown) <= most else f"{shown[:half]}…{shown[-half:]}"


def topic_name(topic: object, topic_id: object) -> str:
    """The name of a topic, its id where the name is unknown."""
    return name(topic if topic is not None else topic_id)


def place(topic: object, topic_id: object, partition: int) -> str:
    """`payments-3`: a topic partition as Kafka writes it."""
    return f"{topic_name(topic, topic_id)}-{partition}"


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
