"""ACL entries as texts for the catalogue, by the names of Kafka's tools."""

from collections.abc import Iterable, Mapping

from sharelens.broker.security.authorization.entries import AclEntry, Operation, PatternType, Permission, ResourceType


def entries_to_json(entries: Iterable[AclEntry]) -> list[dict[str, str]]:
    """One object an entry, in the order of the entries."""
    return [
        {
            name: value.name if isinstance(value, ResourceType | PatternType | Operation | Permission) else value
            for name, value in entry._asdict().items()
        }
        for entry in entries
    ]


def entries_of_json(stored: Iterable[Mapping[str, object]]) -> tuple[AclEntry, ...]:
    """The entries that `entries_to_json` wrote. Raises KeyError for unknown names and missing fields."""
    return tuple(
        AclEntry(
            resource_type=ResourceType[str(each["resource_type"])],
            name=str(each["name"]),
            pattern_type=PatternType[str(each["pattern_type"])],
            principal=str(each["principal"]),
            host=str(each["host"]),
            operation=Operation[str(each["operation"])],
            permission=Permission[str(each["permission"])],
        )
        for each in stored
    )
