"""Options of stores: from the command line, the configuration and the environment."""

import os
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import obstore
import pytest
from deltalake import DeltaTable
from hypothesis import given
from hypothesis import strategies as st

from sharelens.object_stores import options
from sharelens.object_stores.failures import endpoint_text
from sharelens.object_stores.options import (
    AZURE,
    FAMILIES,
    GOOGLE,
    S3,
    options_of,
    set_defaults,
    set_options,
    without_secrets,
)
from state_model.errors import UsageError


@pytest.fixture(autouse=True)
def _no_options(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without options of this machine; those that a test sets end with it."""
    for family in FAMILIES.values():
        for name in family.names:
            monkeypatch.setenv((family.prefix + name).upper(), "")


def test_options_are_environment_variables_in_lower_case(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_REGION", "eu-central-1")
    monkeypatch.setenv("AWS_UNKNOWN", "x")
    assert options_of(S3) == (("aws_region", "eu-central-1"),)
    assert options_of(AZURE) == ()


def test_an_option_of_the_command_line_is_stronger_than_the_environment_and_that_than_the_configuration(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("AWS_REGION")
    monkeypatch.delenv("AWS_SESSION_TOKEN")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "of the environment")
    set_options(["AWS_REGION=a=b"])
    set_defaults({"aws_region": "c", "aws_access_key_id": "d", "aws_session_token": "e"})
    expected = {"aws_region": "a=b", "aws_access_key_id": "of the environment", "aws_session_token": "e"}
    assert dict(options_of(S3)) == expected


@pytest.mark.parametrize("pair", ["aws_regoin=secret", "region=secret", "=secret", "spark.x=secret", "secret"])
def test_what_is_no_option_is_refused_without_its_value(pair: str) -> None:
    with pytest.raises(UsageError, match="--storage-option") as caught:
        set_options([pair])
    assert "secret" not in str(caught.value).replace("'secret'", "")


def test_an_endpoint_without_tls_allows_http_and_one_that_is_no_url_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://localhost:9000")
    assert dict(options_of(S3)) == {"aws_endpoint": "http://localhost:9000", "aws_allow_http": "true"}
    monkeypatch.setenv("AWS_ENDPOINT_URL", "https://store.example.com")
    assert dict(options_of(S3)) == {"aws_endpoint": "https://store.example.com"}
    for wrong in ("localhost:9000", "ftp://host", "/a/path", "http://"):
        monkeypatch.setenv("AWS_ENDPOINT_URL", wrong)
        with pytest.raises(UsageError, match="AWS_ENDPOINT: no address of a store; give https://HOST"):
            options_of(S3)


@pytest.fixture
def paths_of_requests(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The paths of requests to a server on loopback, which has nothing, and which Google's options name."""
    paths: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            paths.append(self.path)
            self.send_response(404)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Nothing is printed."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever)
    thread.start()
    for name in ("GOOGLE_SERVICE_ACCOUNT", "GOOGLE_APPLICATION_CREDENTIALS"):  # libraries read empty ones, too
        monkeypatch.delenv(name)
    monkeypatch.setenv("GOOGLE_BASE_URL", f"http://127.0.0.1:{server.server_port}")
    monkeypatch.setenv("GOOGLE_SKIP_SIGNATURE", "true")
    yield paths
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.slow
def test_all_libraries_ask_the_server_that_googles_options_name(paths_of_requests: list[str]) -> None:
    given_options = options_of(GOOGLE)
    with pytest.raises(Exception, match=r"127\.0\.0\.1"):
        list(obstore.list(options.object_store("gs", "bucket", given_options), "obstores"))
    with pytest.raises(OSError, match=r"127\.0\.0\.1"):
        DeltaTable("gs://bucket/deltas", storage_options=dict(given_options))
    options.arrow_file_system("gs", given_options).get_file_info("bucket/arrows")
    for name in ("obstores", "deltas", "arrows"):
        assert any(name in path for path in paths_of_requests)
    assert endpoint_text(GOOGLE).startswith("http://127.0.0.1:")


@given(secret=st.text(st.characters(categories=["L", "N"]), min_size=8), before=st.text(), after=st.text())
def test_a_text_loses_its_secrets(secret: str, before: str, after: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_SECRET_ACCESS_KEY", secret)
        patch.setenv("AWS_REGION", "eu-central-1")
        shown = without_secrets(f"{before}{secret}{after}", S3)
    assert secret not in shown or secret in "(AWS_SECRET_ACCESS_KEY)"
    assert "AWS_SECRET_ACCESS_KEY" in shown


def test_another_machine_gets_the_options_unless_it_has_its_own_and_gets_those_that_replace_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(options, "_received", set())
    for name, value in {"AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "secret", "HOME": "/"}.items():
        monkeypatch.setenv(name, value)
    sent = options.options_to_send()
    assert sent == {"AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "secret"}
    own_options = {"AWS_WEB_IDENTITY_TOKEN_FILE": "/token"}
    for environment, after in ((own_options, own_options), ({}, sent)):
        monkeypatch.setattr(os, "environ", dict(environment))
        options.receive_options(sent)
        assert os.environ == after
    options.receive_options({"AWS_SECRET_ACCESS_KEY": "a newer secret"})
    assert os.environ["AWS_SECRET_ACCESS_KEY"] == "a newer secret"
