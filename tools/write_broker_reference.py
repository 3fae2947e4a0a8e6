"""Writes the generated reference pages of the light broker: python -m tools.write_broker_reference [--check].

docs/reference/broker-apis.md comes from the registry of handlers, docs/reference/broker-configuration.md from the
definitions in sharelens/broker/config.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from kio.schema.index import api_key_map, schema_name_map

from sharelens.broker.config.broker_keys import BROKER
from sharelens.broker.config.definitions import INT_MAX, LONG_MAX, Definition
from sharelens.broker.config.group_keys import BOUNDS, GROUP
from sharelens.broker.config.topic_keys import TOPIC
from sharelens.broker.handlers.all import MODULES
from sharelens.broker.handlers.rights.table import RULES
from sharelens.broker.protocol.registry import registered
from tools.written_pages import write_or_check

FOLDER = Path(__file__).parent.parent / "docs" / "reference"
APIS_HEAD = """# The light broker: APIs and versions

Written by `python -m tools.write_broker_reference` from the handlers. ApiVersions tells clients exactly this table. A
request of another API or version closes its connection, as Kafka does; too new an ApiVersions is answered in version 0.

*Rights* are what a client needs while `authorizer.class.name` is set: an operation on a resource, each of those with a
comma between them. They are Kafka 4.3's, also where KIP-932 says otherwise.
"""
NOT_ANSWERED = """
## Not answered

All other APIs that the message library knows. Most are between brokers and controllers, or for what a single node
does not have.
"""
CONFIGURATION_HEAD = """# The light broker: configuration

Written by `python -m tools.write_broker_reference` from `sharelens/broker/config`. Names, defaults and bounds are
those of Kafka 4.3. For other keys, and for keys without an effect, see
[the reference of the broker](broker.md).
"""
BROKER_TITLE = """## Broker

Set in a `server.properties`, with `--set`, or, where dynamic, with `kafka-configs --entity-type brokers`.
"""
GROUP_TITLE = """## Share and streams groups

Set with `kafka-configs --entity-type groups`. The broker's value is the default.
"""
TOPIC_TITLE = """## Topics

Set with `kafka-configs --entity-type topics`, or when a topic is created.
"""


def apis() -> str:
    """The page of APIs."""
    assert MODULES
    lines = [APIS_HEAD, "| key | API | versions | newest known | rights |", "|---|---|---|---|---|"]
    answered = registered()
    for key, api in sorted(answered.items()):
        newest = max(schema_name_map[api_key_map[key]])
        versions = f"{api.first_version} to {api.last_version}"
        lines.append(f"| {key} | {_api_name(key)} | {versions} | {newest} | {RULES[key].rights} |")
    unanswered_names = ", ".join(_api_name(key) for key in sorted(api_key_map) if key not in answered)
    return "\n".join([*lines, NOT_ANSWERED, unanswered_names, ""])


def configuration() -> str:
    """The page of configurations."""
    parts = [CONFIGURATION_HEAD]
    parts += _table(BROKER_TITLE, ("key", "default", "takes", "dynamic", "meaning"), BROKER, _broker_row)
    parts += _table(GROUP_TITLE, ("key", "default", "takes", "meaning"), GROUP, _group_row)
    parts += _table(TOPIC_TITLE, ("key", "default", "takes", "meaning"), TOPIC, _own_row)
    return "\n".join(parts)


def _table(
    title: str, heads: Sequence[str], definitions: Mapping[str, Definition], row: Callable[[Definition], Iterable[str]]
) -> list[str]:
    rows = [_line(row(definitions[name])) for name in sorted(definitions)]
    return [title, _line(heads), "|" + "---|" * len(heads), *rows, ""]


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _broker_row(setting: Definition) -> Iterable[str]:
    key, default, takes, meaning = _own_row(setting)
    return key, default, takes, "yes" if setting.is_dynamic else "", meaning


def _group_row(setting: Definition) -> Iterable[str]:
    key, default, takes, meaning = _own_row(setting)
    bounds = BOUNDS.get(setting.name)
    if bounds is not None:
        default, takes = f"`{setting.synonyms[0][0]}`", f"`{bounds.low}` to `{bounds.high}`"
    return key, default, takes, meaning


def _own_row(setting: Definition) -> tuple[str, str, str, str]:
    text = setting.text(setting.default)
    default = "" if not text else _number(int(text)) if text.lstrip("-").isdigit() else text
    return f"`{setting.name}`", default, _takes(setting), setting.doc


def _takes(setting: Definition) -> str:
    if setting.choices:
        return ", ".join(setting.choices)
    if setting.low is not None and setting.high is not None:
        return f"{_number(setting.low)} to {_number(setting.high)}"
    if setting.low is not None:
        return f"at least {_number(setting.low)}"
    return setting.kind.name.lower()


def _number(value: float) -> str:
    """A number, the largest ones by name."""
    return {INT_MAX: "largest int", LONG_MAX: "largest long"}.get(int(value), f"{value}")


def _api_name(key: int) -> str:
    return "".join(word.capitalize() for word in api_key_map[key].split("_"))


PAGES: Mapping[str, Callable[[], str]] = {"broker-apis.md": apis, "broker-configuration.md": configuration}


def main(arguments: Sequence[str] | None = None) -> int:
    """Writes the pages, or with --check says whether they are as they should be."""
    return write_or_check({FOLDER / name: page() for name, page in PAGES.items()}, arguments)


if __name__ == "__main__":
    raise SystemExit(main())
