"""The command `doctor`: what a run requires of this machine and of a cluster."""

from dataclasses import replace

import click

from sharelens.cli.asking import parameters
from sharelens.cli.options.common import examples
from sharelens.output import Answer, Column, Shown, by_importance, name_column, say, show, text_column
from sharelens.question_table.shared import BOOTSTRAP, COMMAND_CONFIG, LOG_DIR, OUTPUT, lake

UNHEALTHY = 1


@click.command(
    short_help="Checks the requirements of a run.",
    epilog=examples(
        "sharelens doctor --lake ./lake --log-dir /var/kafka-copy",
        "sharelens doctor --bootstrap-server broker:9094 --command-config observer.properties",
    ),
)
@parameters(
    *lake("Check the permissions of this lake too."),
    replace(LOG_DIR, help="Check that this log directory can be read. Repeatable."),
    BOOTSTRAP,
    COMMAND_CONFIG,
    *OUTPUT,
)
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

    from jobs.doctor.machine import run_checks

    checks = run_checks(lake=lake, log_dirs=log_dir)
    if bootstrap_server is not None or command_config is not None:
        from sharelens.live.cluster import address

        if (place := address(bootstrap_server, command_config, None)) is not None:
            from jobs.doctor.cluster import check_cluster

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


COMMANDS = (doctor,)
