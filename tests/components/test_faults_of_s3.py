"""Stores that refuse, are slow or cut answers off: one line each, and nothing half-written; few requests."""

import subprocess
import sys
from pathlib import Path

import pytest

from sharelens.lake import lease
from sharelens.lake.errors import LakeError
from sharelens.lake.lake import Lake
from sharelens.lake.scan import open_lake
from sharelens.lake.tables import TABLES
from sharelens.lake.transactions import commit_path
from tests.datasets import dataset
from tests.depths import in_soak, rows_in_soak
from tests.lakes import content, differences
from tests.processes.in_process import make_lake, recorded_lake
from tests.processes.interrupted_run import lake_and_logs
from tests.processes.s3_server import Fault, S3Server

EXPIRED = "the credentials have expired; renew them"
CUT = "the store's answer was cut off; run again"
FIRST_RUN, RUN_WITHOUT_NEWS, QUESTION = 780, 230, 75
"""Upper bounds of requests; docs/how-to/keep-a-lake-in-a-bucket.md says about how many there are."""


def logs() -> Path:
    """A small log directory."""
    return dataset("basic") / "logs"


def writes(requests: list[str]) -> list[str]:
    """The requests that change something."""
    return [line for line in requests if line.startswith(("PUT", "POST", "DELETE"))]


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ("403 ExpiredToken", r"the credentials have expired; renew them \(ExpiredToken\)"),
        ("403 InvalidAccessKeyId", r"the store does not know these credentials; correct them \(InvalidAccessKeyId\)"),
        ("403 AccessDenied", r"no right to do this; grant list, read, write and delete below this folder"),
        ("400 AuthorizationHeaderMalformed", r"in another region or behind another endpoint; set AWS_REGION"),
    ],
)
def test_a_store_that_refuses_is_one_line_before_anything_is_written(
    answer: str, words: str, s3: S3Server, bucket: str
) -> None:
    s3.answer(Fault(answer=answer))
    s3.requests()
    with pytest.raises(LakeError, match=rf"^{bucket}: can't list it at {s3.endpoint}: .*{words}") as caught:
        make_lake(bucket, logs())
    assert "\n" not in str(caught.value)
    assert not writes(s3.requests())


def test_a_bucket_that_does_not_exist_is_one_line(s3: S3Server) -> None:
    with pytest.raises(LakeError, match=r"^s3://no-such-bucket/lake: can't list .*: there is no such bucket; make it"):
        make_lake("s3://no-such-bucket/lake", logs())
    assert not writes([line for line in s3.requests() if "no-such-bucket" in line])


def test_a_store_that_is_not_there_is_one_line(bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    with pytest.raises(LakeError, match=r"can't list it at http://127.0.0.1:9: the store can't be reached; check the"):
        open_lake(bucket)


def test_the_right_to_read_alone_answers_questions_and_refuses_runs(s3: S3Server, lake_of_basic: str) -> None:
    s3.answer(Fault(to="PUT", answer="403 AccessDenied"))
    assert open_lake(lake_of_basic).scan("gold.share_partition_state").num_rows
    with pytest.raises(LakeError, match=r"can't write it at .*: no right to do this; grant list, read, write and"):
        make_lake(lake_of_basic, logs())


@pytest.mark.soak
@pytest.mark.parametrize(
    "fault",
    [
        Fault(to="PUT", answer="500 InternalError", is_done=True, every=2),
        *in_soak(
            Fault(answer="503 SlowDown", every=7),
            Fault(answer="500 InternalError", every=11),
            Fault(delay_s=0.5, every=40),
        ),
    ],
    ids=["losing its answers", "throttled", "failing", "slow"],
)
def test_a_store_that_fails_now_and_then_has_the_same_lake(fault: Fault, s3: S3Server, bucket: str) -> None:
    s3.answer(fault)
    make_lake(bucket, logs())
    s3.answer(None)
    assert not differences(content(bucket), content(recorded_lake("basic")))


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (Fault(answer="403 ExpiredToken", after=400), EXPIRED),
        (Fault(cut=True, to="list-type", after=110, times=1), CUT),
        *rows_in_soak(
            (Fault(answer="403 ExpiredToken", after=60), EXPIRED),
            (Fault(answer="403 ExpiredToken", after=600), EXPIRED),
            (Fault(cut=True, to="list-type", after=30, times=1), CUT),
        ),
    ],
    ids=["expired in the middle", "cut late", "expired early", "expired late", "cut early"],
)
def test_a_run_that_ends_in_one_line_is_finished_by_the_next_one(
    fault: Fault, words: str, s3: S3Server, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease, "TERM_S", 1.0)
    s3.answer(fault)
    with pytest.raises(LakeError, match=words) as caught:
        make_lake(bucket, logs())
    assert "\n" not in str(caught.value)
    s3.answer(None)
    make_lake(bucket, logs())
    assert not differences(content(bucket), content(recorded_lake("basic")))


def test_a_run_without_credentials_is_one_line(s3: S3Server, bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing answers in the place of the machine's own credentials."""
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    s3.requests()
    with pytest.raises(LakeError, match="there are no credentials; set the environment variables of the store's SDK"):
        make_lake(bucket, logs())
    assert not writes(s3.requests())


def test_a_command_without_a_lake_there_writes_one_line(s3: S3Server, bucket: str) -> None:
    s3.requests()
    done = subprocess.run(
        [sys.executable, "-m", "sharelens", "state", "--lake", bucket],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert f"{bucket} is not a directory; give the folder that `sharelens run --lake` wrote" in done.stderr
    assert not writes(s3.requests())


@pytest.mark.parametrize("table", ["gold.publication", *in_soak("bronze.ingest_extent")])
def test_a_stale_listing_stops_the_run_and_the_next_one_finishes_it(
    table: str, s3: S3Server, bucket: str, tmp_path: Path
) -> None:
    """The newest commit of a table is not in the listings yet, when a run begins that has new records."""
    _, logs = lake_and_logs(tmp_path)
    make_lake(bucket, logs, until_ms=0)
    before = {name: Lake(bucket).version(name) for name in TABLES}
    s3.answer(Fault(to="list-type", hidden=f"{table.replace('.', '/')}/{commit_path(before[table])}"))
    with pytest.raises(LakeError, match=rf"^{table} in {bucket}: the store lists versions up to .*listings are stale"):
        make_lake(bucket, logs)
    s3.answer(None)
    assert all(Lake(bucket).version(name) == version for name, version in before.items())
    make_lake(bucket, logs)
    make_lake(tmp_path / "whole", logs)
    assert not differences(content(bucket), content(tmp_path / "whole"))


def test_requests_of_runs_and_questions_are_few(s3: S3Server, bucket: str) -> None:
    s3.requests()
    make_lake(bucket, logs())
    first = s3.requests()
    make_lake(bucket, logs())
    second = s3.requests()
    open_lake(Lake(bucket)).scan("gold.share_partition_state")
    question = s3.requests()
    counts = len(first), len(second), len(question)
    bounds = FIRST_RUN, RUN_WITHOUT_NEWS, QUESTION
    assert all(count <= bound for count, bound in zip(counts, bounds, strict=True)), counts
    assert len(writes(second)) <= 3  # the lease: taken, given back, perhaps renewed
    assert not writes(question)
