"""Where cells of answers lead."""

import pytest

from sharelens.pages.links import href, question_of_command

ROW = {
    "group_id": "g/1",
    "topic": "orders",
    "topic_id": "id",
    "partition": 3,
    "record_offset": 42,
    "first_offset": None,
    "rule": "snapshot_epoch_skips",
}


@pytest.mark.parametrize(
    ("field", "place"),
    [
        ("group_id", "/groups/g%2F1"),
        ("topic", "/groups/g%2F1/orders/3"),
        ("partition", "/groups/g%2F1/orders/3"),
        ("record_offset", "/groups/g%2F1/orders/3/42"),
        ("first_offset", None),
        ("records", None),
        ("rule", "/audit/snapshot_epoch_skips"),
    ],
)
def test_a_cell_leads_to_what_its_row_names(field: str, place: str | None) -> None:
    assert href(ROW, field) == place


def test_a_topic_without_a_name_is_named_by_its_id() -> None:
    assert href(ROW | {"topic": None}, "topic") == "/groups/g%2F1/id/3"


def test_a_topic_without_a_group_leads_nowhere() -> None:
    assert href(ROW | {"group_id": None}, "topic") is None


@pytest.mark.parametrize(
    ("line", "place"),
    [
        ("sharelens dlq --lake ./lake --group=a --bursts", "/ask/dlq?group=a&bursts=on"),
        ("sharelens trace --lake=./lake --group 'a b' --offset=7", "/ask/trace?group=a+b&offset=7"),
        ("sharelens doctor --lake ./lake", None),
        ("sharelens", None),
        ("sharelens dlq 'unclosed", None),
    ],
)
def test_a_command_line_leads_to_its_question(line: str, place: str | None) -> None:
    assert question_of_command(line) == place
