"""The command `locate`, which finds user records. It starts no JVM."""

import base64
import binascii
import os

import click

from sharelens.cli.options.common import REQUIRE_COMPLETE, Duration, Time, examples, output_options
from sharelens.cli.options.source import evidence_options
from sharelens.cli.questions import answer, in_order
from sharelens.output import Shown
from sharelens.parameters.filters import parse_key_filter
from sharelens.parameters.times import Rounding
from sharelens.source.request import Source
from state_model.errors import UsageError

WITHIN_MS = 60_000


@click.command(
    short_help="Partition, offset and timestamp of user records.",
    epilog=examples(
        "sharelens locate --log-dir /var/kafka-copy --topic orders --key order-4711",
        "sharelens locate --log-dir /var/kafka-copy --topic orders:0 --around 2026-11-21T03:10:00Z --within 5s",
        "sharelens locate --lake ./lake --topic orders --around 2026-11-21T03:10:00Z",
    ),
)
@evidence_options
@click.option("--topic", metavar="TOPIC", required=True, help="The topic: NAME, ID or NAME:0,1.")
@click.option(
    "--partition",
    type=click.IntRange(min=0, max=2**31 - 1),
    metavar="N",
    multiple=True,
    help="Only this partition. Repeatable.",
)
@click.option("--key", metavar="TEXT", help="Records with this key, in UTF-8.")
@click.option("--key-hex", metavar="HEX", help="Records with this key, in hexadecimal digits.")
@click.option("--key-base64", metavar="BASE64", help="Records with this key, in Base64.")
@click.option("--around", type=Time(), metavar="TIME", help="Records with a timestamp near TIME.")
@click.option(
    "--within",
    type=Duration(),
    metavar="DURATION",
    help="Largest distance from --around: 500ms, 30s, 5m  [default: 1m]",
)
@click.option("--from", "from_ms", type=Time(Rounding.UP), metavar="TIME", help="With a key: timestamps from TIME on.")
@click.option("--to", "to_ms", type=Time(Rounding.UP), metavar="TIME", help="With a key: timestamps before TIME.")
@REQUIRE_COMPLETE
@output_options
def locate(
    source: Source,
    topic: str,
    partition: tuple[int, ...],
    key: str | None,
    key_hex: str | None,
    key_base64: str | None,
    around: int | None,
    within: int | None,
    from_ms: int | None,
    to_ms: int | None,
    require_complete: bool,
    shown: Shown,
) -> None:
    """Partition, offset and timestamp of user records with a key or near a time; continue with `trace`.

    The command reads the topic's segments; it never stores or shows keys and values. A lake has no user records: there
    --around gives ranges of offsets from batch headers.
    """
    wanted_key = _key(key, key_hex, key_base64)
    if (wanted_key is None) == (around is None):
        raise UsageError("locate: give one of --key, --key-hex, --key-base64 and --around")
    if within is not None and around is None:
        raise UsageError("locate: --within goes with --around")
    if around is not None and (from_ms is not None or to_ms is not None):
        raise UsageError("locate: --around excludes --from and --to; leave them out, or widen it with --within")
    in_order("locate", from_ms, to_ms)
    from sharelens.questions.traces.locate import Sought
    from sharelens.questions.traces.locate import locate as ask

    if around is not None:
        reach = WITHIN_MS if within is None else within
        from_ms, to_ms = around - reach, around + reach + 1
    key_filter = parse_key_filter([], [topic], partition)
    answered = ask(source, key_filter, Sought(key=wanted_key, from_ms=from_ms, to_ms=to_ms), shown.row_limit)
    answer(answered, shown, require_complete)


def _key(text: str | None, digits: str | None, encoded: str | None) -> bytes | None:
    """The key's bytes; UsageError for several, or for one that can't be read."""
    if sum(part is not None for part in (text, digits, encoded)) > 1:
        raise UsageError("locate: --key, --key-hex and --key-base64 exclude each other; give one of them")
    if digits is not None:
        try:
            return bytes.fromhex(digits)
        except ValueError:
            raise UsageError(f"--key-hex: {digits!r} is no even number of hexadecimal digits; as in 6b3637") from None
    if encoded is not None:
        try:
            return base64.b64decode(encoded, validate=True)
        except binascii.Error:
            raise UsageError(f"--key-base64: {encoded!r} is no Base64; as in azY3NA==") from None
    return None if text is None else os.fsencode(text)


COMMANDS = (locate,)
