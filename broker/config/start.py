"""What a start takes its configuration from: a file, then single keys over it."""

from collections.abc import Sequence
from pathlib import Path

from broker.config import properties
from broker.config.settings import Settings, given_overrides
from broker.errors import ConfigError


def read_settings(file: Path | None, overrides: Sequence[str]) -> Settings:
    """The configuration of a server.properties with `key=value` overrides.

    Raises:
        ConfigError: the file can't be read, or a value can't be used.
    """
    given = {}
    if file is not None:
        try:
            given = properties.parse(file.read_text(encoding="utf-8"), str(file))
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"{file} can't be read: {getattr(error, 'strerror', None) or error}") from error
    return Settings(given | given_overrides(overrides))


def log_directory(settings: Settings, asked: Path | None) -> Path:
    """The one log directory: the one asked for, else log.dirs, else log.dir.

    Raises:
        ConfigError: none, or several.
    """
    if asked is not None:
        return asked
    text = settings.text("log.dirs") or settings.text("log.dir")
    named = [part.strip() for part in text.split(",") if part.strip()]
    if not named:
        raise ConfigError("no log directory: give --log-dir DIR, or log.dirs in the configuration")
    if len(named) > 1:
        raise ConfigError(f"log.dirs={text}: this broker writes to one directory only; give --log-dir DIR")
    return Path(named[0])
