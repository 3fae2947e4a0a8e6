"""doctor and demo."""

import tempfile
from pathlib import Path

import click

from sharelens.cli.data_options import lake_option, log_dir_option
from sharelens.cli.options import BOOTSTRAP, COMMAND_CONFIG, ensure_name, examples, output_options
from sharelens.output import Answer, Column, Shown, by_importance, name_column, say, show, text_column
from state_model.errors import UsageError

UNHEALTHY = 1


@click.command(
    short_help="Checks the requirements of a run.",
    epilog=examples(
        "sharelens doctor --lake ./lake --log-dir /var/kafka-copy",
        "sharelens doctor --bootstrap-server broker:9094 --command-config observer.properties",
    ),
)
@lake_option("Check the permissions of this lake too.")
@log_dir_option("Check that this log directory can be read. Repeatable.")
@BOOTSTRAP
@COMMAND_CONFIG
@output_options
def doctor(
    lake: str | None,
    log_dir: tuple[str, ...],
    bootstrap_server: str | None,
    command_config: str | None,
    shown: Shown,
) -> None:
    """Checks Python, Java, Delta's jars, disk, memory and directory permissions; prints remedies.

    With --bootstrap-server also a cluster: whether it answers, and the rights of this user to read it.
    """
    import pyarrow as pa

    from sharelens.doctor import run_checks

    checks = run_checks(lake=lake, log_dirs=log_dir)
    if bootstrap_server is not None or command_config is not None:
        from sharelens.live import address

        if (place := address(bootstrap_server, command_config, None)) is not None:
            from sharelens.doctor_cluster import check_cluster

            checks += check_cluster(place)
    rows = [
        {"check": check.name, "ok": check.ok, "detail": check.detail, "what_to_do": check.what_to_do}
        for check in checks
    ]
    columns = (
        name_column("CHECK", "check"),
        Column(heading="OK", cell=lambda row: "yes" if row["ok"] else "NO", fields=("ok",)),
        text_column("DETAIL", "detail"),
        text_column("WHAT-TO-DO", "what_to_do"),
    )
    schema = pa.schema(
        [("check", pa.string()), ("ok", pa.bool_()), ("detail", pa.string()), ("what_to_do", pa.string())]
    )
    ranked = by_importance(columns, "CHECK OK DETAIL WHAT-TO-DO")
    show(Answer(table=pa.Table.from_pylist(rows, schema=schema), columns=ranked), shown)
    failed = [check.name for check in checks if not check.ok]
    if failed:
        say(f"sharelens: {', '.join(failed)} not as needed")
        raise click.exceptions.Exit(UNHEALTHY)


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
    from sharelens.cli.demonstration import demonstrate

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


COMMANDS = (doctor, demo)
