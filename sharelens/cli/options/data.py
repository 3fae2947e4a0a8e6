"""The options that name a lake and log directories, with those of the store that they may lie in."""

from collections.abc import Callable, Sequence

import click

from sharelens.cli.options.common import Command, ensure_name, stacked

STORAGE_OPTION = "--storage-option"


def lake_option(help_text: str, *, required: bool = False) -> Callable[[Command], Command]:
    """--lake and --storage-option for a command, which gets `lake` alone: options go into the environment."""

    def add_options(command: Command) -> Command:
        return stacked(
            command,
            [
                click.option("--lake", metavar="DIR", required=required, callback=_lake, help=help_text),
                click.option(
                    STORAGE_OPTION,
                    metavar="NAME=VALUE",
                    multiple=True,
                    is_eager=True,
                    expose_value=False,
                    callback=_set,
                    help="For a lake or logs in a bucket: aws_region=…, aws_endpoint_url=… Repeatable.",
                ),
            ],
        )

    return add_options


def log_dir_option(
    help_text: str = "A broker's log directory, a copy, or a tar archive of it; a path or URI. Repeatable.",
) -> Callable[[Command], Command]:
    """--log-dir, beside `lake_option`; the command gets `log_dir`."""
    return click.option("--log-dir", metavar="DIR", multiple=True, callback=_log_dirs, help=help_text)


def without_values(words: Sequence[str]) -> list[str]:
    """The words of a command line without the values of --storage-option, for records of it: some are secrets."""
    shown = []
    for before, word in zip(["", *words], words, strict=False):
        option, equals, pair = word.partition("=")
        if before == STORAGE_OPTION:
            shown.append(f"{word.partition('=')[0]}=…")
        elif option == STORAGE_OPTION and equals:
            shown.append(f"{option}={pair.partition('=')[0]}=…")
        else:
            shown.append(word)
    return shown


def _set(_context: click.Context, _option: click.Parameter, pairs: Sequence[str]) -> None:
    """Puts the options of the command line into the environment, where those of the store's SDK are."""
    if pairs:
        from sharelens.object_stores.options import set_options

        set_options(pairs)


def _lake(_context: click.Context, _option: click.Parameter, lake: str | None) -> str | None:
    if lake is not None:
        ensure_name(lake, "--lake")
    _set_defaults_for([] if lake is None else [lake])
    return lake


def _log_dirs(_context: click.Context, _option: click.Parameter, log_dirs: tuple[str, ...]) -> tuple[str, ...]:
    for log_dir in log_dirs:
        ensure_name(log_dir, "--log-dir")
    _set_defaults_for(log_dirs)
    return log_dirs


def _set_defaults_for(addresses: Sequence[str]) -> None:
    """For what lies in a store, the environment gets the options of the configuration that it lacks."""
    if any("://" in address for address in addresses):
        from sharelens.configuration.settings import load_settings
        from sharelens.object_stores.options import set_defaults

        set_defaults(load_settings().storage_options)
