"""Errors of stores in one line."""

import pytest

from sharelens.object_stores.failures import cause_of, failure_text
from sharelens.object_stores.options import S3


@pytest.fixture(autouse=True)
def _endpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "https://user:password@store.example.com:9000")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "not-to-be-shown")


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("NoSuchBucket", "there is no such bucket"),
        ("ExpiredToken", "the credentials have expired"),
        ("InvalidAccessKeyId", "does not know these credentials"),
        ("AccessDenied", "no right to do this"),
        ("PermanentRedirect", "in another region"),
        ("SlowDown", "too many"),
        ("NotImplemented", "lacks a kind of request"),
    ],
)
def test_what_the_store_says_is_said_with_what_to_do(code: str, words: str) -> None:
    body = f"Error performing GET in 3ms - 4xx: <?xml?>\n<Error><Code>{code}</Code></Error>\n\nnot-to-be-shown"
    text = failure_text(OSError(body), "s3://b/lake", S3, "list")
    assert text.startswith("s3://b/lake: can't list it at https://store.example.com:9000: ")
    assert words in text
    assert text.endswith(f"({code})")
    assert "not-to-be-shown" not in text
    assert "password" not in text


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Error after 8 retries, max_retries: 8, retry_timeout: 60s: HTTP error: 500 Internal Server Error",
         "the store answers 500 Internal Server Error; run again"),
        ("Server returned 502 Bad Gateway, retry_timeout:60s", "the store answers 502 Bad Gateway; run again"),
        ("retry_timeout:60s, 503 Service Unavailable", "refuses requests because there are too many"),
        ("operation timed out, retry_timeout:60s", "did not answer in time"),
    ],
)  # fmt: skip
def test_an_answer_with_a_status_is_no_time_out(text: str, words: str) -> None:
    assert words in failure_text(OSError(text), "s3://b/lake", S3)


def test_another_error_is_its_first_line_without_secrets() -> None:
    error = ValueError("odd not-to-be-shown\nmore")
    assert cause_of(error) is None
    expected = "can't write it at https://store.example.com:9000: odd (AWS_SECRET_ACCESS_KEY)"
    assert failure_text(error, "s3://b/lake", S3, "write") == f"s3://b/lake: {expected}"
