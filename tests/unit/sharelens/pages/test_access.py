"""Who is let through: tokens, hosts, methods; and the headers of every response."""

from pathlib import Path

import pytest
from starlette.responses import PlainTextResponse

from sharelens.pages.access import HEADERS, Access, Guard, token_of
from state_model.errors import UsageError
from tests.requests_of_pages import Client, with_cookie

TOKEN = "0123456789abcdef0123"
ACCESS = Access(token=TOKEN, cookie="sharelens-1")


@pytest.fixture
def client() -> Client:
    return Client(Guard(PlainTextResponse("secret"), ACCESS))


def test_the_first_link_becomes_a_cookie_that_no_script_and_no_other_site_gets(client: Client) -> None:
    assert client.get("/").status_code == 403
    entered = client.get(f"/?token={TOKEN}")
    assert entered.status_code == 200
    assert "secret" not in entered.text
    cookie = entered.headers["set-cookie"]
    assert cookie.startswith(f"sharelens-1={TOKEN};")
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert client.get("/").text == "secret"


@pytest.mark.parametrize("token", ["", "x", TOKEN[:-1], TOKEN + "0", TOKEN.upper(), "\u00e9", "%00"])
def test_wrong_tokens_get_nothing(client: Client, token: str) -> None:
    response = client.get("/", params={"token": token})
    assert (response.status_code, "secret" in response.text) == (403, False)
    response = client.get("/", headers=with_cookie("sharelens-1", token))
    assert (response.status_code, "secret" in response.text) == (403, False)


@pytest.mark.parametrize(
    ("host", "is_allowed"),
    [
        ("localhost", True),
        ("localhost:1", True),
        ("127.0.0.1:9999", True),
        ("127.8.9.1", True),
        ("[::1]:80", True),
        ("LOCALHOST", True),
        ("evil.example", False),
        ("localhost.evil.example", False),
        ("127.0.0.1.evil.example", False),
        ("127.0.0.1:80@evil.example", False),
        ("10.0.0.1", False),
        ("", False),
        ("localhost/", False),
        ("0.0.0.0", False),
        ("localhost:80:80", False),
    ],
)
def test_hosts_are_names_of_this_machine(client: Client, host: str, is_allowed: bool) -> None:
    response = client.get("/", headers={"host": host, **with_cookie("sharelens-1", TOKEN)})
    assert (response.status_code == 200) is is_allowed
    assert ("secret" in response.text) is is_allowed


def test_other_names_are_those_of_the_address_that_listens() -> None:
    assert Access(token=TOKEN, hosts=frozenset({"bastion"})).allows_host("Bastion:80")


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
def test_pages_are_read_only(client: Client, method: str) -> None:
    assert client.get("/", method, headers=with_cookie("sharelens-1", TOKEN)).status_code == 405


@pytest.mark.parametrize("path", ["/", f"/?token={TOKEN}", "//evil.example", "/%00"])
def test_every_response_has_the_headers(client: Client, path: str) -> None:
    response = client.get(path)
    assert {name: response.headers[name] for name in HEADERS} == HEADERS
    assert "unsafe" not in response.headers["content-security-policy"]
    assert "location" not in response.headers


@pytest.mark.parametrize(
    "text", ["short", "a" * 15, "with a space in it, long", "line\nline line line line", "\u00e9" * 30]
)
def test_tokens_of_files_are_checked(tmp_path: Path, text: str) -> None:
    file = tmp_path / "token"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match="--token-file: .*: give at least 16 letters"):
        token_of(str(file))


def test_a_token_is_read_from_a_file_or_drawn(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n", encoding="utf-8")
    assert token_of(str(file)) == TOKEN
    assert len({token_of(None) for _ in range(8)}) == 8
    with pytest.raises(UsageError, match="--token-file: .*absent: No such file"):
        token_of(str(tmp_path / "absent"))
