"""The light broker."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sharelens.cli.options.common import NewPath, examples
from sharelens.output import say, tell
from state_model.errors import UsageError

if TYPE_CHECKING:
    from sharelens.broker.broker import Broker
    from sharelens.broker.config.settings import Settings


@click.group(
    name="broker",
    short_help="A single-node Kafka broker for share groups, without a JVM.",
    epilog=examples("sharelens broker start --listen 127.0.0.1:9092 --log-dir ./broker-log"),
)
def broker_group() -> None:
    """A single-node broker that unmodified Kafka clients talk to, and that writes real log segments."""


@broker_group.command(
    short_help="Runs the broker until SIGTERM.",
    epilog=examples(
        "sharelens broker start --listen 127.0.0.1:9092 --log-dir ./broker-log",
        "sharelens broker start --listen 127.0.0.1:0 --log-dir ./broker-log --set group.share.delivery.count.limit=3",
        "sharelens broker start --config server.properties --feature share.version=2",
        "sharelens broker start --log-dir ./broker-log --fault append=__share_group_state,action=torn,after=100",
    ),
)
@click.option(
    "--listen",
    metavar="HOST:PORT",
    help="Address to listen on; port 0: any free port  [default: listeners, else 127.0.0.1:9092]",
)
@click.option(
    "--log-dir",
    metavar="DIR",
    type=NewPath(path_type=Path),
    help="The log directory: new, empty or the broker's own.",
)
@click.option("--config", "config_file", metavar="FILE", type=click.Path(path_type=Path), help="A server.properties.")
@click.option(
    "--set", "overrides", metavar="KEY=VALUE", multiple=True, help="One configuration in Kafka's name. Repeatable."
)
@click.option(
    "--feature", "features", metavar="NAME=LEVEL", multiple=True, help="A feature's level, such as share.version=2."
)
@click.option(
    "--kafka-version",
    type=click.Choice(["4.3", "4.4"]),
    help="Version whose rules the coordinators follow  [default: that of share.version]",
)
@click.option(
    "--fault",
    "faults",
    metavar="RULE",
    multiple=True,
    help="A rule of fault injection, such as api=ShareAcknowledge,action=drop,probability=0.1. Repeatable.",
)
@click.option(
    "--add-scram",
    "scram_users",
    metavar="USER",
    multiple=True,
    help="A user of SCRAM, such as SCRAM-SHA-256=[name=NAME,password=PASSWORD], unless it exists. Repeatable.",
)
@click.option(
    "--add-scram-file",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="A file with a line for each user of SCRAM, as --add-scram takes them.",
)
@click.option(
    "--allow-remote", is_flag=True, help="Allow addresses that other machines can reach, without authentication."
)
@click.option(
    "--metrics-port",
    type=click.IntRange(0, 65535),
    help="Serve metrics for Prometheus at http://127.0.0.1:PORT/metrics; 0: any free port  [default: not served]",
)
def start(
    listen: str | None,
    log_dir: Path | None,
    config_file: Path | None,
    overrides: tuple[str, ...],
    features: tuple[str, ...],
    kafka_version: str | None,
    faults: tuple[str, ...],
    scram_users: tuple[str, ...],
    add_scram_file: Path | None,
    allow_remote: bool,
    metrics_port: int | None,
) -> None:
    """Runs the broker until SIGTERM; prints one line when clients can connect."""
    try:
        from sharelens.broker import process
        from sharelens.broker.broker import Options
        from sharelens.broker.config.listeners import listeners
        from sharelens.broker.config.start import log_directory, read_settings
        from sharelens.broker.faults import parse_fault
        from sharelens.broker.features import parse
        from sharelens.broker.security.scram_options import read_scram_users
    except ModuleNotFoundError as missing:
        raise UsageError(f"the broker needs {missing.name}: pip install 'sharelens[broker]'") from missing
    settings = read_settings(config_file, overrides)
    _tell_of_keys(settings)
    options = Options(
        log_dir=log_directory(settings, log_dir),
        listeners=listeners(settings, listen=listen, allow_remote=allow_remote),
        features=parse(features),
        kafka_version="4.4" if kafka_version == "4.4" else "4.3" if kafka_version == "4.3" else None,
        faults=[parse_fault(text) for text in faults],
        scram_users=read_scram_users(scram_users, add_scram_file),
    )
    process.run(settings, options, _ready, metrics_port=metrics_port)


def _tell_of_keys(settings: "Settings") -> None:
    """Logs the configuration keys without effect."""
    from sharelens.broker.config.listeners import controller_listeners

    ignored = [*controller_listeners(settings), *settings.given_keys.ignored]
    if ignored:
        say(f"sharelens: without effect here: {', '.join(ignored)}")
    for key in settings.given_keys.unknown:
        say(f"sharelens: unknown configuration {key}")


def _ready(served: "Broker", metrics_address: tuple[str, int] | None) -> None:
    addresses = ",".join(f"{host}:{port}" for host, port in served.addresses)
    metrics = "" if metrics_address is None else " metrics={}:{}".format(*metrics_address)
    tell(f"ready: {addresses} cluster={served.cluster_id} log-dir={served.log_dir}{metrics}")
    sys.stdout.flush()


COMMANDS = (broker_group,)
