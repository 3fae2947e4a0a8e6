"""Servers of other projects on loopback, beside the S3 server of the tests: Azurite (blobs of Azure), LocalBucket (S3).

`make test-components` installs them; where one is missing, its tests are skipped with a line. Both end with the block
that starts them, and keep what they store in memory or in a temporary folder.
"""

import base64
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
AZURITE = ROOT / ".venv" / "tools" / "azurite" / "node_modules" / "azurite" / "dist" / "src" / "blob" / "main.js"
START_S = 60.0
SECRET = base64.b64encode(b"not-to-be-shown-anywhere").decode()
ACCOUNT = "lakes"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreServer:
    """A running server. `scheme`: of its URIs; `environment`: the variables of a process that uses it."""

    name: str
    scheme: str
    endpoint: str
    environment: Mapping[str, str]

    def new_bucket(self) -> str:
        """The URI of a new, empty bucket; the environment of this process must name the server."""
        name = f"bucket-{uuid.uuid4().hex[:12]}"
        if self.scheme == "s3":
            request = urllib.request.Request(f"{self.endpoint}/{name}", method="PUT")
            urllib.request.urlopen(request, timeout=30).close()
        else:
            from sharelens.object_stores.options import AZURE, arrow_file_system, options_of

            arrow_file_system(self.scheme, options_of(AZURE)).create_dir(name)
        return f"{self.scheme}://{name}"


def put_folder(folder: Path, uri: str) -> str:
    """Puts the files below a folder into the store that the environment of this process names; the URI."""
    import obstore

    from sharelens.kafka_log.object_files import address_of, store_of

    address = address_of(uri)
    store = store_of(address)
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            obstore.put(store, f"{address.key}/{path.relative_to(folder).as_posix()}", path.read_bytes())
    return uri


@contextmanager
def azurite() -> Iterator[StoreServer]:
    """Microsoft's emulator of Azure's blobs, for the block; skips the test where it is not installed."""
    node = shutil.which("node")
    if node is None or not AZURITE.is_file():
        pytest.skip("no Azurite here; `make azurite` installs it, with npm")
    port = _free_port()
    command = [
        *(node, str(AZURITE), "--inMemoryPersistence", "--skipApiVersionCheck", "--disableTelemetry", "--silent"),
        *("--blobHost", "127.0.0.1", "--blobPort", str(port)),
    ]
    endpoint = f"http://127.0.0.1:{port}"
    with _running(command, endpoint, {"AZURITE_ACCOUNTS": f"{ACCOUNT}:{SECRET}"}):
        yield StoreServer(
            name="azurite",
            scheme="az",
            endpoint=endpoint,
            environment={
                "AZURE_STORAGE_ACCOUNT_NAME": ACCOUNT,
                "AZURE_STORAGE_ACCOUNT_KEY": SECRET,
                "AZURE_STORAGE_ENDPOINT": endpoint,
                "AZURE_STORAGE_USE_EMULATOR": "true",
                "AZURITE_BLOB_STORAGE_URL": endpoint,
            },
        )


@contextmanager
def localbucket() -> Iterator[StoreServer]:
    """An S3 server that shares no code with the other one, for the block; it puts objects on If-None-Match alone."""
    port = _free_port()
    endpoint = f"http://127.0.0.1:{port}"
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="localbucket-"))
        command = [sys.executable, "-m", "localbucket", "--host", "127.0.0.1", "--port", str(port), folder]
        stack.enter_context(_running(command, endpoint, {}))
        yield StoreServer(
            name="localbucket",
            scheme="s3",
            endpoint=endpoint,
            environment={
                "AWS_ACCESS_KEY_ID": "AKIATESTTESTTESTTEST",
                "AWS_SECRET_ACCESS_KEY": "not-to-be-shown-anywhere",
                "AWS_REGION": "us-east-1",
                "AWS_ENDPOINT_URL": endpoint,
                "AWS_DISABLE_BULK_DELETE": "true",
            },
        )


@contextmanager
def _running(command: list[str], endpoint: str, environment: Mapping[str, str]) -> Iterator[None]:
    """A server process that answers at its endpoint."""
    process = subprocess.Popen(
        command, env=os.environ | environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        deadline = time.monotonic() + START_S
        while not _answers(endpoint):
            assert process.poll() is None, f"{command[0]} ended with {process.returncode}"
            assert time.monotonic() < deadline, f"{command[0]} does not answer"
            time.sleep(0.05)
        yield
    finally:
        process.kill()
        process.wait(30)


def _answers(endpoint: str) -> bool:
    try:
        urllib.request.urlopen(endpoint, timeout=5).close()
    except urllib.error.HTTPError as error:
        error.close()
        return True
    except OSError:
        return False
    return True


def _free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])
