"""Options of object stores: environment variables of the store's own SDK, as delta-rs, obstore and Arrow take them.

The environment is the one place of options, so that children of this process have them too, without a command line, a
plan or a pickled value that shows them. `set_options` puts those of the command line and of the configuration there.
"""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from state_model.errors import UsageError

if TYPE_CHECKING:
    import pyarrow.fs as pafs

Options = tuple[tuple[str, str], ...]
"""Sorted pairs of a name in lower case, with the prefix of its family, and a value."""
ENDPOINTS: Final = ("aws_endpoint", "azure_storage_endpoint", "google_base_url")
"""Options that name the address of a store, one of each family."""
SECRETS: Final = ("key", "secret", "token", "sas")
TRUE: Final = ("1", "true", "yes")


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """The stores of one protocol. `names`: options without their prefix."""

    prefix: str
    names: frozenset[str]


S3: Final = Family(
    prefix="aws_",
    names=frozenset(
        {
            *("access_key_id", "secret_access_key", "session_token", "skip_signature"),
            *("region", "default_region", "endpoint", "endpoint_url", "endpoint_url_s3", "allow_http"),
            *("virtual_hosted_style_request", "server_side_encryption", "sse_kms_key_id", "disable_bulk_delete"),
            *("web_identity_token_file", "role_arn", "role_session_name"),
            *("container_credentials_relative_uri", "container_credentials_full_uri"),
            "container_authorization_token_file",
        }
    ),
)
AZURE: Final = Family(
    prefix="azure_storage_",
    names=frozenset(
        {
            *("account_name", "account_key", "sas_key", "client_id", "client_secret", "tenant_id"),
            *("endpoint", "allow_http", "skip_signature", "use_emulator"),
        }
    ),
)
GOOGLE: Final = Family(
    prefix="google_",
    names=frozenset({"application_credentials", "service_account", "skip_signature", "base_url", "allow_http"}),
)
FAMILIES: Final[Mapping[str, Family]] = {"s3": S3, "az": AZURE, "abfss": AZURE, "gs": GOOGLE}
"""By scheme."""
SAME: Final = {
    "aws_default_region": "aws_region",
    "aws_endpoint_url": "aws_endpoint",
    "aws_endpoint_url_s3": "aws_endpoint",
    "azure_storage_allow_http": "azure_allow_http",
}
"""Two names of one option; of both the second name wins. delta-rs knows the second ones alone."""

_received: set[str] = set()
"""Variables of this process that came by `receive_options`."""


def set_options(pairs: Iterable[str]) -> None:
    """Puts options `NAME=VALUE` into the environment.

    Raises:
        UsageError: no `=`, or no option of a store; the value is never part of the message.
    """
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals:
            raise UsageError("--storage-option: no NAME=VALUE; type --storage-option aws_region=eu-central-1")
        os.environ[_option_name(name, "--storage-option").upper()] = value


def set_defaults(options: Mapping[str, str]) -> None:
    """Puts options into the environment that it lacks.

    Raises:
        UsageError: one that is no option of a store.
    """
    for name, value in options.items():
        os.environ.setdefault(_option_name(name, "storage_options").upper(), value)


def options_to_send() -> dict[str, str]:
    """The variables of stores in this environment, for `receive_options` in a process on another machine."""
    names = (f"{family.prefix}{name}".upper() for family in set(FAMILIES.values()) for name in family.names)
    return {name: os.environ[name] for name in sorted(names) if os.environ.get(name)}


def receive_options(sent: Mapping[str, str]) -> None:
    """Puts variables of another environment into this one, of families of which this one has none of its own."""
    for family in set(FAMILIES.values()):
        names = {(family.prefix + name).upper() for name in family.names}
        if not (names & os.environ.keys()) - _received:
            family_options = {name: value for name, value in sent.items() if name in names}
            os.environ.update(family_options)
            _received.update(family_options)


def _option_name(name: str, where: str) -> str:
    lowered = name.strip().lower()
    for family in FAMILIES.values():
        if lowered.startswith(family.prefix) and lowered.removeprefix(family.prefix) in family.names:
            return lowered
    raise UsageError(
        f"{where}: {name[:40]!r} is no option of a store; options are the environment variables of its SDK in lower "
        "case, such as aws_region, aws_endpoint_url, azure_storage_account_name"
    )


def options_of(family: Family) -> Options:
    """The options of a family that the environment has now.

    Raises:
        UsageError: an endpoint that is no URL.
    """
    names = (family.prefix + name for name in sorted(family.names))
    present = {name: os.environ[name.upper()] for name in names if os.environ.get(name.upper())}
    options = {SAME.get(name, name): value for name, value in present.items()}
    for name in ENDPOINTS:
        endpoint = urlsplit(options.get(name, ""))
        if name in options and (endpoint.scheme not in ("http", "https") or not endpoint.hostname):
            raise UsageError(f"{name.upper()}: no address of a store; give https://HOST or http://HOST:PORT")
        if endpoint.scheme == "http":
            name = f"{family.prefix}allow_http"
            options.setdefault(SAME.get(name, name), "true")
    return tuple(sorted(options.items()))


def without_secrets(text: str, family: Family) -> str:
    """A text without values of options that are secrets."""
    for name, value in options_of(family):
        if any(word in name for word in SECRETS) and value in text:
            text = text.replace(value, f"({name.upper()})")
    return text


@lru_cache(maxsize=16)
def object_store(scheme: str, bucket: str, options: Options) -> Any:
    """The obstore store of a bucket; one for all folders of it."""
    from datetime import timedelta

    from obstore.store import AzureStore, GCSStore, S3Store

    config: Any = {name: value for name, value in options if not name.endswith("_allow_http")}
    common: dict[str, Any] = {
        "client_options": {"allow_http": _is_true(dict(options), "_allow_http"), "timeout": "60s"},
        "retry_config": {"max_retries": 8, "retry_timeout": timedelta(seconds=60)},
    }
    if scheme == "s3":
        return S3Store(bucket, config=config, **common)
    if scheme == "gs":
        return GCSStore(bucket, config=config, **common)
    return AzureStore(bucket, config=config, **common)


@lru_cache(maxsize=16)
def arrow_file_system(scheme: str, options: Options) -> "pafs.FileSystem":
    """Arrow's file system of a store; its paths begin with the bucket."""

    option_values = dict(options)
    if scheme == "s3":
        return _arrow_s3(option_values)
    if scheme == "gs":
        return _arrow_google(option_values)
    return _arrow_azure(option_values)


def _arrow_s3(options: Mapping[str, str]) -> "pafs.FileSystem":
    import pyarrow.fs as pafs

    endpoint = urlsplit(options.get("aws_endpoint", ""))
    arguments: dict[str, Any] = {
        "region": options.get("aws_region", "us-east-1"),
        "allow_delayed_open": True,  # a small file is one request
        "retry_strategy": pafs.AwsStandardS3RetryStrategy(max_attempts=8),
        "connect_timeout": 20.0,
        "request_timeout": 60.0,
        "force_virtual_addressing": _is_true(options, "_virtual_hosted_style_request"),
    }
    if endpoint.netloc:
        arguments |= {"endpoint_override": endpoint.netloc, "scheme": endpoint.scheme}
    if _is_true(options, "_skip_signature"):
        arguments["anonymous"] = True
    elif "aws_access_key_id" in options:
        arguments |= {
            "access_key": options["aws_access_key_id"],
            "secret_key": options.get("aws_secret_access_key", ""),
            "session_token": options.get("aws_session_token"),
        }
    return pafs.S3FileSystem(**arguments)


def _arrow_google(options: Mapping[str, str]) -> "pafs.FileSystem":
    import pyarrow.fs as pafs

    arguments: dict[str, Any] = {"anonymous": _is_true(options, "_skip_signature")}
    endpoint = urlsplit(options.get("google_base_url", ""))
    if endpoint.netloc:
        arguments |= {"endpoint_override": endpoint.netloc, "scheme": endpoint.scheme}
    return pafs.GcsFileSystem(**arguments)


def _arrow_azure(options: Mapping[str, str]) -> "pafs.FileSystem":
    import pyarrow.fs as pafs

    names = {"account_name": "account_name", "account_key": "account_key", "sas_key": "sas_token"}
    names |= {name: name for name in ("client_id", "client_secret", "tenant_id")}
    arguments: dict[str, Any] = {
        argument: options[AZURE.prefix + name] for name, argument in names.items() if AZURE.prefix + name in options
    }
    endpoint = urlsplit(options.get("azure_storage_endpoint", ""))
    if endpoint.netloc:
        arguments |= {
            f"{kind}_storage_{part}": value
            for kind in ("blob", "dfs")
            for part, value in (("authority", endpoint.netloc), ("scheme", endpoint.scheme))
        }
    return pafs.AzureFileSystem(**arguments)


def _is_true(options: Mapping[str, str], suffix: str) -> bool:
    return any(name.endswith(suffix) and value.lower() in TRUE for name, value in options.items())
