"""Log copies in a bucket: the lake and the answers of copies on a path; what the store does wrong is one line."""

from pathlib import Path

import pytest

from sharelens.cli import main
from sharelens.kafka_log.errors import LogDirectoryError
from sharelens.kafka_log.layout import scan_log_directory
from tests.datasets import dataset, scenarios
from tests.depths import in_soak
from tests.lakes import content, differences
from tests.processes.in_process import make_lake, recorded_lake, run_here
from tests.processes.s3_server import Fault, S3Server
from tests.processes.store_servers import put_folder

IN_THE_TIER = ("pruned",)
"""Scenarios outside of the soak: reading is the same for all logs, and other tests read `basic` from buckets."""


@pytest.fixture
def logs(s3: S3Server) -> str:
    """The log directory of `basic` in a bucket."""
    uri = put_folder(dataset("basic") / "logs", f"s3://{s3.new_bucket()}/broker-1")
    s3.requests()
    return uri


@pytest.mark.parametrize(
    "scenario", [pytest.param(name, marks=() if name in IN_THE_TIER else pytest.mark.soak) for name in scenarios()]
)
def test_a_log_in_a_bucket_makes_the_lake_of_one_on_a_path_and_is_only_read(
    scenario: str, s3: S3Server, tmp_path: Path
) -> None:
    bucket = s3.new_bucket()
    uri = put_folder(dataset(scenario) / "logs", f"s3://{bucket}/logs")
    s3.requests()
    make_lake(tmp_path / "lake", uri)
    requests = s3.requests()
    assert all(line.startswith(("GET", "HEAD")) for line in requests)
    assert not differences(content(tmp_path / "lake"), content(recorded_lake(scenario)))


@pytest.mark.parametrize(
    "fault",
    [
        Fault(to=".log", cut=True, every=3),
        *in_soak(Fault(answer="503 SlowDown", every=5), Fault(to=".log", delay_s=0.3)),
    ],
    ids=["cut", "throttled", "slow"],
)
def test_a_store_that_fails_now_and_then_gives_the_same_lake(
    fault: Fault, s3: S3Server, logs: str, tmp_path: Path
) -> None:
    s3.answer(fault)
    make_lake(tmp_path / "lake", logs)
    s3.answer(None)
    assert not differences(content(tmp_path / "lake"), content(recorded_lake("basic")))


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (Fault(answer="403 ExpiredToken"), "the credentials have expired; renew them"),
        (Fault(answer="403 AccessDenied"), "no right to do this; grant list and read below this folder"),
        (Fault(answer="400 AuthorizationHeaderMalformed"), "in another region or behind another endpoint; set AWS_REG"),
        (Fault(to=".log", answer="403 ExpiredToken"), "can't read it at .*the credentials have expired; renew them"),
    ],
)
def test_a_store_that_refuses_is_one_line_and_no_loss_is_noted(
    fault: Fault, words: str, s3: S3Server, logs: str, tmp_path: Path
) -> None:
    s3.answer(fault)
    lake = tmp_path / "lake"
    with pytest.raises(LogDirectoryError, match=words) as caught:
        run_here(lake, logs)
    assert "\n" not in str(caught.value)
    assert fault.to or not lake.exists()
    s3.answer(None)
    make_lake(lake, logs)
    assert not differences(content(lake), content(recorded_lake("basic")))


def test_a_bucket_that_does_not_exist_is_one_line(s3: S3Server) -> None:
    with pytest.raises(LogDirectoryError, match=r"can't list it at .*: there is no such bucket; make it, or correct"):
        scan_log_directory("s3://no-such-bucket/logs")


def test_logs_and_the_lake_may_share_a_bucket_but_not_a_folder(
    s3: S3Server, logs: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", "--log-dir", logs, "--lake", f"{logs}/lake"]) == 1
    assert "lie inside each other; put the lake elsewhere" in capsys.readouterr().err
    assert all(line.startswith(("GET", "HEAD")) for line in s3.requests())


@pytest.mark.soak
def test_an_evidence_folder_of_logs_in_a_bucket_is_verified_against_them(
    logs: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = str(tmp_path / "evidence")
    times = ["--from", "2020-01-01T00:00:00Z", "--to", "2030-01-01T00:00:00Z"]
    source = ["--log-dir", logs]
    assert main(["evidence", *source, "--group", "g-explicit", *times, "--case", "1", "--out", folder]) == 0
    assert main(["verify", folder, *source]) == 0
    capsys.readouterr()
