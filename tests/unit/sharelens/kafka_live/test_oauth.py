"""Tokens from an endpoint on the loopback address: what it is asked, and what comes of its answers."""

import base64
import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs

import pytest

from sharelens.kafka_live.command_config import CommandConfig
from sharelens.kafka_live.connection import Connection
from sharelens.kafka_live.errors import ClusterError
from sharelens.kafka_live.oauth import MOST_BYTES, ClientCredentials, TokenProvider, fetch_token

GOOD = json.dumps({"access_token": "header.payload.signature", "expires_in": 3600})


class Endpoint:
    """Answers with a code and a body, after a pause; keeps the headers and forms that it was sent."""

    def __init__(self):
        self.code, self.body, self.headers, self.pause_s = 200, GOOD, {}, 0.0
        self.requests = []
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
                endpoint.requests.append((dict(self.headers), form))
                time.sleep(endpoint.pause_s)
                self.send_response(endpoint.code)
                for name, value in endpoint.headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(endpoint.body.encode())

            def log_message(self, *arguments):
                """Nothing is written to the terminal."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.handle_error = lambda *_: None  # a client that gave up
        self.url = f"http://127.0.0.1:{self.server.server_port}/token"


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    served = Endpoint()
    thread = threading.Thread(target=served.server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield served
    served.server.shutdown()
    thread.join()
    served.server.server_close()


def credentials(endpoint, **changes):
    defaults = {"url": endpoint.url, "client_id": "observer", "client_secret": "s3cret", "timeout_ms": 2_000}
    return ClientCredentials(**(defaults | changes))


def test_the_client_names_itself_in_the_header_and_asks_for_its_scope(endpoint):
    token = fetch_token(credentials(endpoint, scope="read write"))
    assert (token.text, token.lifetime_s) == ("header.payload.signature", 3600)
    ((headers, form),) = endpoint.requests
    assert base64.b64decode(headers["Authorization"].removeprefix("Basic ")) == b"observer:s3cret"
    assert form == {"grant_type": ["client_credentials"], "scope": ["read write"]}


def test_name_and_secret_are_url_encoded_on_request(endpoint):
    fetch_token(credentials(endpoint, client_id="a:b", client_secret="c d", encodes=True))
    ((headers, _),) = endpoint.requests
    assert base64.b64decode(headers["Authorization"].removeprefix("Basic ")) == b"a%3Ab:c+d"


def test_a_token_is_kept_while_it_is_valid(endpoint):
    provider = TokenProvider(credentials(endpoint, extensions=(("logicalCluster", "lc"),)))
    assert {provider.token() for _ in range(3)} == {"header.payload.signature"}
    assert len(endpoint.requests) == 1
    assert provider.extensions() == {"logicalCluster": "lc"}


@pytest.mark.slow
def test_a_token_without_a_lifetime_is_taken_anew(endpoint):
    endpoint.body = json.dumps({"access_token": "t"})
    provider = TokenProvider(credentials(endpoint))
    assert [provider.token(), provider.token()] == ["t", "t"]
    assert len(endpoint.requests) == 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("code", "body", "text"),
    [
        (401, '{"error": "invalid_client"}', "refuses the client (401, invalid_client)"),
        (500, "s3cret <html>", "refuses the client (500)"),
        (302, "", "refuses the client (302)"),
        (200, "s3cret", "answers without an access_token"),
        (200, '{"access_token": 7}', "answers without an access_token"),
        (200, '{"access_token": "a\\u0001auth=b"}', "answers without an access_token"),
        (200, "[" * 100_000, "answers without an access_token"),
        (200, '"' + "x" * (MOST_BYTES + 10) + '"', "answers without an access_token"),
    ],
)
def test_an_answer_without_a_token_is_one_line_without_secrets(endpoint, code, body, text):
    endpoint.code, endpoint.body, endpoint.headers = code, body, {"Location": "http://127.0.0.1:1/elsewhere"}
    with pytest.raises(ClusterError) as refused:
        fetch_token(credentials(endpoint))
    message = str(refused.value)
    assert text in message
    assert f"the token endpoint {endpoint.url} " in message
    assert "s3cret" not in message
    assert "\n" not in message


@pytest.mark.slow
def test_an_endpoint_that_answers_too_late_is_given_up(endpoint):
    endpoint.pause_s = 0.6
    with pytest.raises(ClusterError, match="does not answer"):
        fetch_token(credentials(endpoint, timeout_ms=100))


@pytest.mark.slow
def test_a_refused_client_is_said_before_there_is_a_connection(endpoint):
    endpoint.code = 401
    address = ("127.0.0.1", endpoint.server.server_port)
    config = CommandConfig(protocol="SASL_PLAINTEXT", mechanism="OAUTHBEARER", client_credentials=credentials(endpoint))
    with pytest.raises(ClusterError, match="refuses the client"):
        Connection(f"{address[0]}:{address[1]}", config)
