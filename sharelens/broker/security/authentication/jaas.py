"""What the broker takes from a listener's sasl.jaas.config: options of the login module, and the users of PLAIN."""

from collections.abc import Mapping
from typing import Final

from sharelens.broker.errors import ConfigError
from sharelens.kafka_formats.jaas import MODULES, JaasError, module_options

USER_PREFIX: Final = "user_"


def jaas_options(text: str, mechanism: str, key: str) -> Mapping[str, str]:
    """The options of the login module of a mechanism; `key` names the value in messages, which show nothing of it.

    Raises:
        ConfigError: it is not exactly one login module with its semicolon, or that of another mechanism.
    """
    try:
        return module_options(text, mechanism)
    except JaasError as error:
        raise ConfigError(f'{key} {error}; give {MODULES[mechanism]} required NAME="VALUE" …;') from error


def plain_users(options: Mapping[str, str]) -> Mapping[str, str]:
    """Passwords by user, of the options of PLAIN; those without `user_` are for the role of a client."""
    return {
        name.removeprefix(USER_PREFIX): password for name, password in options.items() if name.startswith(USER_PREFIX)
    }
