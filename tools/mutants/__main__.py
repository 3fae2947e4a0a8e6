"""Compares the tests of two trees by mutants: python -m tools.mutants draw|record|judge (CONTRIBUTING.md).

    draw BEFORE AFTER --count 150 --seed 7 --folder WORK    mutants in functions that both trees have
    record TREE NAME --folder WORK                          which quick tests run each mutated statement
    judge BEFORE AFTER --folder WORK                        what dies in either tree

`record` runs all quick tests once, for each tree under the name `before` or `after`. `judge` goes on where it stopped.
"""

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from tools.mutants import trees
from tools.mutants.mutations import FOLDERS, Mutant, draw

NAMES = ("before", "after")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one of the three steps; 1 when a mutant died before and lives after."""
    parser = argparse.ArgumentParser(prog="python -m tools.mutants", description=__doc__.splitlines()[0])
    steps = parser.add_subparsers(dest="step", required=True)
    for step in ("draw", "judge"):
        of_two = steps.add_parser(step)
        of_two.add_argument("before", type=Path)
        of_two.add_argument("after", type=Path)
        of_two.add_argument("--folder", type=Path, required=True)
    steps.choices["draw"].add_argument("--count", type=int, default=150)
    steps.choices["draw"].add_argument("--seed", type=int, default=1)
    steps.choices["draw"].add_argument("--below", nargs="+", default=FOLDERS, help="folders of the functions")
    of_one = steps.add_parser("record")
    of_one.add_argument("tree", type=Path)
    of_one.add_argument("name", choices=NAMES)
    of_one.add_argument("--folder", type=Path, required=True)
    options = parser.parse_args(arguments)
    folder: Path = options.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    if options.step == "draw":
        mutants = draw(options.before, options.after, options.count, options.seed, options.below)
        (folder / "mutants.json").write_text(json.dumps([asdict(mutant) for mutant in mutants]), encoding="utf-8")
        print(f"{len(mutants)} mutants")
        return 0
    if options.step == "record":
        records = folder / f"records-{options.name}"
        records.mkdir()
        trees.record(trees.copy(options.tree.resolve(), folder / f"recorded-{options.name}"), _mutants(folder), records)
        return 0
    return judge((options.before.resolve(), options.after.resolve()), folder)


def judge(two_trees: tuple[Path, Path], folder: Path) -> int:
    """Tests every mutant in both trees, prints those that died in one alone and how many did in each."""
    mutants = _mutants(folder)
    copies = {name: folder / f"judged-{name}" for name in NAMES}
    for name, tree in zip(NAMES, two_trees, strict=True):
        if not copies[name].is_dir():
            trees.copy(tree, copies[name])
    outcomes = _outcomes(folder)
    for number, mutant in enumerate(mutants):
        for name in NAMES if mutant.stands_in(copies["after"]) else ():
            if (number, name) not in outcomes:
                tests = trees.covering(folder / f"records-{name}", number)
                result = trees.outcome(copies[name], mutant, tests, folder) if tests else "not covered"
                outcomes[number, name] = result
                with (folder / "outcomes").open("a", encoding="utf-8") as lines:
                    lines.write(json.dumps([number, name, result]) + "\n")
    lost = 0
    for number, mutant in enumerate(mutants):
        results = [outcomes.get((number, name), "is no more") for name in NAMES]
        if results.count("died") == 1:
            print(f"{mutant.path} {mutant.function}, {mutant.kind}: {results[0]} before, {results[1]} after")
            lost += results[0] == "died"
    for name in NAMES:
        print(f"{name}: {sum(outcomes.get((n, name)) == 'died' for n in range(len(mutants)))} of {len(mutants)} died")
    return 1 if lost else 0


def _mutants(folder: Path) -> list[Mutant]:
    return [Mutant(**fields) for fields in json.loads((folder / "mutants.json").read_text(encoding="utf-8"))]


def _outcomes(folder: Path) -> dict[tuple[int, str], str]:
    path = folder / "outcomes"
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    return {(number, name): result for number, name, result in map(json.loads, lines)}


if __name__ == "__main__":
    raise SystemExit(main())
