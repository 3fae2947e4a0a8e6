"""Messages for tests of the light broker: kio's objects from plain fields, through bytes."""

import dataclasses
from typing import Any

from sharelens.broker.protocol.messages import Request, decode_in_steps
from sharelens.kafka_formats.messages.reader import read
from sharelens.kafka_formats.messages.writer import write
from state_model.codec.steps import run


def build(schema: Any, fields: Any) -> Any:
    """kio's object of a message class with these fields, written and read again."""
    message, end = read(schema, data := write(schema, fields))
    assert end == len(data)
    return message


def plain(entity: Any) -> Any:
    """The fields of kio's object as a mapping."""
    if dataclasses.is_dataclass(entity):
        return {field.name: plain(getattr(entity, field.name)) for field in dataclasses.fields(entity)}
    return [plain(item) for item in entity] if isinstance(entity, tuple) else entity


def decode_request(frame: bytes, is_supported: Any = lambda key, version: True) -> Request:
    """The request of a frame."""
    return run(decode_in_steps(frame, is_supported))
