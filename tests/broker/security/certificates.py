"""Certificates of a CA for tests, as PEM files."""

import datetime as dt
import ipaddress
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

DAY = dt.timedelta(days=1)
HOST = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class Authority:
    """A CA; `path`: its certificate."""

    path: Path
    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    def issue(
        self, path: Path, name: str, password: str | None = None, *, ends: dt.timedelta = DAY, host: str | None = None
    ) -> Path:
        """Writes a key, encrypted with the password, and a certificate for the name or address: a PEM keystore.

        ends: when the certificate ends, from now. host: the alternative name, if it is not the name.
        """
        key = ec.generate_private_key(ec.SECP256R1())
        host = host or name
        alternative = x509.IPAddress(ipaddress.ip_address(host)) if host == HOST else x509.DNSName(host)
        certificate = (
            _certificate(name, self.certificate.subject, key, ends)
            .add_extension(x509.SubjectAlternativeName([alternative]), critical=False)
            .sign(self.key, hashes.SHA256())
        )
        encryption = (
            serialization.NoEncryption()
            if password is None
            else serialization.BestAvailableEncryption(password.encode())
        )
        pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption)
        path.write_bytes(pem + certificate.public_bytes(serialization.Encoding.PEM))
        return path


def authority(path: Path) -> Authority:
    """A new CA."""
    key = ec.generate_private_key(ec.SECP256R1())
    certificate = (
        _certificate(path.stem, None, key)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    return Authority(path, certificate, key)


def _certificate(
    name: str, issuer: x509.Name | None, key: ec.EllipticCurvePrivateKey, ends: dt.timedelta = DAY
) -> x509.CertificateBuilder:
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = dt.datetime.now(dt.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer or subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - 2 * DAY)
        .not_valid_after(now + ends)
    )
