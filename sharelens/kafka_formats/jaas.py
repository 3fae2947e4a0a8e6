"""The value of sasl.jaas.config: one login module with its options (Kafka's JaasConfig)."""

import re
from typing import Final

from state_model.errors import SharelensError

_PACKAGE = "org.apache.kafka.common.security"
MODULES: Final = {
    "PLAIN": f"{_PACKAGE}.plain.PlainLoginModule",
    "SCRAM-SHA-256": f"{_PACKAGE}.scram.ScramLoginModule",
    "SCRAM-SHA-512": f"{_PACKAGE}.scram.ScramLoginModule",
    "OAUTHBEARER": f"{_PACKAGE}.oauthbearer.OAuthBearerLoginModule",
}
"""The login module of each mechanism."""

_ENTRY = re.compile(
    r"\s*(?P<module>[\w.$]+)\s+(?:required|requisite|sufficient|optional)\b(?P<options>.*?);\s*",
    re.DOTALL | re.IGNORECASE,
)
_WORD = r"(?:\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|[^\s\"'=;]+)"
_OPTION = re.compile(rf"\s*(?P<name>{_WORD})\s*=\s*(?P<value>{_WORD})(?=\s|$)", re.DOTALL)


class JaasError(SharelensError):
    """Raised when a value is not one login module of its mechanism.

    The message is a predicate, to stand behind the name of the key, and shows nothing of the value.
    """


def module_options(text: str, mechanism: str) -> dict[str, str]:
    """The options of the login module of a mechanism; the last value of a repeated option counts.

    Raises:
        JaasError: it is not exactly one login module with its semicolon, or that of another mechanism.
    """
    entry = _ENTRY.fullmatch(text)
    if entry is None:
        raise JaasError("is not one login module with a ; at its end")
    if entry["module"] != MODULES[mechanism]:
        raise JaasError(f"names another login module than that of {mechanism}")
    options: dict[str, str] = {}
    rest, at = entry["options"].rstrip(), 0
    while at < len(rest):
        option = _OPTION.match(rest, at)
        if option is None:
            raise JaasError('has options that are not NAME="VALUE" (one module, values in quotes)')
        options[_unquoted(option["name"])] = _unquoted(option["value"])
        at = option.end()
    return options


def _unquoted(word: str) -> str:
    return re.sub(r"\\(.)", r"\1", word[1:-1], flags=re.DOTALL) if word[:1] in "\"'" else word
