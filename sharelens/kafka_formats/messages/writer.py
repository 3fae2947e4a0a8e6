"""Messages into bytes, by the fields of kio's message classes.

kio's own writer takes objects of its classes and writes a whole message in one call. This one writes plain mappings,
so that one handler serves all versions of an API, and pauses between the elements of large arrays.
"""

from collections.abc import Mapping
from typing import Any

from sharelens.kafka_formats.messages.kinds import kind_of
from state_model.codec.steps import Steps, run
from state_model.codec.writers import Output
from state_model.errors import EncodeError


def write_in_steps(entity: Any, values: Mapping[str, Any], out: Output) -> Steps[None]:
    """Append a message to `out`; it pauses after every STEP_ELEMENTS array elements.

    Args:
        entity: kio's class of the message in its version.
        values: fields by name. Those that the version lacks are dropped; missing ones take the schema's default, else
            zero, empty or null.

    Raises:
        TypeError: a name that no version of the message has, or a value that its field does not take.
    """
    writer = kind_of(entity).writer
    try:
        if writer.in_steps is None:
            writer.at_once(values, out)
        else:
            yield from writer.in_steps(values, out)
    except EncodeError as error:
        raise TypeError(f"{entity.__name__}: {error}") from error


def write(entity: Any, values: Mapping[str, Any]) -> bytes:
    """The bytes of a message, written at once (see write_in_steps)."""
    out = Output()
    run(write_in_steps(entity, values, out))
    return b"".join(out.pieces)
