"""The command `demo`."""

import shutil
import tempfile
from pathlib import Path

import click

from sharelens.cli.options.common import ensure_name, examples
from state_model.errors import UsageError


@click.command(
    short_help="A demonstration with a broker, a lake and answers.",
    epilog=examples(
        "sharelens demo", "sharelens demo --explore", "sharelens demo --keep", "sharelens demo --lake ./demo-lake"
    ),
)
@click.option("--lake", metavar="DIR", help="Write the lake to this new or empty folder  [default: a temporary one]")
@click.option("--keep", is_flag=True, help="Leave the log, the lake and the report where they are written.")
@click.option(
    "--explore", is_flag=True, help="At the end, serve the pages of `sharelens explore` over the demo's lake."
)
@click.option(
    "--set",
    "data_set",
    type=click.Choice(["live", "basic", "dlq"]),
    help="live: start a broker and clients; others: recorded logs  [default: live where it can run]",
)
def demo(lake: str | None, keep: bool, explore: bool, data_set: str | None) -> None:
    """Demonstration: a broker, a producer and share consumers with faults; their log; a lake; its answers.

    The pipeline runs on Spark where that is installed, and once more in one process: the tables are equal.
    """
    from jobs.commands.demonstration import Places, demonstrate

    folder = Path(tempfile.mkdtemp(prefix="sharelens-demo-"))
    try:
        lake_folder = folder / "lake" if lake is None else _new_folder(lake)
        demonstrate(data_set, Places(folder=folder, lake=lake_folder, keep=keep, is_explored=explore))
    finally:
        if not keep:
            shutil.rmtree(folder, ignore_errors=True)


def _new_folder(lake: str) -> Path:
    """The folder of --lake. Raises UsageError for one in a bucket."""
    from sharelens.lake.local_storage import LocalStorage
    from sharelens.lake.locations import resolve

    ensure_name(lake, "--lake")
    storage = resolve(lake)
    if not isinstance(storage, LocalStorage):
        raise UsageError(f"--lake: {lake} is no folder of this machine; name a new one")
    return storage.path


COMMANDS = (demo,)
