"""Lakes and log copies on stores other than the S3 server of the other tests: Azure's blobs, another S3 server."""

import contextlib
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest

from sharelens.cli import main
from sharelens.lake import lease
from sharelens.lake.commit import commit, create
from sharelens.lake.errors import LakeError
from sharelens.lake.lake import Lake
from sharelens.lake.parquet import write_rows
from sharelens.lake.tables import TABLES
from tests.datasets import dataset
from tests.lakes import content, differences
from tests.processes.in_process import make_lake, recorded_lake
from tests.processes.stopped_runs import TERM_S, assert_publishes_nothing_after_a_takeover
from tests.processes.store_servers import StoreServer, azurite, localbucket, put_folder

NAME = "silver.name"
SERVERS = {"azurite": azurite, "localbucket": localbucket}
COMMITS_EACH = 3


@pytest.fixture(scope="module")
def _azurite() -> Iterator[StoreServer]:
    with azurite() as server:
        yield server


@pytest.fixture(scope="module")
def _localbucket() -> Iterator[StoreServer]:
    with localbucket() as server:
        yield server


@pytest.fixture
def azure(_azurite: StoreServer, monkeypatch: pytest.MonkeyPatch) -> StoreServer:
    """Azure's blobs, which the environment of this process names."""
    return _named(_azurite, monkeypatch)


@pytest.fixture
def another_s3(_localbucket: StoreServer, monkeypatch: pytest.MonkeyPatch) -> StoreServer:
    """An S3 server without If-Match, which the environment of this process names."""
    return _named(_localbucket, monkeypatch)


@pytest.fixture(params=sorted(SERVERS))
def store(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> StoreServer:
    """A store, which the environment of this process names."""
    return _named(request.getfixturevalue(f"_{request.param}"), monkeypatch)


def _named(server: StoreServer, monkeypatch: pytest.MonkeyPatch) -> StoreServer:
    for name, value in server.environment.items():
        monkeypatch.setenv(name, value)
    return server


def test_a_lake_in_azure_is_that_on_a_path_table_by_table(azure: StoreServer) -> None:
    lake = f"{azure.new_bucket()}/forensics"
    make_lake(lake, dataset("basic") / "logs")
    assert not differences(content(lake), content(recorded_lake("basic")))
    make_lake(lake, dataset("basic") / "logs")
    account = lake.replace("az://", "abfss://").replace("/forensics", f"@{os.environ['AZURE_STORAGE_ACCOUNT_NAME']}")
    assert not differences(content(f"{account}.dfs.core.windows.net/forensics"), content(lake))


def test_logs_in_a_store_make_the_lake_and_the_answers_of_logs_on_a_path(
    store: StoreServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    logs = f"{store.new_bucket()}/copies/broker-1"
    put_folder(dataset("basic") / "logs", logs)
    make_lake(tmp_path / "lake", logs)
    assert not differences(content(tmp_path / "lake"), content(recorded_lake("basic")))
    answers = []
    for place in (logs.removesuffix("/broker-1"), str(dataset("basic") / "logs")):
        assert main(["state", "--log-dir", place, "--output", "json"]) == 0
        answers.append(capsys.readouterr().out)
    assert answers[0] == answers[1]


def test_of_three_writers_that_race_each_commits_all_and_none_is_lost(store: StoreServer) -> None:
    """Without a lease, as if it did not exist: the store's conditional put alone lets one commit be a version."""
    lake = f"{store.new_bucket()}/race"
    create(Lake(lake), TABLES[NAME])

    def commit_all(writer: int) -> None:
        for number in range(COMMITS_EACH):
            run = 100 * writer + number + 1
            row = {"topic_id": f"t{run}", "topic": "orders", "source": "s", "cluster_id": "c", "run_id": run}
            rows = pa.Table.from_pylist([row], schema=TABLES[NAME].schema)
            while True:  # until the table has it, as a run that is finished later
                writer_lake = Lake(lake)
                with contextlib.suppress(LakeError):
                    commit(
                        writer_lake,
                        NAME,
                        stage=f"writer {writer}",
                        run=run,
                        adds=write_rows(writer_lake, TABLES[NAME], rows, {}),
                    )
                    break

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(commit_all, range(3)))
    assert Lake(lake).version(NAME) == 3 * COMMITS_EACH
    runs = Lake(lake).snapshot(NAME).dataset().to_table(columns=["run_id"]).column(0).to_pylist()
    assert sorted(runs) == [100 * writer + number + 1 for writer in range(3) for number in range(COMMITS_EACH)]


@pytest.mark.soak
def test_a_stopped_run_in_azure_that_goes_on_after_a_takeover_publishes_nothing(
    azure: StoreServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease, "TERM_S", TERM_S)
    assert_publishes_nothing_after_a_takeover(f"{azure.new_bucket()}/taken", "commit:gold.publication:publish:before")


@pytest.mark.parametrize(
    ("variable", "value", "words"),
    [
        ("AZURE_STORAGE_ACCOUNT_KEY", "bm90IHRoaXMgb25l", r"no right to do this; grant list, read, write and delete"),
        ("AZURITE_BLOB_STORAGE_URL", "http://127.0.0.1:9", r"the store can't be reached; check the endpoint"),
    ],
)
def test_azure_refuses_in_one_line_without_the_key(
    variable: str, value: str, words: str, azure: StoreServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = f"{azure.new_bucket()}/refused"
    monkeypatch.setenv(variable, value)
    with pytest.raises(LakeError, match=words) as caught:
        make_lake(lake, dataset("basic") / "logs")
    assert "\n" not in str(caught.value)
    assert value not in str(caught.value).replace(azure.endpoint, "")
    monkeypatch.setenv(variable, azure.environment[variable])
    with pytest.raises(LakeError, match="there is no such bucket; make it"):
        make_lake("az://no-such-container/lake", dataset("basic") / "logs")


def test_a_store_that_knows_if_none_match_alone_is_refused_and_left_as_it_was(another_s3: StoreServer) -> None:
    lake = f"{another_s3.new_bucket()}/refused"
    with pytest.raises(LakeError, match=r"does not put objects on condition \(If-Match\).*use a store that does"):
        make_lake(lake, dataset("basic") / "logs")
    assert Lake(lake).storage.names() == []


@pytest.mark.soak
def test_a_lake_on_another_s3_server_is_that_on_a_path_table_by_table(
    another_s3: StoreServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has no If-Match, so one writer is all it can bear: the test leaves out the refusal."""
    monkeypatch.setattr(lease, "_tested", lambda storage, created: created)
    lake = f"{another_s3.new_bucket()}/forensics"
    make_lake(lake, dataset("basic") / "logs")
    assert not differences(content(lake), content(recorded_lake("basic")))
