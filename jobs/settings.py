"""The settings of the jobs: conf/base, then the environment's folder, then SHARELENS_ variables, then flags.

Merged once into a frozen value; no other module of the jobs reads the environment. conf/README.md describes the order.
"""

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Final, TypeVar

import yaml

from jobs.dag_settings import DagSettings, dag_settings
from jobs.quality.limits import Limits, limits_of
from state_model.errors import UsageError

Group = TypeVar("Group")
PREFIX: Final = "SHARELENS_"
DEFAULT_ENVIRONMENT: Final = "local"
PACKAGE: Final = Path(__file__).parent
SAFE_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""The compiled one where it is there: a command starts 35 ms sooner."""


class SettingsError(UsageError):
    """Raised when a setting is missing, unknown or of the wrong kind; the message lists every place looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the jobs can be told, fixed for the life of a run. conf/base says what each setting means."""

    environment: str
    master: str
    offline: bool
    jars_dir: Path | None
    lock_timeout_s: float
    split_bytes: int
    in_process_bytes: int
    spark_conf: tuple[tuple[str, str], ...]
    """Spark's own settings as sorted pairs: a tuple, so that settings stay hashable."""
    dags: DagSettings
    quality: Limits


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """One place that was looked at, with the settings found there."""

    place: str
    values: Mapping[str, object]


def load_settings(
    *,
    environment: str | None = None,
    flags: Mapping[str, object] | None = None,
    variables: Mapping[str, str] | None = None,
) -> Settings:
    """Merge all layers.

    Args:
        environment: folder beside conf/base; None takes SHARELENS_ENV, else `local`, and then it need not exist.
        flags: settings by name; None values are left out, so that unset options can be passed as they are.
        variables: the process environment; None takes os.environ.

    Raises:
        SettingsError: when any layer holds something unknown or unusable.
    """
    known_variables = os.environ if variables is None else variables
    named = environment or known_variables.get(f"{PREFIX}ENV")
    folder = _conf_folder(known_variables)
    layers = [
        *_file_layers(folder / "base", required=True),
        *_file_layers(folder / (named or DEFAULT_ENVIRONMENT), required=named is not None),
        _variable_layer(known_variables),
        Layer(place="flags", values={name: value for name, value in (flags or {}).items() if value is not None}),
    ]
    _refuse_unknown(layers)
    readers = {name: reader for name, reader in _READERS.items() if name not in MERGED}
    values = {name: _one_value(name, reader, layers) for name, reader in readers.items()}
    return Settings(
        environment=named or DEFAULT_ENVIRONMENT,
        spark_conf=tuple(sorted((key, str(value)) for key, value in _merged("spark_conf", layers).items())),
        dags=_read("dags", dag_settings, layers),
        quality=_read("quality", limits_of, layers),
        **values,  # type: ignore[arg-type]  # each reader returns the type of its field; a test pins that
    )


def conf_file(name: str, variables: Mapping[str, str] | None = None) -> Path:
    """The path of a file of conf/base that is not YAML, such as the JVM's logging set-up."""
    return _conf_folder(os.environ if variables is None else variables) / "base" / name


def _conf_folder(variables: Mapping[str, str]) -> Path:
    """The folder with base/: named, beside the packages (a checkout), or inside the package (a wheel)."""
    named = variables.get(f"{PREFIX}CONF_DIR")
    places = [Path(named)] if named else [PACKAGE.parent / "conf", PACKAGE / "conf"]
    for place in places:
        if (place / "base" / "jobs.yaml").is_file():
            return place
    looked = ", ".join(str(place / "base" / "jobs.yaml") for place in places)
    raise SettingsError(f"no configuration: looked for {looked}; set {PREFIX}CONF_DIR to the folder that holds base/")


def _file_layers(folder: Path, *, required: bool) -> list[Layer]:
    files = sorted(folder.glob("*.yaml"))
    if not files and required:
        there = sorted(path.name for path in folder.parent.iterdir() if path.is_dir())
        raise SettingsError(f"no settings in {folder}: it holds no *.yaml; environments there are {', '.join(there)}")
    if not files:
        return [Layer(place=f"{folder}/*.yaml (none)", values={})]
    return [Layer(place=str(path), values=_read_yaml(path)) for path in files]


def _read_yaml(path: Path) -> Mapping[str, object]:
    try:
        content = yaml.load(path.read_text(encoding="utf-8"), Loader=SAFE_LOADER)  # noqa: S506
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        reason = " ".join(str(error).split())
        raise SettingsError(f"{path} cannot be read as YAML ({reason}); mend or remove it") from error
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise SettingsError(f"{path} must hold settings by name, not a {type(content).__name__}")
    return content


def _variable_layer(variables: Mapping[str, str]) -> Layer:
    found = {name: variables[f"{PREFIX}{name.upper()}"] for name in _READERS if f"{PREFIX}{name.upper()}" in variables}
    return Layer(place=f"environment variables {PREFIX}*", values=found)


def _refuse_unknown(layers: list[Layer]) -> None:
    for layer in layers:
        unknown = sorted(str(name) for name in layer.values if name not in _READERS)
        if unknown:
            raise SettingsError(f"{layer.place}: unknown setting {unknown[0]!r}; there are {', '.join(_READERS)}")


def _one_value(name: str, reader: Callable[[object], object], layers: list[Layer]) -> object:
    """The value of the last layer that has one."""
    found = [layer for layer in layers if name in layer.values]
    if not found:
        raise SettingsError(f"setting {name} is nowhere: {_trace(name, layers)}")
    try:
        return reader(found[-1].values[name])
    except ValueError as error:
        raise SettingsError(f"setting {name} in {found[-1].place}: {error}; {_trace(name, layers)}") from None


def _merged(name: str, layers: list[Layer]) -> dict[str, object]:
    """A setting that is a mapping: the layers' values together, the later key over the earlier."""
    merged: dict[str, object] = {}
    for layer in layers:
        try:
            merged.update(_READERS[name](layer.values.get(name, {})))  # type: ignore[call-overload]
        except ValueError as error:
            raise SettingsError(f"setting {name} in {layer.place}: {error}") from None
    return merged


def _read(name: str, reader: Callable[[Mapping[str, object]], Group], layers: list[Layer]) -> Group:
    """A group of settings, merged key by key."""
    try:
        return reader(_merged(name, layers))
    except ValueError as error:
        raise SettingsError(f"setting {error}; {_trace(name, layers)}") from None


def _trace(name: str, layers: list[Layer]) -> str:
    """Every place looked at, the strongest first, with what it said."""
    said = [
        f"{layer.place}: {layer.values[name]!r}" if name in layer.values else f"{layer.place}: unset"
        for layer in reversed(layers)
    ]
    return "looked at " + "; ".join(said)


def _text(value: object) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError(f"{value!r} is not a text")
    return value


def _flag(value: object) -> bool:
    if isinstance(value, bool):
        return value
    words = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
    if isinstance(value, str) and value.lower() in words:
        return words[value.lower()]
    raise ValueError(f"{value!r} is neither true nor false")


def _path(value: object) -> Path | None:
    if value is None or value == "":
        return None
    if not isinstance(value, str | Path):
        raise ValueError(f"{value!r} is not a path")
    return Path(value).expanduser().absolute()


def _seconds(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError(f"{value!r} is not a number of seconds")
    try:
        seconds = float(value)
    except ValueError:
        raise ValueError(f"{value!r} is not a number of seconds") from None
    if not 0 <= seconds < float("inf"):
        raise ValueError(f"{value!r} is not a number of seconds from 0 on")
    return seconds


def _byte_count(value: object) -> int:
    count = _byte_count_or_none(value)
    if count == 0:
        raise ValueError(f"{value!r} is not a number of bytes above 0")
    return count


def _byte_count_or_none(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int | str) or not str(value).isdecimal():
        raise ValueError(f"{value!r} is not a number of bytes")
    return int(value)


def _mapping(value: object) -> dict[str, object]:
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except json.JSONDecodeError as error:
            raise ValueError(f"{value!r} is not a JSON object: {error}") from None
    if not isinstance(value, Mapping):
        raise ValueError(f"{value!r} does not map settings to values")
    return dict(value)


def _spark_conf(value: object) -> dict[str, str]:
    settings = _mapping(value)
    wrong = [key for key in settings if not str(key).startswith("spark.")]
    if wrong:
        raise ValueError(f"{wrong[0]!r} is no setting of Spark: they begin with spark.")
    return {key: _spark_value(key, item) for key, item in settings.items()}


def _spark_value(key: str, value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | int | float):
        return str(value)
    raise ValueError(f"the value {value!r} of {key} is not a text, number or truth value")


_READERS: Final[dict[str, Callable[[object], object]]] = {
    "master": _text,
    "offline": _flag,
    "jars_dir": _path,
    "lock_timeout_s": _seconds,
    "split_bytes": _byte_count,
    "in_process_bytes": _byte_count_or_none,
    "spark_conf": _spark_conf,
    "dags": _mapping,
    "quality": _mapping,
}
MERGED: Final = ("spark_conf", "dags", "quality")
"""Settings that are mappings, merged key by key."""
assert set(_READERS) == {field.name for field in fields(Settings)} - {"environment"}
