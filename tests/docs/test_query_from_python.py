"""The code of docs/how-to/query-from-python.md runs as it stands."""

import re
from pathlib import Path
from typing import Any

import pytest

from tests.processes.in_process import recorded_lake

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "query-from-python.md"
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


@pytest.mark.slow
def test_the_code_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "lake").symlink_to(recorded_lake("dlq"))
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for block in BLOCKS:
        exec(block, names)  # the page's own code
    assert names["lags"]["lag"].sum() > 0
    assert names["stalls"].height >= 0
    assert sorted(names["stuck"].rows()) == sorted(tuple(row.values()) for row in names["stuck_too"].to_pylist()) != []
    assert dict(names["kinds"])["retry"] > 0
    assert names["rows"].num_rows == 2
    assert names["causes"].num_rows > 0
    for shown, items in re.findall(r"^lake\.(\w+)  # (\[.*\])$", "".join(BLOCKS), re.MULTILINE):
        values = iter(getattr(names["lake"], shown))
        assert all(item in values for item in re.findall(r"'(.*?)'", items)), f"{shown}: in this order"
