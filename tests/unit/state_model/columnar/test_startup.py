"""What a short command leaves out."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from state_model.columnar.kernels import SHIPPED, has_shipped_kernels
from tests.datasets import dataset
from tests.processes.in_process import make_lake

POOL = "ARROW_DEFAULT_MEMORY_POOL"


def imported_by(*statements: str, heavy: tuple[str, ...]) -> list[str]:
    """Those of the heavy modules that a fresh interpreter has imported after the statements."""
    code = "\n".join(["import sys", *statements, f"print(*(name for name in {heavy!r} if name in sys.modules))"])
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.split()


@pytest.mark.slow
def test_questions_to_a_lake_start_without_kernels_pandas_spark_and_delta_rs() -> None:
    heavy = ("numba", "pandas", "pyspark", "deltalake")
    assert imported_by("import sharelens.tables.lakes.tables", heavy=heavy) == []


@pytest.mark.slow
def test_questions_to_a_log_directory_start_without_pandas_and_spark() -> None:
    assert imported_by("import sharelens.tables.logs.tables", heavy=("pandas", "pyspark", "deltalake")) == []


@pytest.mark.slow
@pytest.mark.parametrize("question", ["overview", "stalled", "audit", "latency"])
def test_questions_to_a_log_directory_need_no_numba_where_kernels_came_with_the_package(question: str) -> None:
    if not has_shipped_kernels():
        pytest.skip(f"{SHIPPED} has no kernels; `make setup` compiles them")
    asks = (
        "import contextlib, io",
        "from sharelens.cli import main",
        "with contextlib.redirect_stdout(io.StringIO()) as answer:",
        f"    main([{question!r}, '--log-dir', {str(dataset('basic') / 'logs')!r}, '--output', 'json'])",
        "assert answer.getvalue().startswith(('[', '{'))",
    )
    assert imported_by(*asks, heavy=("numba", "llvmlite", "pandas", "pyspark", "deltalake")) == []


@pytest.mark.slow
def test_questions_to_a_cluster_start_without_pandas_and_spark() -> None:
    asks = (
        "import contextlib, io",
        "from sharelens.cli import main",
        "with contextlib.redirect_stderr(io.StringIO()) as problem:",
        "    assert main(['state', '--bootstrap-server', '127.0.0.1:1']) == 1",
        "assert '127.0.0.1:1' in problem.getvalue()",
    )
    assert imported_by(*asks, heavy=("sharelens.kafka_live.cluster", "pandas", "pyspark", "deltalake")) == [
        "sharelens.kafka_live.cluster"
    ]


@pytest.mark.slow
def test_a_run_without_news_starts_without_kernels_pandas_and_spark(tmp_path: Path) -> None:
    logs = dataset("basic") / "logs"
    make_lake(tmp_path / "lake", logs)
    again = (
        "import contextlib, io",
        "from sharelens.cli import main",
        "with contextlib.redirect_stdout(io.StringIO()) as summary, contextlib.suppress(SystemExit):",
        f"    main(['run', '--lake', {str(tmp_path / 'lake')!r}, '--log-dir', {str(logs)!r}])",
        "assert '\"run_id\"' in summary.getvalue()",
    )
    assert imported_by(*again, heavy=("numba", "pandas", "pyspark")) == []


@pytest.mark.slow
@pytest.mark.parametrize(("environment", "pool"), [({}, "system"), ({POOL: "mimalloc"}, "mimalloc")])
def test_the_command_line_shares_one_heap_between_arrow_and_numpy(environment: dict[str, str], pool: str) -> None:
    asks = (
        "import sys",
        "from sharelens.cli import main",
        "main(['audit', '--explain', '20'])",
        "import pyarrow as pa",
        "print(pa.default_memory_pool().backend_name, file=sys.stderr)",
    )
    outside = {name: value for name, value in os.environ.items() if name != POOL}
    command = [sys.executable, "-c", "\n".join(asks)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=outside | environment)
    assert done.stderr.split() == [pool]


@pytest.mark.slow
def test_pandas_can_be_imported_after_arrow() -> None:
    asks = (
        "from state_model.columnar.startup import import_arrow_without_pandas",
        "import_arrow_without_pandas()",
        "import pandas, pyarrow as pa",
        "assert pa.array(pandas.Series([1])).to_pylist() == pa.table({'a': [1]}).to_pandas()['a'].tolist()",
    )
    assert imported_by(*asks, heavy=("pandas",)) == ["pandas"]
