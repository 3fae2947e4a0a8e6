"""Settings that a history suggests, each with its evidence."""

import pyarrow as pa

from sharelens.measures.what_if import advice, delivery_limit, lock_advice, placement_advice, state_partitions
from sharelens.measures.what_if.advice_rows import ADVICE
from sharelens.measures.what_if.schema import WHAT_IF
from sharelens.measures.what_if.snapshots import limit_in_force, snapshot_rows
from sharelens.output import Answer
from sharelens.output.layouts import Layout
from sharelens.output.wording import counted
from sharelens.parameters.filters import KeyFilter
from sharelens.questions.answers.completeness import closing_line
from sharelens.questions.answers.measured import Scope, described, scope
from sharelens.questions.answers.shape import answer_schema
from sharelens.questions.what_if import COLD_INTERVAL_MS, appends_of, delivery_limit_of, rounds_of
from sharelens.questions.what_if_placement import known_number, records_at
from sharelens.source.request import CutChoice
from sharelens.tables.port import Tables

UNKNOWN_SETTINGS = "\nsettings of groups are unknown (--group-configs): no advice on dead-letter topics"


def advise(evidence: Tables, key_filter: KeyFilter, cut: CutChoice) -> Answer:
    """The answer to `sharelens advise`: one row a setting that the history suggests, the brokers' own first."""
    scoped = scope(evidence, key_filter, cut)
    counts = [delivery_limit_of(scoped, part, delivery_limit.RANGE[0]).outcome_counts() for part in scoped.parts]
    outcomes = advice.group_outcomes(pa.concat_tables(counts))
    settings = evidence.settings.groups
    times = lock_advice.added_up([lock_advice.attempt_times(scoped.inputs(part)) for part in scoped.parts])
    of_groups = pa.concat_tables([advice.of_groups(outcomes, settings), lock_advice.about_locks(times, settings)])
    of_brokers = [_of_coordinator(scoped, key_filter, cut)]
    if key_filter.keeps_all:
        sums = state_partitions.sums_of(records_at(evidence, cut))
        of_brokers.append(placement_advice.about_state_partitions(sums, known_number(evidence)))
    rows = pa.concat_tables([*of_brokers, of_groups.sort_by([("group_id", "ascending"), ("setting", "ascending")])])
    unknown = "" if evidence.settings.groups.groups is not None else UNKNOWN_SETTINGS
    return Answer(
        table=described(evidence, rows),
        columns=LAYOUT.columns(),
        summary=f"{counted(rows.num_rows, 'suggestion')}{unknown}\n{closing_line(evidence)}",
        warnings=scoped.warnings,
        none="the history suggests no other setting",
    )


def _of_coordinator(scoped: Scope, key_filter: KeyFilter, cut: CutChoice) -> pa.Table:
    """ADVICE rows on the snapshot interval, tried over all state partitions of the scope."""
    rounds, in_force = rounds_of(scoped), set()
    tried: dict[int, list[pa.Table]] = {limit: [] for limit in advice.INTERVALS}
    for table in appends_of(scoped, key_filter, cut):
        in_force.add(limit_in_force(table))
        for limit, tables in tried.items():
            tables.append(snapshot_rows(table, rounds, limit, COLD_INTERVAL_MS))
    if len(in_force) != 1:
        return ADVICE.empty_table()
    rows = {limit: pa.concat_tables([WHAT_IF.empty_table(), *tables]) for limit, tables in tried.items()}
    return advice.of_coordinator(rows, in_force.pop())


LAYOUT = Layout(
    schema=answer_schema(ADVICE, has_marks=False),
    sentences="evidence effect",
    important="GROUP SETTING IN-FORCE SUGGESTED EVIDENCE EFFECT CERTAINTY",
)
