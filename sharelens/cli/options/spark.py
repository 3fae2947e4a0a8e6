"""The options of commands that start Spark, the settings that they override, and the session."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import click

from sharelens.spark.engine import AUTO, IN_PROCESS, ON_SPARK
from state_model.errors import UsageError

if TYPE_CHECKING:
    from sharelens.configuration.settings import Settings

SPARK = [
    click.option("--offline", is_flag=True, default=None, help="Do not download Delta's jars."),
    click.option("--jars-dir", metavar="DIR", help="The folder with Delta's jars."),
    click.option("--master", metavar="URL", help="Spark master  [default: local[*]]"),
    click.option("--conf", metavar="K=V", multiple=True, help="A setting of Spark. Repeatable."),
]

ENGINE = click.option(
    "--engine",
    type=click.Choice([AUTO, ON_SPARK, IN_PROCESS]),
    default=AUTO,
    show_default=True,
    help="Where stages compute: on Spark, in this process, or by how much they read.",
)


def engine_settings(
    *,
    conf: Sequence[str] = (),
    offline: bool | None = None,
    jars_dir: str | None = None,
    master: str | None = None,
    lock_timeout: float | None = None,
) -> "Settings":
    """The settings of the jobs, overridden by options of SPARK and --lock-timeout."""
    from sharelens.configuration.settings import load_settings

    spark_conf = dict(map(_conf_pair, conf)) or None
    flags: dict[str, object] = {"offline": offline, "jars_dir": jars_dir, "master": master}
    return load_settings(flags={**flags, "lock_timeout_s": lock_timeout, "spark_conf": spark_conf})


def session_of(command: str, settings: "Settings") -> Callable[[], Any]:
    """Starts Spark for tasks of the pipeline when called; Spark itself is imported only then."""

    def session() -> Any:
        from sharelens.spark.session import spark_session

        return spark_session(command, settings, hands_out=True)

    return session


def _conf_pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise UsageError(f"--conf: {text!r} is not K=V; type --conf spark.executor.memory=4g")
    return name, value
