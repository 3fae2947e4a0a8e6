"""`evidence` and `verify` as typed: what they print, how they exit, what they refuse."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from sharelens.cli import main
from tests.evidence_folders import FROM_MS, TO_MS, log_directory

pytestmark = pytest.mark.slow

Ran = tuple[int, str, str]
Run = Callable[..., Ran]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a command line; its exit code, stdout, stderr."""

    def ran(*words: str) -> Ran:
        code = main(list(words))
        out, err = capsys.readouterr()
        return code, out, err

    return ran


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(log_directory(tmp_path_factory.mktemp("typed") / "logs"))


def words_for(logs: str, out: Path, *extra_words: str) -> list[str]:
    window = ["--from", str(FROM_MS), "--to", str(TO_MS)]
    return ["evidence", "--log-dir", logs, "--group", "g", *window, "--case", "INC-1", "--out", str(out), *extra_words]


def test_the_last_line_is_the_number_to_note_and_verify_takes_it(run: Run, logs: str, tmp_path: Path) -> None:
    code, out, _ = run(*words_for(logs, tmp_path / "INC-1"))
    assert code == 0
    digest = out.splitlines()[-1].split()[-1]
    manifest = json.loads((tmp_path / "INC-1" / "manifest.json").read_text("ascii"))
    assert manifest["command_line"] == ["sharelens", *words_for(logs, tmp_path / "INC-1")]
    assert manifest["cluster_id"] == "a-cluster"
    assert set(manifest["versions"]) >= {"sharelens", "python", "pyarrow"}
    assert all(file["sha256"] and file["modified_ms"] and file["node_id"] == 1 for file in manifest["sources"]["files"])
    code, out, err = run("verify", str(tmp_path / "INC-1"), "--manifest-sha256", digest.upper())
    assert (code, err) == (0, "")
    assert "nothing to report" in out
    code, out, _ = run("verify", str(tmp_path / "INC-1"), "--manifest-sha256", "0" * 64)
    assert (code, "manifest_differs" in out) == (3, True)


def test_the_answer_of_verify_is_one_document_and_findings_exit_with_3(run: Run, logs: str, tmp_path: Path) -> None:
    assert run(*words_for(logs, tmp_path / "INC-1"))[0] == 0
    assert run("verify", str(tmp_path / "INC-1"), "--log-dir", logs)[0] == 0
    with (tmp_path / "INC-1" / "tables" / "record.csv").open("a") as file:
        file.write("x")
    code, out, err = run("verify", str(tmp_path / "INC-1"), "--log-dir", logs, "--output", "json")
    assert code == 3
    assert [(row["kind"], row["code"], row["path"]) for row in json.loads(out)] == [
        ("finding", "changed", "tables/record.csv")
    ]
    assert err.splitlines()[-1].startswith("sharelens: 1 findings")


def test_settings_of_the_group_are_kept_for_the_next_time(run: Run, logs: str, tmp_path: Path) -> None:
    settings = tmp_path / "server.properties"
    settings.write_text("group.share.delivery.count.limit=2\nssl.key.password=geheim\n")
    assert run(*words_for(logs, tmp_path / "INC-1", "--broker-config", str(settings)))[0] == 0
    settings.unlink()
    assert run("verify", str(tmp_path / "INC-1"), "--log-dir", logs)[0] == 0
    evidence_bytes = b"".join(path.read_bytes() for path in (tmp_path / "INC-1").rglob("*") if path.is_file())
    assert b"geheim" not in evidence_bytes
    manifest = json.loads((tmp_path / "INC-1" / "manifest.json").read_text("ascii"))
    assert manifest["question"]["settings"]["share.delivery.count.limit"] == {"value": "2", "origin": "broker_config"}


def test_topics_may_go_unhashed_and_verify_says_so(run: Run, logs: str, tmp_path: Path) -> None:
    assert run(*words_for(logs, tmp_path / "INC-1", "--no-topic-hashes"))[0] == 0
    code, out, _ = run("verify", str(tmp_path / "INC-1"), "--log-dir", logs, "--output", "json")
    assert code == 0
    assert [(row["code"], row["path"]) for row in json.loads(out)] == [
        ("source_unhashed", "orders-0/00000000000000000000.log")
    ]


def test_incomplete_evidence_is_not_written_when_it_has_to_be_complete(run: Run, logs: str, tmp_path: Path) -> None:
    words = words_for(logs, tmp_path / "INC-1", "--require-complete")
    words[words.index(str(TO_MS))] = str(TO_MS + 1_000_000)
    code, out, err = run(*words)
    assert (code, out) == (1, "")
    assert "nothing was written" in err
    assert list(tmp_path.iterdir()) == []
    words.remove("--require-complete")
    code, out, _ = run(*words)
    assert code == 0
    assert "incomplete: the evidence ends at" in out


@pytest.mark.parametrize(
    ("change", "code", "message"),
    [
        ({"--group": "nobody"}, 2, "no share group nobody"),
        ({"--to": "2026-11-21"}, 2, "names no zone"),
        ({"--to": str(FROM_MS)}, 2, "--to does not lie after --from"),
        ({"--case": " "}, 2, "--case"),
        ({"--out": "/proc/nowhere/x"}, 1, "is not a directory"),
        ({"--log-dir": "/nowhere"}, 1, "no such directory"),
        ({"--max-bytes": "10"}, 1, "--max-bytes"),
    ],
)
def test_nonsense_is_refused_in_one_line(
    run: Run, logs: str, tmp_path: Path, change: dict[str, str], code: int, message: str
) -> None:
    words = words_for(logs, tmp_path / "INC-1", "--max-bytes", "1G")
    for option, value in change.items():
        words[words.index(option) + 1] = value
    got, out, err = run(*words)
    assert (got, out) == (code, "")
    assert message in err
    assert err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_verify_refuses_what_it_cannot_mean(run: Run, logs: str, tmp_path: Path) -> None:
    assert run("verify", str(tmp_path))[0] == 1
    assert run("verify", str(tmp_path), "--manifest-sha256", "12")[0] == 2
    assert run("verify", str(tmp_path), "--lake", "x", "--log-dir", logs)[0] == 2
