"""The settings of the jobs: conf/base, then the environment's folder, then SHARELENS_ variables, then flags.

Merged once into a frozen value; no other module of the jobs reads the environment. conf/README.md describes the order.
"""

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Final, Literal, Self

import yaml
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    NonNegativeInt,
    PlainValidator,
    PositiveInt,
    ValidationError,
    model_validator,
)
from pydantic_settings import BaseSettings, InitSettingsSource, PydanticBaseSettingsSource, SettingsConfigDict
from pydantic_settings.exceptions import SettingsError as SourceError

from sharelens.configuration.dags import DagSettings, Text
from sharelens.configuration.limits import DEFAULT_LIMITS, Limits
from state_model.audit.suppression import Suppression, suppressions_of
from state_model.errors import UsageError

PREFIX: Final = "SHARELENS_"
DEFAULT_ENVIRONMENT: Final = "local"
MASTER: Final = re.compile(
    r"local(\[(\*|[1-9][0-9]*)(\s*,\s*[1-9][0-9]*)?\])?"
    r"|local-cluster\[\s*[0-9]+\s*,\s*[0-9]+\s*,\s*[0-9]+\s*\]|yarn|(spark|k8s)://.+"
)
"""The master URLs of org.apache.spark.deploy.SparkSubmit and SparkMasterRegex."""
PACKAGE: Final = Path(__file__).parents[1]


class SettingsError(UsageError):
    """Raised when a setting is missing, unknown or of the wrong kind; the message lists every searched place."""


def _path(value: object) -> object:
    """Without a folder of its own a path would follow the caller's; an empty one is none."""
    if value == "":
        return None
    return Path(value).expanduser().absolute() if isinstance(value, str | Path) else value


def _spark_value(value: object) -> object:
    """The text that Spark reads for a truth value or a number."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int | float) else value


def _spark_name(name: str) -> str:
    if not name.startswith("spark."):
        raise ValueError("should be a setting of Spark, whose names begin with spark.")
    return name


SparkConf = Annotated[
    Mapping[Annotated[str, AfterValidator(_spark_name)], Annotated[str, BeforeValidator(_spark_value)]],
    AfterValidator(lambda conf: MappingProxyType(dict(conf))),
]
Positive = Annotated[float, Field(gt=0, lt=1e12)]


def _master(url: str) -> str:
    if not MASTER.fullmatch(url):
        raise ValueError("should be local, local[N], local[*] or yarn, or begin with spark:// or k8s://")
    return url


class QualitySettings(BaseModel):
    """The setting `quality` as conf/base/quality.yaml describes it; other values keep their defaults."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    fresh_within_s: Positive | None = None
    stale_after_s: Positive | None = None
    volume_low: Positive = DEFAULT_LIMITS.volume_low
    volume_high: Positive = DEFAULT_LIMITS.volume_high

    @model_validator(mode="after")
    def _is_a_range(self) -> Self:
        if self.volume_low > self.volume_high:
            raise ValueError(f"volume_low {self.volume_low:g} is above volume_high {self.volume_high:g}")
        return self

    def limits(self) -> Limits:
        """The limits in the units that the gates use."""
        return Limits(
            fresh_ms=DEFAULT_LIMITS.fresh_ms if self.fresh_within_s is None else int(self.fresh_within_s * 1000),
            stale_ms=None if self.stale_after_s is None else int(self.stale_after_s * 1000),
            volume_low=self.volume_low,
            volume_high=self.volume_high,
        )


class AuditSettings(BaseModel):
    """The setting `audit` as conf/base/audit.yaml describes it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    blocks: Literal["error", "warning"] | None = None
    suppressions: Annotated[tuple[Suppression, ...], PlainValidator(suppressions_of)] = ()


def _of_findings(entries: object) -> tuple[Suppression, ...]:
    """Suppressions of findings; the kinds are checked where they are known."""
    return suppressions_of(entries, lambda kind: (str(kind),))


class FindingSettings(BaseModel):
    """The setting `findings` as conf/base/findings.yaml describes it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    suppressions: Annotated[tuple[Suppression, ...], PlainValidator(_of_findings)] = ()


class Settings(BaseSettings):
    """All settings of the jobs, fixed for the life of a run. conf/base describes each."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, frozen=True, extra="forbid")

    environment: Text
    master: Annotated[Text, AfterValidator(_master)]
    offline: bool
    jars_dir: Annotated[Path | None, BeforeValidator(_path)]
    lock_timeout_s: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    split_bytes: PositiveInt
    in_process_bytes: NonNegativeInt
    spark_conf: SparkConf
    storage_options: Mapping[str, str] = Field(default_factory=dict)
    dags: DagSettings
    quality: QualitySettings = QualitySettings()
    audit: AuditSettings = AuditSettings()
    findings: FindingSettings = FindingSettings()

    def limits(self) -> Limits:
        """The limits of the quality gates: of `quality`, and of `audit`."""
        return replace(self.quality.limits(), audit_blocks=self.audit.blocks, suppressions=self.audit.suppressions)

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Flags, variables, the environment's files, the files of conf/base: the strongest first."""
        assert isinstance(init_settings, InitSettingsSource)
        layers = _file_layers(str(init_settings.init_kwargs["environment"]))
        files = [InitSettingsSource(settings_cls, dict(layer.values)) for layer in reversed(layers)]
        return (init_settings, env_settings, *files)


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """A searched place with its settings as written."""

    place: str
    values: Mapping[str, object]


def load_settings(*, environment: str | None = None, flags: Mapping[str, object] | None = None) -> Settings:
    """Merge all layers; mappings (spark_conf, dags, quality, audit, findings) are merged key by key.

    Args:
        environment: folder beside conf/base; None takes SHARELENS_ENV, else `local`, and then it need not exist.
        flags: settings by name; None values are left out, so that unset options can be passed as they are.

    Raises:
        SettingsError: a layer holds something unknown or unusable; the message names every searched place.
    """
    required = environment or os.environ.get(f"{PREFIX}ENV")
    if required:
        _require_environment(_conf_folder() / required)
    chosen = required or DEFAULT_ENVIRONMENT
    values = {name: value for name, value in (flags or {}).items() if value is not None}
    try:
        return Settings(**{**values, "environment": chosen})  # type: ignore[arg-type]  # pydantic checks them
    except ValidationError as error:
        raise SettingsError(_explained(error, _layers(chosen, values))) from None
    except SourceError:  # a variable that should hold JSON
        raise SettingsError(_not_json(_layers(chosen, values))) from None


def conf_file(name: str) -> Path:
    """The path of a file of conf/base that is not YAML, such as the JVM's logging set-up."""
    return _conf_folder() / "base" / name


def _conf_folder() -> Path:
    """The folder with base/: SHARELENS_CONF_DIR, beside the packages (a checkout), or inside the package (a wheel)."""
    named = os.environ.get(f"{PREFIX}CONF_DIR")
    places = [Path(named)] if named else [PACKAGE.parent / "conf", PACKAGE / "conf"]
    for place in places:
        if (place / "base" / "jobs.yaml").is_file():
            return place
    looked = ", ".join(str(place / "base" / "jobs.yaml") for place in places)
    raise SettingsError(f"no configuration: looked for {looked}; set {PREFIX}CONF_DIR to the folder that holds base/")


def _require_environment(folder: Path) -> None:
    if not list(folder.glob("*.yaml")):
        files = {path.name for path in (folder.parent / "base").glob("*.yaml")}
        environments = sorted({path.parent.name for path in folder.parent.glob("*/*.yaml") if path.name in files})
        raise SettingsError(f"no settings in {folder}: no *.yaml is there; environments are {', '.join(environments)}")


def _layers(environment: str, flags: Mapping[str, object]) -> list[Layer]:
    """Every source of settings, the weakest first."""
    names = {name: f"{PREFIX}{name.upper()}" for name in Settings.model_fields}
    variables = {name: os.environ[variable] for name, variable in names.items() if variable in os.environ}
    return [
        *_file_layers(environment),
        Layer(place=f"environment variables {PREFIX}*", values=variables),
        Layer(place="flags", values=flags),
    ]


def _file_layers(environment: str) -> list[Layer]:
    layers = []
    for folder in (_conf_folder() / "base", _conf_folder() / environment):
        files = sorted(folder.glob("*.yaml"))
        layers += [Layer(place=str(path), values=_read_yaml(path)) for path in files]
        layers += [] if files else [Layer(place=f"{folder}/*.yaml (none)", values={})]
    return layers


def _read_yaml(path: Path) -> Mapping[str, object]:
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        reason = " ".join(str(error).split())
        raise SettingsError(f"{path} cannot be read as YAML ({reason}); mend or remove it") from error
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise SettingsError(f"{path} must hold settings by name, not a {type(content).__name__}")
    return {str(name): value for name, value in content.items()}


def _explained(error: ValidationError, layers: Sequence[Layer]) -> str:
    """The first error in one line: the setting, its place, every searched place."""
    first = error.errors(include_url=False)[0]
    name = str(first["loc"][0])
    path = ".".join(str(part) for part in first["loc"] if part != "[key]")
    match first["type"]:
        case "extra_forbidden":
            place = next((layer.place for layer in reversed(layers) if name in layer.values), "flags")
            where = f"{place}: unknown setting {path!r}"
            return f"{where}; there are {', '.join(_siblings(first['loc']))}"
        case "missing":
            return f"setting {path} is nowhere: {_trace(name, layers)}"
        case _:
            where = next((layer.place for layer in reversed(layers) if name in layer.values), "conf")
            reason = f"{first['msg'].removeprefix('Value error, ')}, not {first['input']!r}"
            return f"setting {path} in {where}: {' '.join(reason.split())}; {_trace(name, layers)}"


def _siblings(path: Sequence[int | str]) -> list[str]:
    """The known settings beside an unknown one."""
    groups: dict[int | str, type[BaseModel]] = {"dags": DagSettings, "quality": QualitySettings, "audit": AuditSettings}
    group = Settings if len(path) == 1 else groups[path[0]]
    return [name for name in group.model_fields if name != "environment"]


def _not_json(layers: Sequence[Layer]) -> str:
    """Which variable is not the JSON object that it must be."""
    variables = next(layer for layer in layers if layer.place.startswith("environment variables"))
    for name in ("spark_conf", "storage_options", "dags", "quality", "audit"):
        text = str(variables.values.get(name, "{}"))
        try:
            json.loads(text)
        except ValueError as error:
            reason = f"{text!r} is not a JSON object ({error})"
            return f"setting {name} in {variables.place}: {reason}; {_trace(name, layers)}"
    return f"{variables.place}: one cannot be read"


def _trace(name: str, layers: Sequence[Layer]) -> str:
    """Every source, the strongest first, with its settings."""
    places = [
        f"{layer.place}: {layer.values[name]!r}" if name in layer.values else f"{layer.place}: unset"
        for layer in reversed(layers)
    ]
    return "looked at " + "; ".join(places)
