"""The command `demo`."""

import tempfile
from pathlib import Path

import click

from sharelens.cli.options.common import ensure_name, examples
from state_model.errors import UsageError


@click.command(
    short_help="A demonstration with a broker, a lake and answers.",
    epilog=examples("sharelens demo", "sharelens demo --lake ./demo-lake"),
)
@click.option("--lake", metavar="DIR", help="Write the lake to this new or empty folder  [default: a temporary one]")
@click.option(
    "--set",
    "data_set",
    type=click.Choice(["live", "basic", "dlq"]),
    help="live: start a broker and clients; others: recorded logs  [default: live where it can run]",
)
def demo(lake: str | None, data_set: str | None) -> None:
    """Demonstration: a broker, a producer and share consumers with faults; their log; a lake; its answers."""
    from jobs.commands.demonstration import demonstrate

    if lake is not None:
        ensure_name(lake, "--lake")
        from sharelens.lake.local_storage import LocalStorage
        from sharelens.lake.locations import resolve

        storage = resolve(lake)
        if not isinstance(storage, LocalStorage):
            raise UsageError(f"--lake: {lake} is no folder of this machine; name a new one")
        demonstrate(data_set, storage.path)
        return
    with tempfile.TemporaryDirectory(prefix="sharelens-demo-") as folder:
        demonstrate(data_set, Path(folder) / "lake")


COMMANDS = (demo,)
