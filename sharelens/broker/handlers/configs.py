"""DescribeConfigs 1 to 4, AlterConfigs 0 to 2, IncrementalAlterConfigs 0 and 1, ListConfigResources 0 and 1."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from enum import IntEnum
from functools import partial
from typing import TYPE_CHECKING, Any

from kio.schema.errors import ErrorCode

from sharelens.broker.config.broker_keys import BROKER, broker_definition
from sharelens.broker.config.definitions import Definition, Kind
from sharelens.broker.config.group_keys import GROUP
from sharelens.broker.config.groups import check_group
from sharelens.broker.config.security_keys import LISTENER_PREFIX
from sharelens.broker.config.settings import Setting, Settings, Source, definition_of, parse_all
from sharelens.broker.config.topic_keys import TOPIC
from sharelens.broker.errors import BrokerError, ConfigError, UnknownTopicError
from sharelens.broker.handlers.errors import RefusedError, code_of
from sharelens.broker.protocol.registry import Answer, RequestContext, handles
from sharelens.broker.protocol.steps import LazyArray
from sharelens.kafka_formats.messages.api_keys import ApiKey

if TYPE_CHECKING:
    from sharelens.broker.broker import Broker

ALL_BROKERS = ""


class Resource(IntEnum):
    """Types of resources (ConfigResource.Type)."""

    TOPIC = 2
    BROKER = 4
    CLIENT_METRICS = 16
    GROUP = 32


class Operation(IntEnum):
    """Operations of IncrementalAlterConfigs (AlterConfigOp.OpType)."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


Layers = Iterator[tuple[Definition, list[Setting]]]


@handles(ApiKey.DESCRIBE_CONFIGS, (1, 4))
def describe_configs(broker: "Broker", request: Any, context: RequestContext) -> Answer:
    """The effective configurations of topics, of this broker and of groups, with their sources."""
    return {"results": LazyArray(partial(_describe, broker, request), request.resources)}


def _describe(broker: "Broker", request: Any, resource: Any) -> dict[str, Any]:
    answer = {"resource_type": resource.resource_type, "resource_name": resource.resource_name}
    names = None if resource.configuration_keys is None else set(resource.configuration_keys)
    try:
        layers = list(_layers(broker, resource.resource_type, resource.resource_name))
    except BrokerError as error:
        return answer | {"error_code": code_of(error), "error_message": str(error)}
    has_documentation = getattr(request, "include_documentation", False)
    configs = [
        _described(definition, settings, request.include_synonyms, has_documentation)
        for definition, settings in layers
        if names is None or definition.name in names
    ]
    return answer | {"error_code": ErrorCode.none, "error_message": "", "configs": configs}


def _described(
    definition: Definition, settings: list[Setting], has_synonyms: bool, has_documentation: bool
) -> dict[str, Any]:
    is_secret = definition.kind is Kind.PASSWORD
    synonyms = [
        {"name": setting.name, "value": None if is_secret else setting.text, "source": setting.source}
        for setting in settings
    ]
    return {
        "name": definition.name,
        "value": None if is_secret else settings[0].text,
        "read_only": not definition.is_dynamic,
        "config_source": settings[0].source,
        "is_sensitive": is_secret,
        "synonyms": synonyms if has_synonyms else [],
        "config_type": definition.kind,
        "documentation": definition.doc if has_documentation else None,
    }


def _layers(broker: "Broker", resource_type: int, name: str) -> Layers:
    """The definitions of a resource with their values, strongest first. Raises BrokerError."""
    match resource_type:
        case Resource.TOPIC:
            _check_topic(broker, name)
            resource_configs = broker.catalog.topic_configs(name)
            return (
                (definition, broker.config.layers(definition, resource_configs, Source.TOPIC))
                for definition in TOPIC.values()
            )
        case Resource.BROKER:
            _check_broker(broker, name)
            listener_keys = [definition_of(key) for key in broker.config.listener_keys()]
            chains = (
                (definition, broker.config.chain(definition.name)) for definition in (*BROKER.values(), *listener_keys)
            )
            return chains if name != ALL_BROKERS else _only_for_all_brokers(chains)
        case Resource.GROUP:
            _check_group_id(name)
            resource_configs = broker.catalog.group_configs.get(name, {})
            definitions = group_definitions(broker).values()
            return (
                (definition, broker.config.layers(definition, resource_configs, Source.GROUP))
                for definition in definitions
            )
        case Resource.CLIENT_METRICS:
            return iter(())
        case _:
            raise RefusedError(
                ErrorCode.invalid_request, f"resources of type {resource_type} have no configuration here"
            )


def _only_for_all_brokers(chains: Layers) -> Layers:
    for definition, settings in chains:
        if settings[0].source is Source.DYNAMIC_DEFAULT_BROKER:
            yield definition, settings[:1]


def group_definitions(broker: "Broker") -> Mapping[str, Definition]:
    """The configurations of groups in the chosen Kafka version; dead letters came with 4.4."""
    if broker.features.kafka_version == "4.3":
        return {name: GROUP[name] for name in GROUP if not name.startswith("errors.deadletterqueue.")}
    return GROUP


def _check_topic(broker: "Broker", name: str) -> None:
    if broker.catalog.by_name(name) is None:
        raise UnknownTopicError(f"there is no topic {name!r}")


def _check_broker(broker: "Broker", name: str) -> None:
    if name not in (ALL_BROKERS, str(broker.node_id)):
        raise RefusedError(
            ErrorCode.invalid_request, f"broker {name!r} is unknown: name {broker.node_id}, or no broker for all"
        )


def _check_group_id(name: str) -> None:
    if not name:
        raise RefusedError(ErrorCode.invalid_request, "a group's configuration needs a group id")


Change = Callable[[Mapping[str, Definition], Settings, Mapping[str, str], Any], dict[str, str]]
"""(definitions, settings, before, configs of the request): a resource's own configurations after the request.

Raises ConfigError, RefusedError.
"""


@handles(ApiKey.ALTER_CONFIGS, (0, 2))
def alter_configs(broker: "Broker", request: Any, context: RequestContext) -> Answer:
    """Replace the own configurations of resources independently; a key that the request leaves out is removed."""
    return _altered(broker, request, _replaced)


@handles(ApiKey.INCREMENTAL_ALTER_CONFIGS, (0, 1))
def incremental_alter_configs(broker: "Broker", request: Any, context: RequestContext) -> Answer:
    """Alter resources independently; of each all changes or none."""
    return _altered(broker, request, _changed)


def _altered(broker: "Broker", request: Any, change: Change) -> Answer:
    counts = Counter((resource.resource_type, resource.resource_name) for resource in request.resources)

    def alter(resource: Any) -> dict[str, Any]:
        answer = {"resource_type": resource.resource_type, "resource_name": resource.resource_name}
        try:
            if counts[resource.resource_type, resource.resource_name] > 1:
                raise RefusedError(ErrorCode.invalid_request, "Each resource must appear at most once.")
            _alter(broker, resource, change, is_dry_run=request.validate_only)
        except BrokerError as error:
            return answer | {"error_code": code_of(error), "error_message": str(error)}
        return answer | {"error_code": ErrorCode.none, "error_message": None}

    return {"responses": LazyArray(alter, request.resources)}


def _alter(broker: "Broker", resource: Any, change: Change, *, is_dry_run: bool) -> None:
    alter = _ALTERATIONS.get(resource.resource_type)
    if alter is None:
        raise RefusedError(ErrorCode.invalid_request, f"resources of type {resource.resource_type} can't be altered")
    if len({config.name for config in resource.configs}) < len(resource.configs):
        raise RefusedError(ErrorCode.invalid_request, "a configuration is named twice")
    alter(broker, resource, change, is_dry_run)


def _alter_topic(broker: "Broker", resource: Any, change: Change, is_dry_run: bool) -> None:
    name = resource.resource_name
    _check_topic(broker, name)
    new_configs = change(TOPIC, broker.config, broker.catalog.topic_configs(name), resource.configs)
    parse_all(TOPIC, new_configs)
    if not is_dry_run:
        broker.catalog.set_topic_configs(name, new_configs)


def _alter_group(broker: "Broker", resource: Any, change: Change, is_dry_run: bool) -> None:
    name = resource.resource_name
    _check_group_id(name)
    current_configs = broker.catalog.group_configs.get(name, {})
    new_configs = change(group_definitions(broker), broker.config, current_configs, resource.configs)
    check_group(broker.config, new_configs)
    if not is_dry_run:
        broker.catalog.set_group_configs(name, new_configs)


def _alter_broker(broker: "Broker", resource: Any, change: Change, is_dry_run: bool) -> None:
    """Kafka refuses configurations of brokers with INVALID_REQUEST, not with INVALID_CONFIG (ConfigAdminManager)."""
    _check_broker(broker, resource.resource_name)
    try:
        _change_broker(broker, resource, change, is_dry_run)
    except ConfigError as error:
        raise RefusedError(ErrorCode.invalid_request, str(error)) from error


def _change_broker(broker: "Broker", resource: Any, change: Change, is_dry_run: bool) -> None:
    is_for_all = resource.resource_name == ALL_BROKERS
    for config in resource.configs:
        _check_dynamic(config.name, is_for_all=is_for_all)
    current_configs, other = (
        broker.dynamic_configs(is_for_all=is_for_all),
        broker.dynamic_configs(is_for_all=not is_for_all),
    )
    definitions = {**BROKER} | {
        name: definition_of(name) for name in (*current_configs, *(each.name for each in resource.configs))
    }
    new_configs = change(definitions, broker.config, current_configs, resource.configs)
    parse_all(definitions, new_configs)
    if not is_dry_run:
        names = {config.name for config in resource.configs} | (current_configs.keys() - new_configs.keys())
        for_all, for_node = (new_configs, other) if is_for_all else (other, new_configs)
        broker.change_configs(for_all=for_all, for_node=for_node, changed=names)


def _check_dynamic(name: str, *, is_for_all: bool) -> None:
    """Raises ConfigError for a key that stays as it was at start, or that all brokers can't have in common."""
    definition = broker_definition(name)
    if definition is None or not (definition.is_dynamic or definition.is_stored_only):
        raise ConfigError(f"{name} can't be changed while the broker runs")
    if is_for_all and name.startswith(LISTENER_PREFIX):
        raise ConfigError(f"{name} is the configuration of one broker, not of all")


_ALTERATIONS: dict[int, Callable[["Broker", Any, Change, bool], None]] = {
    Resource.TOPIC: _alter_topic,
    Resource.BROKER: _alter_broker,
    Resource.GROUP: _alter_group,
}


def _replaced(
    definitions: Mapping[str, Definition], settings: Settings, before: Mapping[str, str], configs: Any
) -> dict[str, str]:
    """The configurations of an AlterConfigs request alone."""
    return {config.name: _value(config) for config in configs}


def _changed(
    definitions: Mapping[str, Definition], settings: Settings, before: Mapping[str, str], configs: Any
) -> dict[str, str]:
    """The configurations with the changes of an IncrementalAlterConfigs request."""
    new_configs = dict(before)
    for change in configs:
        definition = definitions.get(change.name)
        if definition is None:
            raise ConfigError(f"unknown configuration {change.name}")
        if change.config_operation == Operation.DELETE:
            new_configs.pop(change.name, None)
            continue
        value = _value(change)
        if change.config_operation == Operation.SET:
            new_configs[change.name] = value
        else:
            in_force = before.get(change.name) or settings.layers(definition, before, Source.TOPIC)[0].text
            new_configs[change.name] = _list_changed(definition, in_force or "", change)
    return new_configs


def _value(config: Any) -> str:
    """The value of a key in a request. Raises RefusedError for null, as Kafka's ConfigAdminManager does."""
    if config.value is None:
        raise RefusedError(ErrorCode.invalid_request, f"{config.name} has no value")
    text: str = config.value
    return text


def _list_changed(definition: Definition, in_force: str, change: Any) -> str:
    """A list with values appended or removed."""
    if definition.kind is not Kind.LIST or change.config_operation not in (Operation.APPEND, Operation.SUBTRACT):
        raise RefusedError(ErrorCode.invalid_config, f"operation {change.config_operation} on {definition.name}")
    values = [value for value in in_force.split(",") if value]
    named = [value.strip() for value in change.value.split(",")]
    if change.config_operation == Operation.APPEND:
        values += [value for value in named if value not in values]
    else:
        values = [value for value in values if value not in named]
    return ",".join(values)


@handles(ApiKey.LIST_CONFIG_RESOURCES, (0, 1))
def list_config_resources(broker: "Broker", request: Any, context: RequestContext) -> Answer:
    """Resources with a configuration; version 0 lists client metrics only, of which there are none."""
    if context.api_version == 0:
        return {}
    names: dict[int, list[str]] = {
        Resource.TOPIC: list(broker.catalog.topics),
        Resource.BROKER: [str(broker.node_id)],
        Resource.CLIENT_METRICS: [],
        Resource.GROUP: list(broker.catalog.group_configs),
    }
    kinds = tuple(request.resource_types) or tuple(names)
    if any(kind not in names for kind in kinds):
        return {"error_code": ErrorCode.unsupported_version}
    return {
        "config_resources": [
            {"resource_name": name, "resource_type": int(kind)} for kind in kinds for name in names[kind]
        ]
    }
