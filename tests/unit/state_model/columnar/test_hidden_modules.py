"""A module is hidden from the imports of one thread, and there again afterwards."""

import importlib
import subprocess
import sys
from threading import Thread

import pytest

from state_model.columnar.hidden_modules import hidden

UNUSED = "module_of_one_test"


@pytest.fixture
def unimported(tmp_path, monkeypatch):
    (tmp_path / f"{UNUSED}.py").write_text("VALUE = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield UNUSED
    sys.modules.pop(UNUSED, None)


def test_a_hidden_module_is_missing_until_the_block_ends(unimported):
    with hidden(unimported), pytest.raises(ModuleNotFoundError, match=f"{UNUSED} is hidden"):
        importlib.import_module(unimported)
    assert importlib.import_module(unimported).VALUE == 1


def test_other_threads_import_a_hidden_module(unimported):
    values = []
    with hidden(unimported):
        other = Thread(target=lambda: values.append(importlib.import_module(unimported).VALUE))
        other.start()
        other.join()
    assert values == [1]


def test_a_module_that_is_imported_stays(unimported):
    importlib.import_module(unimported)
    with hidden(unimported):
        assert importlib.import_module(unimported).VALUE == 1


@pytest.mark.slow
def test_kernels_run_without_scipy_which_can_be_imported_afterwards():
    code = (
        "import sys\n"
        "import numpy as np\n"
        "from state_model.columnar.kernels import kernel\n"
        "def first(rows): return rows[0]\n"
        "assert kernel(first)(np.ones(1, np.int64)) == 1\n"
        "assert 'scipy' not in sys.modules\n"
        "import scipy.linalg\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
