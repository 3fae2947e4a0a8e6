"""The configuration of a start: a file, then single keys that override it."""

from collections.abc import Sequence
from pathlib import Path

from sharelens.broker.config.settings import Settings, parse_overrides
from sharelens.broker.errors import ConfigError
from sharelens.kafka_formats import properties


def read_settings(file: Path | None, overrides: Sequence[str]) -> Settings:
    """The configuration of a server.properties with `key=value` overrides.

    Raises:
        ConfigError: the file can't be read, or a value can't be used.
    """
    configured = {}
    if file is not None:
        try:
            configured = properties.parse(file.read_text(encoding="utf-8"), str(file))
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(
                f"{file} can't be read: {getattr(error, 'strerror', None) or 'it is no text in UTF-8'}"
            ) from error
        except properties.PropertiesError as error:
            raise ConfigError(str(error)) from error
    return Settings(configured | parse_overrides(overrides))


def log_directory(settings: Settings, option: Path | None) -> Path:
    """The log directory: the option, else log.dirs, else log.dir.

    Raises:
        ConfigError: no log directory, or several.
    """
    if option is not None:
        return option
    text = settings.text("log.dirs") or settings.text("log.dir")
    named = [part.strip() for part in text.split(",") if part.strip()]
    if not named:
        raise ConfigError("no log directory: give --log-dir DIR, or log.dirs in the configuration")
    if len(named) > 1:
        raise ConfigError(f"log.dirs={text}: this broker writes to one directory only; give --log-dir DIR")
    return Path(named[0])
