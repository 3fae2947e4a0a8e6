"""One writer a lake in a bucket: leases, takeovers, processes that stop and go on."""

import json
import os
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack

import pyarrow as pa
import pytest

from sharelens.lake import lease
from sharelens.lake.commit import LEASE_APPLICATION, create_tables, write
from sharelens.lake.errors import LakeError, LakeLockedError
from sharelens.lake.lake import Lake
from sharelens.lake.lock import hold
from sharelens.lake.object_storage import ObjectStorage
from sharelens.lake.parquet import write_rows
from sharelens.lake.tables import TABLES
from tests.datasets import dataset
from tests.depths import in_soak
from tests.lakes import content, differences
from tests.processes.in_process import make_lake, recorded_lake
from tests.processes.s3_server import Fault, S3Server
from tests.processes.stopped_runs import TERM_S, assert_publishes_nothing_after_a_takeover, stopped_run

NAME = "silver.name"


@pytest.fixture(autouse=True)
def _short_term(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease, "TERM_S", TERM_S)


def lease_of(lake: str) -> dict[str, object]:
    """The content of the lease object."""
    return dict(json.loads(Lake(lake).storage.read(lease.LEASE)))


def commit_name(lake: Lake, run: int) -> int:
    """Commits one row to silver.name."""
    row = {"topic_id": f"t{run}", "topic": "orders", "source": "s", "cluster_id": "c", "run_id": run}
    table = TABLES[NAME]
    rows = pa.Table.from_pylist([row], schema=table.schema)
    return write(lake, NAME, {"ingest": run}, adds=write_rows(lake, table, rows, {}))


def until(condition: Callable[[], bool], timeout_s: float = 20.0) -> None:
    """Waits for a condition."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_writer_waits_for_another_one_then_says_who_holds_the_lake(bucket: str) -> None:
    with hold(Lake(bucket), 0):
        begun = time.monotonic()
        with (
            pytest.raises(LakeLockedError, match=f"held by process {os.getpid()} on .*--lock-timeout"),
            hold(Lake(bucket), 2 * TERM_S),
        ):
            pass
        assert time.monotonic() - begun >= 2 * TERM_S  # for it was renewed all the time
    with hold(Lake(bucket), 0):
        assert lease_of(bucket)["token"] == 2
    assert lease_of(bucket)["pid"] is None


def test_a_writer_that_waits_gets_the_lake_when_it_is_given_back(bucket: str) -> None:
    got = threading.Event()

    def wait() -> None:
        with hold(Lake(bucket), 30):
            got.set()

    with hold(Lake(bucket), 0):
        waiting = threading.Thread(target=wait)
        waiting.start()
        assert not got.wait(0.5)
    waiting.join(30)
    assert got.is_set()


def test_of_writers_that_start_at_once_one_at_a_time_holds_the_lake(
    bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease, "TERM_S", 60.0)  # a busy machine may keep a holder from renewing for a short term
    holders, max_holders = [0], [0]

    def take() -> None:
        with hold(Lake(bucket), 60):
            holders[0] += 1
            max_holders[0] = max(max_holders[0], holders[0])
            time.sleep(0.05)
            holders[0] -= 1

    threads = [threading.Thread(target=take) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert max_holders == [1]
    assert lease_of(bucket)["token"] == 4


def test_who_comes_second_to_a_free_lake_says_who_was_first(bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with hold(Lake(bucket), 0):
        pass
    take = lease._take
    with ExitStack() as first:

        def come_second(storage: ObjectStorage, last_holding: lease.Holding | None) -> lease.Holding | None:
            monkeypatch.setattr(lease, "_take", take)
            first.enter_context(hold(Lake(bucket), 0))
            return take(storage, last_holding)

        monkeypatch.setattr(lease, "_take", come_second)
        with pytest.raises(LakeLockedError, match=f"held by process {os.getpid()} on "), hold(Lake(bucket), 0):
            pass


def test_a_lease_without_renewals_is_taken_over_after_its_term_and_every_table_is_fenced(bucket: str) -> None:
    with hold(lake := Lake(bucket), 0):
        create_tables(lake)
        stopped_lease = lake.lease
        assert stopped_lease is not None
        stopped_lease.end()  # as if the process had stopped
        begun = time.monotonic()
        with hold(successor := Lake(bucket), 30):
            assert time.monotonic() - begun >= TERM_S
            assert all(successor.transaction(name, LEASE_APPLICATION) == 2 for name in TABLES)
            with pytest.raises(LakeLockedError, match=r"another process has taken the lake over.*run again$"):
                commit_name(lake, 1)
            assert commit_name(successor, 1) == 2
    assert lease_of(bucket)["token"] == 2


def test_a_commit_that_was_under_way_during_the_takeover_fails(bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process stops between its look at the lease and its commit."""
    with hold(lake := Lake(bucket), 0):
        create_tables(lake)
        assert lake.lease is not None
        lake.lease.end()
        checked = lake.lease.ensure_held

        def stop_behind_the_look() -> None:
            checked()
            with hold(Lake(bucket), 30):
                pass

        monkeypatch.setattr(lake.lease, "ensure_held", stop_behind_the_look)
        with pytest.raises(LakeError, match=r"silver.name in .*: version 1 was committed by another writer; run again"):
            commit_name(lake, 1)
    opened = Lake(bucket)
    assert opened.snapshot(NAME).files == ()
    assert opened.version(NAME) == 1


@pytest.mark.parametrize(
    "point", ["commit:gold.publication:publish:before", *in_soak("commit:silver.share_record:decode:before")]
)
def test_a_stopped_run_that_goes_on_after_a_takeover_publishes_nothing(bucket: str, point: str) -> None:
    assert_publishes_nothing_after_a_takeover(bucket, point)


@pytest.mark.parametrize(
    "point", ["commit:gold.share_partition_state:replay:after", *in_soak("commit:bronze.log_record:ingest:after")]
)
def test_a_killed_run_is_finished_by_the_next_one(bucket: str, point: str) -> None:
    with stopped_run(bucket, point) as run:
        run.kill()
    make_lake(bucket, dataset("basic") / "logs")
    assert not differences(content(bucket), content(recorded_lake("basic")))


def test_a_store_without_conditional_puts_is_refused_and_left_as_it_was(s3: S3Server, bucket: str) -> None:
    s3.answer(Fault(to="PUT", is_unconditional=True))
    with pytest.raises(LakeError, match=r"does not put objects on condition \(If-None-Match\).*use a store that does"):
        make_lake(bucket, dataset("basic") / "logs")
    assert Lake(bucket).storage.names() == []


def test_a_first_run_that_was_killed_while_it_tested_the_store_keeps_the_next_one_waiting_for_its_term(
    bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def be_killed(storage: ObjectStorage, created: lease.Holding) -> lease.Holding:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(lease, "_tested", be_killed)
        with pytest.raises(KeyboardInterrupt):
            make_lake(bucket, dataset("basic") / "logs")
    assert Lake(bucket).storage.names() == [lease.LEASE]
    make_lake(bucket, dataset("basic") / "logs", lock_timeout_s=60)
    assert lease_of(bucket)["token"] == 2


def test_what_an_earlier_version_left_of_its_test_of_the_store_is_no_other_thing(bucket: str) -> None:
    storage = Lake(bucket).storage
    assert isinstance(storage, ObjectStorage)
    storage.replace(".lease.probe-0123", b"1", None)
    make_lake(bucket, dataset("basic") / "logs")
    assert lease_of(bucket)["token"] == 1


def test_an_object_that_is_no_lease_is_refused(bucket: str) -> None:
    storage = Lake(bucket).storage
    assert isinstance(storage, ObjectStorage)
    storage.replace(lease.LEASE, b'{"token": "x"}', None)
    with pytest.raises(LakeError, match=r"\.lease is no lease of sharelens"), hold(Lake(bucket), 0):
        pass


@pytest.mark.parametrize("lost", range(8))
def test_the_answer_to_each_request_of_a_writer_may_be_lost(s3: S3Server, bucket: str, lost: int) -> None:
    """The store has written the object; the repeated request no longer meets its condition."""
    s3.answer(Fault(to="PUT", answer="500 InternalError", is_done=True, after=lost, times=1))
    for token in (1, 2):
        with hold(Lake(bucket), 0):
            assert lease_of(bucket)["token"] == token
    assert lease_of(bucket)["pid"] is None


def test_a_renewal_whose_answer_was_lost_keeps_the_lease(s3: S3Server, bucket: str) -> None:
    with hold(lake := Lake(bucket), 0):
        assert lake.lease is not None
        lake.lease.end()
        before = lease_of(bucket)["renewals"]
        s3.answer(Fault(to="PUT", answer="500 InternalError", is_done=True, times=1))
        time.sleep(TERM_S / 2)
        lake.lease.ensure_held()
        assert [before, lease_of(bucket)["renewals"]] == [1, 2]
    assert lease_of(bucket)["pid"] is None
