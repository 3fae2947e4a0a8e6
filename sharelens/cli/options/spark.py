"""The options of commands that start Spark, the settings that they override, and the session."""

from collections.abc import Callable
from typing import Any

import click

from state_model.errors import UsageError

SPARK = [
    click.option("--offline", is_flag=True, default=None, help="Do not download Delta's jars."),
    click.option("--jars-dir", metavar="DIR", help="The folder with Delta's jars."),
    click.option("--master", metavar="URL", help="Spark master  [default: local[*]]"),
    click.option("--conf", metavar="K=V", multiple=True, help="A setting of Spark. Repeatable."),
]
FLAGS = ("offline", "jars_dir", "master")


def engine_settings(params: dict[str, Any]) -> Any:
    """The settings of the jobs, overridden by options of SPARK and --lock-timeout, which leave `params`."""
    from sharelens.configuration.settings import load_settings

    conf = dict(map(_conf_pair, params.pop("conf", ())))
    flags: dict[str, object] = {name: params.pop(name, None) for name in FLAGS}
    flags["lock_timeout_s"] = params.pop("lock_timeout", None)
    flags["spark_conf"] = conf or None
    return load_settings(flags=flags)


def session_of(command: str, settings: Any) -> Callable[[], Any]:
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
