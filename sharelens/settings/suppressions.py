"""The suppressions of the audit: the file of --suppressions, else the setting `audit` of conf/."""

from sharelens.settings.text_files import read_text_file
from state_model.audit.suppression import Suppression, suppressions_of
from state_model.errors import UsageError

OPTION = "--suppressions"


def read_suppressions(path: str | None) -> tuple[Suppression, ...]:
    """The suppressions in a YAML file that holds a list of them; without a file those of conf/.

    Raises:
        SharelensError: the file can't be read.
        UsageError: it is no such list; the message names the first wrong entry.
    """
    if path is None:
        from sharelens.configuration.settings import load_settings

        return load_settings().audit.suppressions
    import yaml

    text = read_text_file(path, OPTION, "a list of suppressions")
    try:
        entries = yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError) as error:
        reason = " ".join(str(error).split())
        raise UsageError(f"{OPTION}: {path} can't be read as YAML ({reason})") from error
    except ValueError as error:  # a date that the calendar does not have
        raise UsageError(f"{OPTION}: {path} has a date that does not exist ({error}); type it as 2026-12-31") from error
    try:
        return suppressions_of(entries)
    except ValueError as error:
        raise UsageError(f"{OPTION}: {path}: {error}") from error
