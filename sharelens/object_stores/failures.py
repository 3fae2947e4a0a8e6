"""Errors of object stores in one line: what is wrong, what was tried, what to do; without secrets."""

import re
from typing import Final
from urllib.parse import urlsplit

from sharelens.object_stores.options import ENDPOINTS, S3, Family, options_of, without_secrets

CODE = re.compile(r"<Code>([A-Za-z0-9]{1,60})</Code>")
STATUS = re.compile(r"\b[45][0-9]{2} [A-Z][a-z]+(?: [A-Z][A-Za-z]+)*")
"""An HTTP status with its name, as obstore writes it."""
SETTINGS = re.compile(r"\b(retry_timeout|max_retries|connect_timeout|request_timeout)\b")
"""Names of our own settings in the text of an error, which say nothing of the store."""
WRITERS_RIGHTS: Final = "list, read, write and delete"
NO_RIGHT: Final = "no right to do this; grant {rights} below this folder"
CAUSES: Final = (
    (
        (
            *("169.254.169.254", "169.254.170.2", "metadata.google", "NoCredentials", "MissingAccessKey"),
            *("credential provider", "Account must be specified"),
        ),
        "there are no credentials; set the environment variables of the store's SDK",
    ),
    (("NoSuchBucket", "ContainerNotFound"), "there is no such bucket; make it, or correct the URI"),
    (("ExpiredToken", "TokenRefreshRequired", "RequestExpired"), "the credentials have expired; renew them"),
    (
        ("InvalidAccessKeyId", "SignatureDoesNotMatch", "AuthenticationFailed", "InvalidToken", "UnrecognizedClient"),
        "the store does not know these credentials; correct them",
    ),
    (
        ("PermanentRedirect", "AuthorizationHeaderMalformed", "IllegalLocationConstraint", "301 Moved", "307 Temp"),
        "the bucket lies in another region or behind another endpoint; set AWS_REGION or AWS_ENDPOINT_URL",
    ),
    (
        ("AccessDenied", "403 Forbidden", "AuthorizationFailure", "AuthorizationPermissionMismatch", "ACCESS_DENIED"),
        NO_RIGHT,
    ),
    (
        ("SlowDown", "503 Service", "ServiceUnavailable", "ServerBusy", "429 Too Many", "SLOW_DOWN", "TooManyRequests"),
        "the store refuses requests because there are too many; run again later",
    ),
    (
        (
            "error sending request",
            "onnection refused",
            "dns error",
            "tcp connect",
            "NETWORK_CONNECTION",
            "resolve host",
        ),
        "the store can't be reached; check the endpoint and the network",
    ),
    (
        ("NotImplemented", "501 Not"),
        "the store lacks a kind of request; without deletion of many objects at once, set AWS_DISABLE_BULK_DELETE=true",
    ),
)
"""Parts of the text of an error, as S3, Azure, obstore, delta-rs and Arrow write them, with what to do."""
WITHOUT_AN_ANSWER: Final = (
    (("timed out", "timeout", "operation timed"), "the store did not answer in time; run again"),
    (("body", "IncompleteMessage", "connection closed"), "the store's answer was cut off; run again"),
)
"""The same for what no answer with a status can be."""


def cause_of(error: BaseException) -> str | None:
    """What is wrong and what to do, where the text of an error says it; None for any other error."""
    text = SETTINGS.sub("", str(error))
    status = STATUS.search(text)
    causes = (*CAUSES, *WITHOUT_AN_ANSWER) if status is None else CAUSES
    cause = next((words for parts, words in causes if any(part in text for part in parts)), None)
    if cause is None and status is not None:
        return f"the store answers {status[0]}; run again, and look at the store if it stays so"
    return cause


def failure_text(
    error: BaseException, address: str, family: Family, action: str = "reach", *, rights: str = WRITERS_RIGHTS
) -> str:
    """The line for a failed request to a store; `rights`: those that the caller needs."""
    text = str(error)
    code = CODE.search(text)
    first = (text.strip().splitlines() or ["no reason"])[0]
    cause = cause_of(error)
    words = without_secrets(first, family)[:300] if cause is None else cause.format(rights=rights)
    shown_code = f" ({code[1]})" if code else ""
    return f"{address}: can't {action} it at {endpoint_text(family)}: {words}{shown_code}"


def endpoint_text(family: Family) -> str:
    """Where requests go to, for messages."""
    options = dict(options_of(family))
    endpoint = urlsplit(next((options[name] for name in ENDPOINTS if name in options), ""))
    if endpoint.netloc:
        return f"{endpoint.scheme}://{endpoint.netloc.rpartition('@')[2]}"
    region = options.get("aws_region", "us-east-1")
    return f"the store's own endpoint, region {region}" if family is S3 else "the store's own endpoint"
