"""Members in processes of their own."""

import sys
import textwrap
import threading

import pytest

from sharelens.workloads.processes import MemberProcess

pytestmark = pytest.mark.slow

MEMBER = textwrap.dedent("""
    import time
    from sharelens.workloads.processes import run_member

    def run(write, is_over):
        write("joined", member="m")
        while not is_over():
            time.sleep(0.01)
        write("left", member="m")

    run_member(run)
""")


class Entries(list):
    """The entries of a member, the first of which the test waits for."""

    def __init__(self):
        super().__init__()
        self.has_joined = threading.Event()

    def write(self, event, **fields):
        self.append((event, fields["member"]))
        self.has_joined.set()


@pytest.fixture
def entries():
    return Entries()


@pytest.fixture
def process(entries):
    process = MemberProcess([sys.executable, "-c", MEMBER], entries.write)
    assert entries.has_joined.wait(60)
    return process


def test_a_closed_member_leaves(process, entries):
    process.close()
    assert entries == [("joined", "m"), ("left", "m")]


def test_a_killed_member_says_nothing_more(process, entries):
    process.kill()
    assert entries == [("joined", "m")]
