"""The value of sasl.jaas.config: one login module with its options, for the broker's side (Kafka's JaasConfig)."""

import re
from collections.abc import Mapping
from typing import Final

from sharelens.broker.errors import ConfigError

MODULES: Final = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "OAUTHBEARER": "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule",
}
"""The login module of each mechanism."""
USER_PREFIX: Final = "user_"

_ENTRY = re.compile(
    r"\s*(?P<module>[\w.$]+)\s+(?:required|requisite|sufficient|optional)\b(?P<options>.*?);\s*",
    re.DOTALL | re.IGNORECASE,
)
_WORD = r"(?:\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|[^\s\"'=;]+)"
_OPTION = re.compile(rf"\s*(?P<name>{_WORD})\s*=\s*(?P<value>{_WORD})(?=\s|$)", re.DOTALL)


def jaas_options(text: str, mechanism: str, key: str) -> Mapping[str, str]:
    """The options of the login module of a mechanism; `key` names the value in messages, which show nothing of it.

    Raises:
        ConfigError: it is not exactly one login module with its semicolon, or that of another mechanism.
    """
    expected = MODULES[mechanism]
    entry = _ENTRY.fullmatch(text)
    if entry is None:
        raise ConfigError(f'{key} is not one login module; give {expected} required NAME="VALUE" …;')
    if entry["module"] != expected:
        raise ConfigError(f"{key} names another login module than that of {mechanism}; give {expected}")
    options: dict[str, str] = {}
    rest, at = entry["options"].rstrip(), 0
    while at < len(rest):
        option = _OPTION.match(rest, at)
        if option is None:
            raise ConfigError(f'{key} has options that are not NAME="VALUE"; quote values, and end with one semicolon')
        options[_unquoted(option["name"])] = _unquoted(option["value"])
        at = option.end()
    return options


def plain_users(options: Mapping[str, str]) -> Mapping[str, str]:
    """Passwords by user, of the options of PLAIN; those without `user_` are for the role of a client."""
    return {
        name.removeprefix(USER_PREFIX): password for name, password in options.items() if name.startswith(USER_PREFIX)
    }


def _unquoted(word: str) -> str:
    return re.sub(r"\\(.)", r"\1", word[1:-1], flags=re.DOTALL) if word[:1] in "\"'" else word
