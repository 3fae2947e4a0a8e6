"""The calls of a recording: every question about a log, in its forms."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from tools.record_answers.facts import Facts, SharePartition

TEXT, JSON = "text", "json"
BOTH_FORMS: tuple[str, ...] = (TEXT, JSON)
ONLY_TEXT: tuple[str, ...] = (TEXT,)
"""The form of commands without --output, and of costly calls."""
ONLY_JSON: tuple[str, ...] = (JSON,)
"""The form of calls that differ from another call in their moment or group alone."""
LOG_DIR, LAKE, CLUSTER = "log-dir", "lake", "cluster"
SOURCES = (LOG_DIR, LAKE, CLUSTER)
FILE_TIMES = "file-times"
"""The variant of a call without --now."""
OUT = "{out}"
"""Stands in the words of a call for the file or folder that the call writes, or reads again."""
LOOKUP_LIMIT = "2000"
"""Rows of a table that are read by one SELECT."""
WITH_USER_TOPICS = (
    "overview",
    "stalled",
    "poison",
    "dlq",
    "redelivered",
    "audit",
    "account",
    "lag",
    "latency",
    "locate",
)
"""Commands that are repeated with all records of user topics."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One command line without its source and its form. `name`: COMMAND/VARIANT in the recording.

    `output`: the name of a file or folder in the working folder that the call writes. `keeps_output`: it reads the
    output of an earlier call. `has_source`: the option of the source is added.
    """

    name: str
    words: tuple[str, ...]
    forms: tuple[str, ...] = BOTH_FORMS
    output: str | None = None
    keeps_output: bool = False
    has_source: bool = True


def questions(facts: Facts, source: str) -> list[Call]:
    """Every call about one log from one source, in the order in which they are made."""
    calls = [
        *_incidents(facts),
        *_states(facts),
        *_histories(facts),
        *_groups(facts),
        *_figures(facts),
        *_settings(facts),
        *_documents(facts),
    ]
    if source == CLUSTER:  # without --now they count durations until the clock's moment
        calls = [each for each in calls if not each.name.endswith(FILE_TIMES)]
    else:
        calls += _configurations(facts)
    if source == LOG_DIR:
        calls += [
            _call("state/uncommitted", "state", "--include-uncommitted", "--include-deleted"),
            _call("records/uncommitted", "records", "--include-uncommitted", "--limit", "50"),
        ]
    if source == CLUSTER:
        calls += _with_user_topics(calls)
    return calls


def _call(name: str, *words: object, forms: tuple[str, ...] = BOTH_FORMS) -> Call:
    return Call(name=name, words=tuple(map(str, words)), forms=forms)


def _moments(facts: Facts) -> Iterator[tuple[str, str]]:
    """Name and time of the past moments: a third and two thirds of the log."""
    yield "third", str(facts.times.at(1, 3))
    yield "two-thirds", str(facts.times.at(2, 3))


def _window(facts: Facts) -> tuple[str, ...]:
    """The options of the middle third of the log."""
    return ("--from", str(facts.times.at(1, 3)), "--to", str(facts.times.at(2, 3)))


def _whole_window(facts: Facts) -> tuple[str, ...]:
    return ("--from", str(facts.times.first_ms), "--to", str(facts.times.last_ms + 1))


def _now(facts: Facts) -> tuple[str, ...]:
    return ("--now", str(facts.times.now_ms))


def _group(facts: Facts) -> tuple[str, ...]:
    """The option of the first group; none where the log has no group."""
    return tuple(f"--group={group}" for group in facts.groups[-1:])


def _key(place: SharePartition) -> tuple[str, ...]:
    return (f"--group={place.group}", f"--topic={place.topic}", f"--partition={place.partition}")


def _incidents(facts: Facts) -> Iterator[Call]:
    now, window, group = _now(facts), _window(facts), _group(facts)
    yield _call("overview/now", "overview", *now)
    yield _call(f"overview/{FILE_TIMES}", "overview")
    yield _call("overview/short-stalls", "overview", *now, "--min-duration", "0s", *group)
    for command in ("stalled", "pinned"):
        yield _call(f"{command}/now", command, *now)
        yield _call(f"{command}/{FILE_TIMES}", command, "--min-duration", "1s")
        yield _call(f"{command}/idle", command, *now, "--idle", "--min-duration", "1s")
        for name, moment in _moments(facts):
            words = (command, *now, "--as-of", moment, "--min-duration", "1s")
            yield _call(f"{command}/as-of-{name}", *words, forms=ONLY_JSON)
    yield _call("stalled/window", "stalled", *now, *window, "--min-duration", "100ms", *group)
    yield _call("poison/all", "poison")
    yield _call("poison/near-limit", "poison", "--near-limit", "--gaps", *group)
    yield _call("poison/window", "poison", *window)
    yield _call("dlq/all", "dlq")
    yield _call("dlq/bursts", "dlq", "--bursts", "--gap", "1s")
    yield _call("dlq/fail-on", "dlq", "--fail-on", "--dlq-prefix", "d", *group)
    for name, moment in _moments(facts):
        yield _call(f"poison/as-of-{name}", "poison", "--as-of", moment, forms=ONLY_JSON)
        yield _call(f"dlq/as-of-{name}", "dlq", "--as-of", moment, forms=ONLY_JSON)
    for number, group_id in enumerate(facts.groups or ("no-such-group",), start=1):
        words = ("timeline", f"--group={group_id}", *now)
        yield _call(f"timeline/group-{number}", *words)
        yield _call(f"timeline/group-{number}-window", *words, *window, "--min-duration", "1s")
        yield _call(f"timeline/group-{number}-as-of", *words, "--as-of", facts.times.at(2, 3))


def _states(facts: Facts) -> Iterator[Call]:
    window = _window(facts)
    yield _call("state/now", "state")
    yield _call("state/verbose", "state", "--verbose", "--require-complete")
    yield _call("records/all", "records")
    yield _call("records/window", "records", *window)
    yield _call("records/early-draft", "records", "--early-draft")
    yield _call("diff/window", "diff", *window)
    late = ("--from", facts.times.at(1, 10), "--to", facts.times.last_ms)
    yield _call("diff/late", "diff", *late, "--verbose", *_group(facts))
    for name, moment in _moments(facts):
        yield _call(f"state/as-of-{name}", "state", "--as-of", moment, forms=ONLY_JSON)
    if facts.at_offset is not None:
        yield _call("state/at-offset", "state", "--at-offset", facts.at_offset)
    span = facts.state_span
    if span is not None:
        offsets = ("--from-offset", span.from_offset, "--to-offset", span.to_offset)
        yield _call("records/offsets", "records", "--state-partition", span.state_partition, *offsets)
    for number, place in enumerate(facts.share_partitions, start=1):
        yield _call(f"state/partition-{number}", "state", *_key(place))
        yield _call(f"records/partition-{number}", "records", *_key(place), "--verbose")
        yield _call(f"moments/partition-{number}", "moments", *_key(place))
        for offset in place.offsets:
            yield _call(f"trace/partition-{number}-offset-{offset}", "trace", *_key(place), "--offset", offset)
        yield _call(
            f"trace/partition-{number}-members", "trace", *_key(place), "--offset", place.offsets[-1], "--members"
        )
    for topic, key in facts.keys or (("no-such-topic", "k"),):
        words = ("locate", f"--topic={topic}")
        yield _call("locate/around", *words, "--around", facts.times.at(1, 2), "--within", "2s")
        yield _call("locate/key", *words, f"--key={key}")


def _histories(facts: Facts) -> Iterator[Call]:
    window, group = _window(facts), _group(facts)
    yield _call("redelivered/all", "redelivered")
    yield _call("redelivered/retries", "redelivered", "--kind", "retry", *group, "--fail-on")
    yield _call("account/all", "account")
    yield _call("account/classes", "account", "--class", "open", "--class", "archived", *group)
    yield _call("account/offsets", "account", "--from-offset", 10, "--to-offset", 200)
    yield _call("life/all", "life")
    yield _call("life/events", "life", "--event", "created", "--event", "reset", "--event", "deleted", *group)
    yield _call("audit/all", "audit")
    yield _call("audit/group", "audit", *group, "--show-suppressed")
    yield _call("audit/window", "audit", *window, "--severity", "info")
    for name, moment in _moments(facts):
        for command in ("redelivered", "account", "life"):
            yield _call(f"{command}/as-of-{name}", command, "--as-of", moment, forms=ONLY_JSON)
    for command in ("redelivered", "account", "life"):
        yield _call(f"{command}/window", command, *window)


def _groups(facts: Facts) -> Iterator[Call]:
    yield _call("groups/all", "groups")
    yield _call("groups/window", "groups", *_window(facts))
    for name, moment in _moments(facts):
        yield _call(f"groups/as-of-{name}", "groups", "--as-of", moment, forms=ONLY_JSON)
    for number, group_id in enumerate(facts.groups or ("no-such-group",), start=1):
        words = (f"--group={group_id}",)
        for view in ("offsets", "members", "tasks", "state"):
            yield _call(f"describe/group-{number}-{view}", "describe", *words, f"--{view}")
            past = ("describe", *words, f"--{view}", "--as-of", facts.times.at(1, 2))
            yield _call(f"describe/group-{number}-{view}-as-of", *past, forms=ONLY_JSON)
        yield _call(f"rebalances/group-{number}", "rebalances", *words)
        yield _call(f"rebalances/group-{number}-window", "rebalances", *words, *_window(facts))


def _figures(facts: Facts) -> Iterator[Call]:
    window, group = _window(facts), _group(facts)
    every_ms = max(1, (facts.times.last_ms - facts.times.first_ms) // 10)
    yield _call("lag/now", "lag")
    yield _call("lag/every", "lag", "--every", f"{every_ms}ms", *_whole_window(facts), *group)
    if facts.at_offset is not None:
        for command in ("lag", "latency", "attempts", "cost"):
            yield _call(f"{command}/at-offset", command, "--at-offset", facts.at_offset)
    yield _call("latency/all", "latency")
    yield _call("latency/by", "latency", "--by", "partition", "--by", "hour")
    yield _call("latency/ranges", "latency", "--ranges", *group)
    yield _call("latency/exact", "latency", "--exact", *window)
    yield _call("attempts/all", "attempts")
    yield _call("attempts/by", "attempts", "--by", "partition", "--by", "hour", *window)
    yield _call("cost/all", "cost")
    yield _call("cost/state-partitions", "cost", "--state-partitions")
    yield _call("cost/early-draft", "cost", "--compare-early-draft", *group)
    for name, moment in _moments(facts):
        for command in ("lag", "latency", "attempts", "cost"):
            yield _call(f"{command}/as-of-{name}", command, "--as-of", moment, forms=ONLY_JSON)
    yield from _what_ifs(facts)
    yield _call("advise/all", "advise")
    yield _call("advise/as-of", "advise", "--as-of", facts.times.at(2, 3), *group)
    yield _call("status/all", "status")
    for form in ("prometheus", "otlp"):
        words = ("metrics", "--output-file", "-", "--format", form)
        yield _call(f"metrics/{form}", *words, forms=ONLY_TEXT)


def _what_ifs(facts: Facts) -> Iterator[Call]:
    settings = {
        "snapshot": ("--snapshot-update-records", "10"),
        "limit": ("--delivery-count-limit", "3"),
        "lock": ("--lock-duration", "1s"),
        "committed": ("--isolation-level", "read_committed"),
        "uncommitted": ("--isolation-level", "read_uncommitted"),
        "partitions": ("--state-partitions", "7"),
    }
    for name, words in settings.items():
        yield _call(f"what-if/{name}", "what-if", *words)
        yield _call(f"what-if/{name}-list", "what-if", *words, "--list")
        past = ("what-if", *words, "--as-of", facts.times.at(2, 3))
        yield _call(f"what-if/{name}-as-of", *past, forms=ONLY_JSON)


def _settings(facts: Facts) -> Iterator[Call]:
    settings = ("--settings", str(facts.settings))
    for command in ("overview", "stalled"):
        yield _call(f"{command}/settings", command, *_now(facts), *settings)
    for command in ("poison", "dlq", "audit", "advise"):
        yield _call(f"{command}/settings", command, *settings)
    yield _call("what-if/lock-settings", "what-if", "--lock-duration", "60s", *settings)


def _documents(facts: Facts) -> Iterator[Call]:
    """Reports, plans and evidence folders; each folder is verified after it was written."""
    yield Call(name="report/now", words=("report", *_now(facts), "--out", OUT), forms=ONLY_TEXT, output="report.html")
    words = ("report", *_now(facts), *_group(facts), *_window(facts), "--as-of", str(facts.times.at(2, 3)))
    yield Call(name="report/window", words=(*words, "--out", OUT), forms=ONLY_TEXT, output="report.html")
    yield Call(name="dlq/plan", words=("dlq", "plan", "--out", OUT), forms=ONLY_TEXT, output="plan.json")
    for number, group_id in enumerate(facts.groups or ("no-such-group",), start=1):
        words = ("evidence", f"--group={group_id}", "--case", f"CASE-{number}", *_whole_window(facts), "--out", OUT)
        folder = f"case-{number}"
        yield Call(
            name=f"evidence/group-{number}", words=words, output=folder, forms=BOTH_FORMS if number == 1 else ONLY_JSON
        )
        verify = Call(name=f"verify/group-{number}", words=("verify", OUT), output=folder, keeps_output=True)
        yield replace(verify, has_source=False)
        yield replace(verify, name=f"{verify.name}-source", forms=ONLY_TEXT if number == 1 else ONLY_JSON)


def _configurations(facts: Facts) -> Iterator[Call]:
    yield _call("configurations/all", "configurations")
    yield _call("configurations/as-of", "configurations", "--as-of", facts.times.at(1, 2))
    yield _call("configurations/group", "configurations", *_group(facts))


def _with_user_topics(calls: Sequence[Call]) -> list[Call]:
    """The first call of some commands again, over all records of user topics."""
    firsts: dict[str, Call] = {}
    for call in calls:
        firsts.setdefault(call.name.partition("/")[0], call)
    return [
        Call(name=f"{command}/user-topics", words=(*firsts[command].words, "--user-topics", "all"))
        for command in WITH_USER_TOPICS
    ]


def lake_questions(groups: Sequence[str], queries: Sequence[tuple[str, bool]], tables: Sequence[str]) -> Iterator[Call]:
    """The calls that only a lake answers. `queries`: named queries, and whether they take a group."""
    yield _call("tables/all", "tables")
    yield _call("tables/ddl-tables", "tables", "--ddl", forms=ONLY_TEXT)
    for engine in ("spark", "trino", "duckdb"):
        yield _call(f"tables/ddl-{engine}", "tables", "--ddl", engine, forms=ONLY_TEXT)
    for name, takes_group in queries:
        yield _call(f"sql/{name}", "sql", "--query", name)
        if takes_group and groups:
            words = ("sql", "--query", name, "--param", f"group={groups[-1]}")
            yield _call(f"sql/{name}-group", *words, forms=ONLY_JSON)
    for table in tables:
        select = f"SELECT * FROM {table} ORDER BY ALL"  # noqa: S608 - a name that `tables` printed
        yield _call(f"sql/table-{table}", "sql", select, "--limit", LOOKUP_LIMIT, forms=ONLY_JSON)


def general_questions(commands: Sequence[str], tables: Sequence[str], runbooks: Sequence[str]) -> Iterator[Call]:
    """The calls that read no evidence: help pages, definitions, runbooks, refused command lines."""
    lines = {
        "help/all": ("--help",),
        "help/version": ("--version",),
        "help/broker-start": ("broker", "start", "--help"),
        "help/dlq-plan": ("dlq", "plan", "--help"),
        "runbook/list": ("runbook",),
        "runbook/no-page": ("runbook", "no-such-page"),
        "tables/ddl": ("tables", "--ddl"),
        "tables/dbt-sources": ("tables", "--dbt-sources"),
        "refused/no-source": ("state",),
        "refused/no-command": ("no-such-command",),
        "refused/no-option": ("state", "--no-such-option"),
        "refused/no-folder": ("state", "--log-dir", "no-such-folder"),
        "refused/no-lake": ("state", "--lake", "no-such-lake"),
        "refused/no-broker": ("state", "--bootstrap-server", "127.0.0.1:1"),
        "refused/no-time": ("state", "--log-dir", "no-such-folder", "--as-of", "no-time"),
        "refused/two-cuts": ("state", "--log-dir", "no-such-folder", "--as-of", "1", "--at-offset", "0:1"),
        "refused/what-if": ("what-if", "--log-dir", "no-such-folder"),
        "refused/what-if-range": ("what-if", "--log-dir", "no-such-folder", "--delivery-count-limit", "99"),
        "refused/trace": ("trace", "--log-dir", "no-such-folder"),
        "refused/run": ("run", "--lake", "no-such-lake"),
    }
    for name, words in lines.items():
        yield Call(name=name, words=words, forms=ONLY_TEXT, has_source=False)
    for command in commands:
        yield Call(name=f"help/{command}", words=(command, "--help"), forms=ONLY_TEXT, has_source=False)
    for table in tables:
        yield Call(name=f"tables/columns-{table}", words=("tables", table), has_source=False)
    for page in runbooks:
        yield Call(name=f"runbook/{page.replace('/', '-')}", words=("runbook", page), forms=ONLY_TEXT, has_source=False)
    yield Call(name="sql/list", words=("sql", "--list"), has_source=False)
