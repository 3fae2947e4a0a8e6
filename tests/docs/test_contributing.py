"""The pages of docs/contributing are followed step by step on a copy of the tree, as a contributor follows them.

A block with a title is a new file, a block of `diff` changes files, one of `sh` is run, and one of `console` has
commands with what they print on stdout. A line `…` of a page stands for any lines, `…` inside of a line for any text.
"""

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from sharelens.lake.tables import TABLES
from tests.once import made_once

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "docs" / "contributing"
OVERVIEW = "where-things-are"
BEGINS_WHERE = {"add-a-question": "add-a-measure"}
"""Pages that go on from another one."""
EXAMPLES = sorted(page.stem for page in PAGES.glob("*.md") if page.stem != OVERVIEW)
FENCE = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)
NAMED_PATH = re.compile(r"(?<![\w./-])(?:state_model|sharelens|jobs|dags|tools|tests|conf|docs)/[\w./-]*\w/?")
LEFT_OUT = "…"
COPIED = (
    *("state_model", "sharelens", "jobs", "dags", "pyspark_kafka_log", "bench", "tools", "tests", "conf", "docs"),
    *(path.name for path in ROOT.iterdir() if path.is_file() and path.name != ".git"),
)
"""A `.git` that is a file is that of a worktree, and names the repository."""
HOUSE_RULES = "not import_each_other and not files_do_not_contain and not links"
"""All but those that take seconds for the whole tree, or are about other files than the examples."""
LOGS = "tests/data"
"""Linked in the copy: nothing writes to it."""
LOGS_FOLDER = str(ROOT / "tests")
FOREIGN_VARIABLES = ("SHARELENS", "PYTHON", "PYTEST", "GIT_")
"""Beginnings of names of environment variables that commands don't get."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A block of a page. `title`: the path of a new file."""

    language: str
    title: str
    text: str


def blocks(page: str) -> list[Block]:
    text = (PAGES / f"{page}.md").read_text(encoding="utf-8")
    return [Block(language=language, title=title, text=body) for language, title, body in FENCE.findall(text)]


def changed_files(page: str) -> list[str]:
    """The new and the changed files of a page."""
    diffs = (re.findall(r"^\+\+\+ b/(\S+)$", block.text, re.MULTILINE) for block in blocks(page))
    return [block.title for block in blocks(page) if block.title] + [path for paths in diffs for path in paths]


def copy_of_the_tree(folder: Path) -> Path:
    """A copy with the times of files and the compiled kernels beside the modules, which stay valid by their hashes."""
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=lambda place, names: {"data"} if place == LOGS_FOLDER else ())
        else:
            shutil.copy2(source, folder / name)
    (folder / LOGS).symlink_to(ROOT / LOGS, target_is_directory=True)
    return folder


def run(command: str, tree: Path) -> subprocess.CompletedProcess[str]:
    """Runs a command in the copy, whose modules come before those of the environment."""
    kept_variables = {name: text for name, text in os.environ.items() if not name.startswith(FOREIGN_VARIABLES)}
    variables = {
        "GIT_CEILING_DIRECTORIES": str(tree.parent),
        "HOME": str(tree.parent),
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
        "PYTHONPATH": str(tree),
        "SHARELENS_ARCHIVES_DIR": str(tree.parent / "archives"),
    }
    return subprocess.run(
        ["bash", "-uo", "pipefail", "-c", command],
        cwd=tree, env={**kept_variables, **variables}, capture_output=True, text=True, check=False,
    )  # fmt: skip


def apply(block: Block, tree: Path) -> None:
    """Makes the new file, or changes the files, of a block."""
    if block.title:
        path = tree / block.title
        assert not path.exists(), block.title
        path.write_text(block.text, encoding="utf-8")
    elif block.language == "diff":
        # Inside of another repository git would pass over the files in silence.
        variables = {**os.environ, "GIT_CEILING_DIRECTORIES": str(tree.parent)}
        apply_command = ["git", "apply", "--whitespace=nowarn", "-"]
        subprocess.run(apply_command, cwd=tree, input=block.text, text=True, check=True, env=variables)
    elif block.language == "sh" and "<<" in block.text:
        subprocess.run(["bash", "-euc", block.text], cwd=tree, check=True)


def pattern_of(printed: str) -> re.Pattern[str]:
    """The outputs that a page's lines stand for; runs of blanks are as wide as they like."""
    parts = []
    for line in printed.splitlines():
        if line.strip() == LEFT_OUT:
            parts.append(r"(?:.*\n)*?")
        else:
            words = (".*".join(map(re.escape, word.split(LEFT_OUT))) for word in line.split())
            parts.append(r"[ \t]*" + r"[ \t]+".join(words) + r"[ \t]*\n")
    return re.compile("".join(parts))


def follow(page: str, tree: Path) -> int:
    """Applies the blocks of a page in their order and runs its commands; the number of commands."""
    command_count = 0
    for block in blocks(page):
        apply(block, tree)
        if block.language != "console":
            continue
        _, *parts = re.split(r"^\$ ", block.text, flags=re.MULTILINE)
        for part in parts:
            command, _, printed = part.partition("\n")
            done = run(command, tree)
            assert done.returncode == 0, f"$ {command}\n{done.stdout}{done.stderr}"
            assert pattern_of(printed).fullmatch(done.stdout), f"$ {command}\n{done.stdout}"
            command_count += 1
    return command_count


def pages_before(page: str) -> list[str]:
    before = BEGINS_WHERE.get(page)
    return [] if before is None else [*pages_before(before), before]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    pristine_copy = made_once("tree", copy_of_the_tree)
    return shutil.copytree(pristine_copy, tmp_path / "tree", symlinks=True)


@pytest.mark.slow
def test_commands_run_the_code_of_the_copy(tree: Path) -> None:
    done = run("python -c 'import jobs, sharelens, state_model; print(sharelens.__file__)' && which sharelens", tree)
    assert done.stdout.splitlines()[0] == str(tree / "sharelens" / "__init__.py")
    (tree / "sharelens" / "__init__.py").write_text("raise SystemExit('the copy')\n", encoding="utf-8")
    assert run("sharelens --version", tree).stderr == "the copy\n"


@pytest.mark.soak
@pytest.mark.slow
@pytest.mark.parametrize("page", EXAMPLES)
def test_the_page_can_be_followed(page: str, tree: Path) -> None:
    for earlier_page in pages_before(page):
        for block in blocks(earlier_page):
            apply(block, tree)
    assert follow(page, tree) >= 3


@pytest.mark.soak
def test_all_examples_together_keep_the_rules_of_the_house(tree: Path) -> None:
    for page in EXAMPLES:
        for block in blocks(page):
            apply(block, tree)
    files = sorted({file for page in EXAMPLES for file in changed_files(page) if file.endswith(".py")})
    assert len(files) > 15
    for command in (f"ruff check {' '.join(files)}", f"ruff format --check {' '.join(files)}"):
        done = run(command, tree)
        assert done.returncode == 0, done.stdout + done.stderr
    # The rules list files by git.
    done = run(f"git init -q && python -m pytest -q -x tests/unit/test_tidy.py -k '{HOUSE_RULES}'", tree)
    assert done.returncode == 0, done.stdout


def test_every_path_on_the_pages_exists() -> None:
    pages = [OVERVIEW, *EXAMPLES]
    new_files = {block.title for page in pages for block in blocks(page)}
    paths = {
        (page, path)
        for page in pages
        for path in NAMED_PATH.findall((PAGES / f"{page}.md").read_text(encoding="utf-8"))
        if path not in new_files
    }
    assert len(paths) > 60
    assert sorted((page, path) for page, path in paths if not (ROOT / path).exists()) == []


def test_every_example_is_named_in_the_overview() -> None:
    overview = (PAGES / f"{OVERVIEW}.md").read_text(encoding="utf-8")
    assert len(EXAMPLES) == 5
    assert [page for page in EXAMPLES if f"({page}.md)" not in overview] == []


def test_names_of_columns_in_the_style_are_those_of_tables() -> None:
    columns = {field.name for table in TABLES.values() for field in table.schema}
    lines = (ROOT / "STYLE.md").read_text(encoding="utf-8").splitlines()
    rows = [line.split("|")[1:3] for line in lines if line.startswith("|")]
    names, rejected_names = (set(re.findall(r"`(\w+)`", " ".join(cells))) for cells in zip(*rows, strict=True))
    assert {"start_offset", "state_epoch", "delivery_count", "duration_ms", "record_bytes", "lag"} <= names & columns
    assert "lag_records" in rejected_names
    assert rejected_names & columns == set()


def test_a_line_left_out_stands_for_any_lines_and_blanks_for_blanks() -> None:
    pattern = pattern_of("a  b\n…\nlast … line\n")
    assert pattern.fullmatch("a b\nlast short line\n")
    assert pattern.fullmatch("a     b\n1\n2\nlast long, long line\n")
    assert not pattern.fullmatch("a b\nlast short line\nbut one\n")
    assert not pattern.fullmatch("ab\nlast short line\n")
