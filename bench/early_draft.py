"""Both designs of share state under the same simulated workloads: a table, and with --picture a chart.

    python -m bench.early_draft --picture docs/explanation/early-design.png

Columns: batch size of producers, records fetched at once (how much a delivery has), share of records released; then for
the shipped and the early design bytes of keys and values per acknowledged record, records per acknowledged record, and
the most records that a recovery reads.
"""

import argparse
import itertools
import json
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from sharelens.broker.simulator.settings import Habits, SimulationSettings
from sharelens.broker.simulator.simulation import simulate
from sharelens.measures.early_draft_cost import draft_cost
from sharelens.parameters.filters import KeyFilter
from sharelens.questions.answers.measured import scope
from sharelens.source.request import CutChoice, Source
from sharelens.tables.opening import open_logs
from state_model.machine import SNAPSHOT_UPDATE_LIMIT

SEED = 7
BATCHES, FETCHES, RELEASES = (1, 20, 100), (20, 300), (0.0, 0.05, 0.3)
SETTINGS = SimulationSettings(records=4_000, groups=2, topics=1, partitions=3, admin_interval_ms=0, checkpoints=1)
SUMS = ("acknowledged_offsets", "records", "bytes", "draft_records", "draft_bytes")
MOST_RECORDS_COLUMNS = ("most_records_to_replay", "draft_most_records_to_replay")
HEADINGS = ("batch", "fetch", "released", "bytes", "early", "records", "early", "to replay", "early")


def rows() -> Iterator[dict[str, Any]]:
    """One row a workload, with its sums over all share partitions."""
    for batch, fetch, releases in itertools.product(BATCHES, FETCHES, RELEASES):
        habits = Habits(singly=0.0, mixed=1.0 if releases else 0.0, releases=releases, rejects=0.0)
        settings = replace(SETTINGS, batch_records=batch, fetch_records=fetch, habits=habits, keeps_deliveries=False)
        with tempfile.TemporaryDirectory(prefix="sharelens-early-draft-") as folder:
            simulate(settings, SEED, Path(folder) / "logs")
            with open_logs(Source(log_dirs=(str(Path(folder) / "logs"),))) as evidence:
                scoped = scope(evidence, KeyFilter(), CutChoice())
                costs = [
                    row
                    for part in scoped.parts
                    for row in draft_cost(
                        scoped.inputs(part).records(),
                        part.history,
                        part.deliveries,
                        deltas_per_checkpoint=SNAPSHOT_UPDATE_LIMIT,
                    ).to_pylist()
                ]
        sums = {name: sum(row[name] for row in costs) for name in SUMS}
        maxima = {name: max(row[name] for row in costs) for name in MOST_RECORDS_COLUMNS}
        yield {"batch": batch, "fetch": fetch, "releases": releases, **sums, **maxima}


def table(measured: Sequence[dict[str, Any]]) -> str:
    """The rows in Markdown."""
    lines = ["| " + " | ".join(HEADINGS) + " |", "|" + "---|" * len(HEADINGS)]
    for row in measured:
        done = row["acknowledged_offsets"]
        per_record = [f"{row[name] / done:.1f}" for name in ("bytes", "draft_bytes")]
        per_record += [f"{row[name] / done:.3f}" for name in ("records", "draft_records")]
        max_cells = [str(row[name]) for name in MOST_RECORDS_COLUMNS]
        workload = [f"1 to {row['batch']}", str(row["fetch"]), f"{row['releases']:.0%}"]
        lines.append("| " + " | ".join([*workload, *per_record, *max_cells]) + " |")
    return "\n".join(lines)


def write_picture(measured: Sequence[dict[str, Any]], path: Path) -> None:
    """Bytes per acknowledged record of both designs, by workload, as PNG."""
    import altair as alt

    values = [
        {
            "released": f"{row['releases']:.0%}",
            "workload": f"batches up to {row['batch']}, fetches of {row['fetch']}",
            "design": design,
            "bytes per acknowledged record": row[name] / row["acknowledged_offsets"],
        }
        for row in measured
        for design, name in (("shipped", "bytes"), ("early", "draft_bytes"))
    ]
    chart = (
        alt.Chart({"values": values})
        .mark_bar()
        .encode(
            x=alt.X("released:N", sort=None, title="records released"),
            xOffset=alt.XOffset("design:N", sort=["shipped", "early"]),
            y=alt.Y("bytes per acknowledged record:Q", scale=alt.Scale(type="sqrt")),
            color=alt.Color("design:N", sort=["shipped", "early"], title=None),
            facet=alt.Facet("workload:N", columns=2, sort=None, title=None),
        )
        .properties(width=150, height=130)
    )
    chart.save(str(path), format="png", scale_factor=1.5)


def main() -> None:
    """Measure, print the table, write the picture."""
    parser = argparse.ArgumentParser(description="Both designs of share state under the same workloads.")
    parser.add_argument("--picture", type=Path)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    measured = list(rows())
    print(json.dumps(measured) if options.json else table(measured))
    if options.picture is not None:
        write_picture(measured, options.picture)


if __name__ == "__main__":
    main()
