"""What a recording replaces by placeholders, because it differs between two recordings of the same code."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

MS_PER_S, HOUR_MS, NS_PER_MS = 1000, 3_600_000, 1_000_000
NOW_MS, NOW_TEXT, NOW_NS, NOW_S, AGE = "<NOW-MS>", "<NOW>", "<NOW-NS>", "<NOW-S>", "<AGE>"
EPOCH_MS = re.compile(r"(?<![\w.])1\d{12}(?![\w.])")
ISO_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|\+00:00)?")
NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?:e\+\d+)?(?![\w.])")
ANY_CALL = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Normalisation:
    """A pattern, the text that replaces it, and why it differs between two recordings.

    `call`: the begin of the names of the calls in whose answers it is replaced.
    """

    pattern: re.Pattern[str]
    replacement: str
    reason: str
    call: str = ANY_CALL


AGE_OF_CUT = re.compile(r"\b\d+ (?:d|h|min|s)(?: \d+ (?:h|min|s))? (?=ago; end offsets|after the cut\b)")
PATTERNS = (
    Normalisation(
        pattern=re.compile(r"(?m)^sharelens: compiling kernels, once after an installation.*\n"),
        replacement="",
        reason="the line depends on whether this machine has compiled the kernels before",
    ),
    Normalisation(
        pattern=re.compile(r"/[^\s\"',:]*/sharelens-cluster-[A-Za-z0-9_]+"),
        replacement="<CLUSTER-COPY>",
        reason="a question to a cluster copies its logs to a temporary folder with a random name",
    ),
    Normalisation(
        pattern=re.compile(r'(?<="seconds": )\{[^{}]*\}'),
        replacement="<SECONDS>",
        reason="the summary of a run has the duration of each stage",
        call="run/",
    ),
    Normalisation(
        pattern=re.compile(r'(?<="freshness_ms": )\{[^{}]*\}'),
        replacement="<AGES>",
        reason="the summary of a run has the age of the newest record by the clock",
        call="run/",
    ),
    Normalisation(
        pattern=re.compile(r"(?<=manifest SHA-256, to be noted elsewhere: )[0-9a-f]{64}"),
        replacement="<SHA-256>",
        reason="an evidence folder's manifest has the moment of writing and the working folder; its text is recorded",
        call="evidence/",
    ),
    Normalisation(
        pattern=re.compile(r"(?m)^[0-9a-f]{64}(?=  manifest\.json$)"),
        replacement="<SHA-256>",
        reason="the same hash in the file manifest.sha256",
        call="evidence/",
    ),
    Normalisation(
        pattern=re.compile(r'(?<="bytes": )\d+'),
        replacement="<BYTES>",
        reason="the size of a Parquet file depends on the times of runs in it",
        call="tables/all",
    ),
    Normalisation(
        pattern=re.compile(r"(?m)^((?:bronze|silver|gold)\.\w+) +(\d+) +(\d+) +\d+ +"),
        replacement=r"\1 \2 \3 <BYTES> ",
        reason="the same size in text",
        call="tables/all",
    ),
    Normalisation(
        pattern=re.compile(r"part-[0-9a-f-]{36}"),
        replacement="part-<UUID>",
        reason="files of a lake have random names",
    ),
    Normalisation(
        pattern=AGE_OF_CUT,
        replacement="<AGE> ",
        reason="the age of the cut by the clock: the command takes no moment",
        call="lag/",
    ),
    Normalisation(
        pattern=AGE_OF_CUT,
        replacement="<AGE> ",
        reason="the same age at the end of the page",
        call="report/",
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """What one recording calls its things: the working folder, the checkout, the broker's address; and its moments.

    `begin_ms`: when it began. `logged_ms`: first and newest timestamp of the log.
    """

    work: Path
    checkout: Path
    begin_ms: int
    logged_ms: tuple[int, int] | None = None
    bootstrap: str | None = None


def normalised(text: str, places: Places, call: str, end_ms: int) -> str:
    """The text of an answer with placeholders. The clock had the moments from `places.begin_ms` to `end_ms`."""
    names = {str(places.work): "<WORK>", str(places.checkout): "<CHECKOUT>"}
    if places.bootstrap is not None:
        names[places.bootstrap] = "<BROKER>"
    for name, placeholder in names.items():
        text = text.replace(name, placeholder)
    for each in PATTERNS:
        if call.startswith(each.call):
            text = each.pattern.sub(each.replacement, text)
    if call.startswith("metrics/"):
        text = _without_ages(text, places, end_ms)
    return _without_clock(text, places.begin_ms - MS_PER_S, end_ms + MS_PER_S)


def _without_clock(text: str, begin_ms: int, end_ms: int) -> str:
    """Replaces moments that the clock had during the recording: questions say when they read the evidence."""

    def number(match: re.Match[str]) -> str:
        return NOW_MS if begin_ms <= int(match[0]) <= end_ms else match[0]

    def moment(match: re.Match[str]) -> str:
        try:
            time = datetime.fromisoformat(match[0].replace(" ", "T").removesuffix("Z"))
        except ValueError:
            return match[0]
        return NOW_TEXT if begin_ms <= time.replace(tzinfo=UTC).timestamp() * MS_PER_S <= end_ms else match[0]

    return ISO_TIME.sub(moment, EPOCH_MS.sub(number, text))


def _without_ages(text: str, places: Places, end_ms: int) -> str:
    """Replaces the clock's moment, and times since records of the log until then: metrics have no option --now.

    Records of user topics may be up to an hour older than the log.
    """
    if places.logged_ms is None:
        return text
    first_ms, newest_ms = places.logged_ms
    low_ms, high_ms = places.begin_ms - newest_ms - MS_PER_S, end_ms - first_ms + HOUR_MS

    def number(match: re.Match[str]) -> str:
        value = float(match[0])
        if places.begin_ms <= value / NS_PER_MS <= end_ms:
            return NOW_NS
        if places.begin_ms - MS_PER_S <= value * MS_PER_S <= end_ms + MS_PER_S:
            return NOW_S
        return AGE if low_ms <= value <= high_ms or low_ms <= value * MS_PER_S <= high_ms else match[0]

    return NUMBER.sub(number, text)
