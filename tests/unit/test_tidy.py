"""The house rules that no linter knows: sizes, names, words, links, and that tests mirror the source."""

import ast
import functools
import re
import subprocess
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("state_model", "sharelens", "jobs", "pyspark_kafka_log", "bench", "tools")
MAX_FUNCTION_LINES = 70
MAX_KERNEL_PARAMETERS = 8
MAX_MODULE_LINES = 400
MAX_MODULES_OF_A_FOLDER = 32
LARGER_MODULES = {
    "sharelens/broker/share/share_partition.py": 414,
    "sharelens/broker/storage/partition_log.py": 442,
    "sharelens/broker/storage/record_batch.py": 497,
    "sharelens/measures/dlq/reconciliation.py": 425,
    "sharelens/tables/logs/tables.py": 405,
}
"""Modules over the budget, with the lines that they may have; they only shrink."""
VAGUE_NAMES = {
    "found", "told", "asked", "held", "wanted", "given", "taken", "said", "one", "anew", "it", "those", "things",
    "stuff", "what", "nothing", "everything", "known", "own", "kept", "mine", "most", "left", "more", "some", "seen",
    "others", "made", "whole", "here", "both",
}  # fmt: skip
"""Words that name nothing: a name says what the value is."""
PRINTED_NAMES = {"state_model/audit/rule.py KNOWN"}
"""Members of an Enum that answers print by their names."""
PURE_CACHES = ("sharelens/lake/parquet.py encoding",)
"""Functions of the lake that remember what follows from a schema alone."""
MAX_FILE_BYTES = 4 << 20
# Written in pieces, so that this file may be looked at like any other.
BANNED = {
    "a note of unfinished work": r"\b(TO" + r"DO|FIX" + r"ME|X" + r"XX|HA" + r"CK)\b",
    "talk about how the project was written": r"\b(chat"
    r"gpt|cla"
    r"ude|lang"
    r"uage model|coding ag"
    r"ent)\b",
    "a path of one machine": r"(?<![\w.])/(wo" + r"rk|ro" + r"ot|home/\w+)/",
    "a package registry's address": r"\b(py"
    r"pi\.org|files\.python"
    r"hosted\.org|repo1\.ma"
    r"ven\.org|npm"
    r"js\.(org|com))",
}
TEXT_SUFFIXES = {".py", ".md", ".toml", ".yaml", ".yml", ".txt", ".properties", ".sql", ".cfg", ""}
# Tests of a property that several modules of the package keep together.
TESTS_OF_A_WHOLE_PACKAGE = {
    "tests/unit/sharelens/kafka_log/test_damage.py",
    "tests/unit/sharelens/cli/test_terminal.py",
    "tests/unit/sharelens/output/test_headings.py",
    "tests/unit/sharelens/output/test_screens.py",
}
CHANGELOG_HEADING = re.compile(r"^## \[(Unreleased|\d+\.\d+\.\d+)\]( - \d{4}-\d{2}-\d{2})?$")
CHANGELOG_SECTIONS = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


@functools.cache
def _files() -> list[Path]:
    """Every file under version control or about to be."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return [ROOT / name for name in listed.stdout.splitlines() if (ROOT / name).is_file()]


@functools.cache
def _modules() -> list[Path]:
    return sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))


def _texts() -> list[Path]:
    texts = [path for path in _files() if path.suffix in TEXT_SUFFIXES and path.name != "LICENSE"]
    assert len(texts) > 50
    return texts


@functools.cache
def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@functools.cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(_read(path))


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """A function or class of a module, or the module itself: what the rules ask of it."""

    where: str
    name: str
    lines: int
    docstring: str
    bases: tuple[str, ...] | None = None
    """Of a class; None: a function or a module."""
    is_top_level: bool = False


@functools.cache
def _definitions() -> tuple[Definition, ...]:
    """Every module, followed by its functions and classes at any depth."""
    return tuple(definition for path in _modules() for definition in _definitions_of(path))


def _definitions_of(path: Path) -> Iterator[Definition]:
    text, tree = _read(path), _tree(path)
    name = str(path.relative_to(ROOT))
    yield Definition(where=name, name="", lines=len(text.splitlines()), docstring=ast.get_docstring(tree) or "")
    for node in _nodes_of_definitions(tree):
        yield Definition(
            where=f"{name}:{node.lineno} {node.name}",
            name=node.name,
            lines=(node.end_lineno or 0) - node.lineno + 1,
            docstring=ast.get_docstring(node) or "",
            bases=tuple(map(ast.unparse, node.bases)) if isinstance(node, ast.ClassDef) else None,
            is_top_level=node in tree.body,
        )


def _nodes_of_definitions(node: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef]:
    """A definition is a statement, so the expressions (most of a tree) need no visit."""
    for below in ast.iter_child_nodes(node):
        if isinstance(below, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield below
        if isinstance(below, ast.stmt | ast.excepthandler | ast.match_case):
            yield from _nodes_of_definitions(below)


def test_functions_fit_on_a_page():
    functions = [definition for definition in _definitions() if definition.name and definition.bases is None]
    assert len(functions) > 100
    assert [
        f"{definition.where}: {definition.lines} lines"
        for definition in functions
        if definition.lines > MAX_FUNCTION_LINES
    ] == []


def test_kernels_take_records_of_arrays_where_they_need_many():
    kernels = [
        (path, node)
        for path in _modules()
        for node in _nodes_of_definitions(_tree(path))
        if {ast.unparse(decorator) for decorator in node.decorator_list} & {"kernel", "leaf"}
    ]
    assert len(kernels) > 100
    assert [
        f"{path.relative_to(ROOT)}:{node.lineno} {node.name}"
        for path, node in kernels
        if isinstance(node, ast.FunctionDef)
        and len(node.args.posonlyargs + node.args.args + node.args.kwonlyargs) > MAX_KERNEL_PARAMETERS
    ] == []


def test_modules_keep_to_their_budget():
    sizes = {definition.where: definition.lines for definition in _definitions() if not definition.name}
    assert len(sizes) > 20
    large = {name: lines for name, lines in sizes.items() if lines > LARGER_MODULES.get(name, MAX_MODULE_LINES)}
    assert large == {}


def test_folders_stay_small():
    sizes = Counter(path.parent.relative_to(ROOT) for path in [*_modules(), *(ROOT / "tests").rglob("*.py")])
    assert len(sizes) > 20
    assert {str(name): count for name, count in sizes.items() if count > MAX_MODULES_OF_A_FOLDER} == {}


def test_names_say_what_they_name():
    modules = [*_modules(), *sorted((ROOT / "dags").rglob("*.py")), *sorted((ROOT / "tests").rglob("*.py"))]
    names = [(path, line, name) for path in modules for line, name in _defined_names(path)]
    assert len(names) > 10_000
    vague = [
        f"{path.relative_to(ROOT)}:{line} {name}"
        for path, line, name in names
        if _is_vague(name) and f"{path.relative_to(ROOT)} {name}" not in PRINTED_NAMES
    ]
    assert vague == []


def _is_vague(name: str) -> bool:
    return name.strip("_").lower() in VAGUE_NAMES


def _defined_names(path: Path) -> Iterator[tuple[int, str]]:
    """Functions, classes, parameters, assigned names and attributes, and names of imports of a module."""
    for node in ast.walk(_tree(path)):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield node.lineno, name
            case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield node.lineno, name
            case ast.alias(asname=str(name)):
                yield node.lineno, name
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                yield node.lineno, name


def test_no_module_of_the_lake_remembers_results_between_calls():
    decorators = [
        f"{path.relative_to(ROOT)} {node.name}"
        for path in (ROOT / "sharelens" / "lake").rglob("*.py")
        for node in _tree(path).body
        if isinstance(node, ast.FunctionDef)
        and any(re.match(r"(functools\.)?(lru_)?cache\b", ast.unparse(decorator)) for decorator in node.decorator_list)
    ]
    assert set(decorators) <= set(PURE_CACHES)


def test_no_two_modules_import_each_other():
    modules = {_module_name(path): path for path in _modules()}
    imports = {name: _imported(name, path, set(modules)) for name, path in modules.items()}
    reached = {name: _reached(name, imports) for name in modules}
    cycles = {
        frozenset({name, other})
        for name in modules
        for other in reached[name]
        if other != name and name in reached[other]
    }
    assert cycles == set()


def _module_name(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def _imported(name: str, path: Path, modules: set[str]) -> set[str]:
    """Our modules that a module imports, inside functions and for type checkers alone too."""
    targets = set()
    waiting: list[ast.AST] = [_tree(path)]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.ImportFrom) and node.module:
            full = {f"{node.module}.{alias.name}" for alias in node.names}
            targets |= (full & modules) | ({node.module} if full - modules else set())
        elif isinstance(node, ast.Import):
            targets |= {alias.name for alias in node.names}
        if not isinstance(node, ast.expr):  # no expression holds an import
            waiting.extend(ast.iter_child_nodes(node))
    return (targets & modules) - {name}


def _reached(name: str, imports: dict[str, set[str]]) -> set[str]:
    reached: set[str] = set()
    waiting = list(imports[name])
    while waiting:
        module = waiting.pop()
        if module not in reached:
            reached.add(module)
            waiting.extend(imports[module])
    return reached


def test_error_classes_end_in_error_and_say_when_they_are_raised():
    errors = [definition for definition in _definitions() if any("Error" in base for base in definition.bases or ())]
    assert len(errors) > 5
    wrong = [
        definition
        for definition in errors
        if not (definition.name.endswith("Error") and definition.docstring.startswith("Raised when "))
    ]
    assert [f"{definition.where}: {definition.docstring[:40]!r}" for definition in wrong] == []


def test_modules_and_public_functions_say_what_they_are():
    public = [
        definition for definition in _definitions() if definition.is_top_level and not definition.name.startswith("_")
    ]
    assert len(public) > 100
    modules = [definition for definition in _definitions() if not definition.name]
    assert [definition.where for definition in modules + public if not definition.docstring] == []


@pytest.mark.parametrize("content", sorted(BANNED))
def test_files_do_not_contain(content):
    pattern = re.compile(BANNED[content], re.IGNORECASE if "talk" in content else 0)
    banned = []
    for path in _texts():
        for number, line in enumerate(_read(path).splitlines(), 1):
            if pattern.search(line):
                banned.append(f"{path.relative_to(ROOT)}:{number}: {line.strip()[:80]}")
    assert banned == []


def test_no_file_is_large():
    sizes = {str(path.relative_to(ROOT)): path.stat().st_size for path in _files()}
    assert {name: size for name, size in sizes.items() if size > MAX_FILE_BYTES} == {}


def test_links_in_the_docs_lead_somewhere():
    links = 0
    dead = []
    for page in [path for path in _files() if path.suffix == ".md"]:
        for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
            if re.match(r"[a-z]+:", target) or target.startswith("#"):
                continue
            links += 1
            if not (page.parent / target.partition("#")[0]).exists():
                dead.append(f"{page.relative_to(ROOT)}: {target}")
    assert links > 5
    assert dead == []


def test_changelog_keeps_its_shape():
    lines = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").splitlines()
    assert lines[0] == "# Changelog"
    headings = [line for line in lines if line.startswith("## ")]
    assert headings
    assert all(CHANGELOG_HEADING.match(line) for line in headings)
    sections = [line.removeprefix("### ") for line in lines if line.startswith("### ")]
    assert sections
    assert set(sections) <= CHANGELOG_SECTIONS


def test_unit_test_files_mirror_the_source():
    orphans = []
    tests = [path for path in (ROOT / "tests" / "unit").rglob("test_*.py") if path.parent != ROOT / "tests" / "unit"]
    assert len(tests) > 10
    for path in tests:
        folder = ROOT / path.parent.relative_to(ROOT / "tests" / "unit")
        subject = path.stem.removeprefix("test_")
        if str(path.relative_to(ROOT)) in TESTS_OF_A_WHOLE_PACKAGE:
            continue
        if not folder.is_dir() or not _names_a_part_of(folder, subject):
            orphans.append(str(path.relative_to(ROOT)))
    assert orphans == []


def _names_a_part_of(folder: Path, subject: str) -> bool:
    """Whether the subject is a module or package of the folder, or begins with one's name (test_x_properties)."""
    parts = {path.stem for path in folder.iterdir() if path.suffix == ".py" or path.is_dir()}
    return any(subject == part or subject.startswith(f"{part}_") for part in parts)


def test_one_table_says_how_many_examples_properties_draw():
    table = ROOT / "tests" / "depths.py"
    files = [path for path in (ROOT / "tests").rglob("*.py") if path != table and path != Path(__file__).resolve()]
    assert "max_examples=" in _read(table)
    assert [str(path.relative_to(ROOT)) for path in files if "max_examples=" in _read(path)] == []


def test_defaults_that_travel_with_the_wheel_are_the_ones_of_the_checkout():
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert '"conf/base" = "sharelens/conf/base"' in text
    assert not (ROOT / "sharelens" / "conf").exists()
