"""Key, certificates and trusted CAs of a listener with TLS: PEM, by Kafka's keys (DefaultSslEngineFactory)."""

import re
import ssl
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from cryptography import x509

from sharelens.broker.config.settings import Settings
from sharelens.broker.errors import ConfigError
from sharelens.broker.security.authentication.distinguished_name import name_text

PEM: Final = "PEM"
_PRIVATE_KEY = re.compile(r"-----BEGIN (?:[A-Z ]*)PRIVATE KEY-----.*?-----END (?:[A-Z ]*)PRIVATE KEY-----", re.DOTALL)
_PKCS8 = ("-----BEGIN PRIVATE KEY-----", "-----BEGIN ENCRYPTED PRIVATE KEY-----")
_CERTIFICATE = re.compile(r"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL)
_VERIFY: Final = {"none": ssl.CERT_NONE, "requested": ssl.CERT_OPTIONAL, "required": ssl.CERT_REQUIRED}
_VERSIONS: Final = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}


@dataclass(frozen=True, slots=True, kw_only=True)
class Stores:
    """PEM texts of a listener. `trusted` is empty without a trust store; `password`: of the key, empty without one."""

    key: str = field(repr=False)
    chain: str
    trusted: str
    password: str = field(repr=False)


def read_stores(settings: Settings, listener: str) -> Stores:
    """The stores of a listener, inline or from their files.

    Raises:
        ConfigError: a store of another type than PEM, one that can't be read, or one that lacks what it needs.
    """
    key, chain = _keystore(settings, listener)
    client_auth = settings.listener_text(listener, "ssl.client.auth")
    trusted = _store(settings, listener, "truststore", "certificates")
    if client_auth != "none" and not _CERTIFICATE.search(trusted):
        raise ConfigError(
            f"listener {listener}: ssl.client.auth={client_auth} needs the CAs of clients: "
            "give ssl.truststore.type=PEM and ssl.truststore.location"
        )
    return Stores(key=key, chain=chain, trusted=trusted, password=settings.listener_text(listener, "ssl.key.password"))


def server_context(settings: Settings, listener: str, stores: Stores) -> ssl.SSLContext:
    """The context of a listener's connections.

    Raises:
        ConfigError: the key does not fit the certificate, its password is wrong, or a certificate is broken.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    versions = [_VERSIONS[name] for name in settings.listener_names(listener, "ssl.enabled.protocols")]
    context.minimum_version, context.maximum_version = min(versions), max(versions)
    context.options |= ssl.OP_NO_RENEGOTIATION
    context.verify_mode = _VERIFY[settings.listener_text(listener, "ssl.client.auth")]
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # what the trust store has is trusted, as in Java
    try:
        if stores.trusted:
            context.load_verify_locations(cadata=stores.trusted)
        with tempfile.NamedTemporaryFile("w", suffix=".pem") as file:  # the library reads keys from files only
            file.write(f"{stores.key}\n{stores.chain}\n")
            file.flush()
            context.load_cert_chain(file.name, password=stores.password)  # never a question at the terminal
    except (ssl.SSLError, ValueError) as error:
        reason = getattr(error, "reason", None) or error
        raise ConfigError(
            f"listener {listener}: TLS can't use its PEM texts ({reason}): check that the key belongs to the first "
            "certificate, and ssl.key.password if the key is encrypted"
        ) from None
    return context


def check_replacement(settings: Settings, listener: str, before: Stores, after: Stores) -> None:
    """Whether a new certificate may replace one that clients know (SslFactory.CertificateEntries).

    Raises:
        ConfigError: it has another name, or lacks an alternative name, and the listener does not allow that.
    """
    old, new = _first_certificate(before.chain, listener), _first_certificate(after.chain, listener)
    if old.subject != new.subject and not settings.listener_value(listener, "ssl.allow.dn.changes"):
        raise ConfigError(
            f"listener {listener}: the new certificate is for {name_text(new.subject)}, the old one for "
            f"{name_text(old.subject)}; set ssl.allow.dn.changes=true to allow that"
        )
    missing = _alternative_names(old) - _alternative_names(new)
    if missing and not settings.listener_value(listener, "ssl.allow.san.changes"):
        raise ConfigError(
            f"listener {listener}: the new certificate lacks the alternative names {', '.join(sorted(missing))}; "
            "set ssl.allow.san.changes=true to allow that"
        )


def _keystore(settings: Settings, listener: str) -> tuple[str, str]:
    """The private key and the certificate chain."""
    inline = settings.listener_text(listener, "ssl.keystore.key")
    inline_chain = settings.listener_text(listener, "ssl.keystore.certificate.chain")
    if bool(inline) != bool(inline_chain):
        raise ConfigError(
            f"listener {listener}: ssl.keystore.key and ssl.keystore.certificate.chain belong together: give both"
        )
    text = _store(settings, listener, "keystore", "key")
    keys = _PRIVATE_KEY.findall(text)
    certificates = _CERTIFICATE.findall(inline_chain or text)
    if len(keys) != 1 or not keys[0].startswith(_PKCS8) or not certificates:
        raise ConfigError(
            f"listener {listener}: the key store needs exactly one private key (PKCS#8: BEGIN PRIVATE KEY or "
            f"BEGIN ENCRYPTED PRIVATE KEY) and its certificate chain; it has {len(keys)} keys and "
            f"{len(certificates)} certificates"
        )
    return keys[0], "\n".join(certificates)


def _store(settings: Settings, listener: str, store: str, inline_key: str) -> str:
    """The text of a store; empty when there is none."""
    inline = settings.listener_text(listener, f"ssl.{store}.{inline_key}")
    location = settings.listener_text(listener, f"ssl.{store}.location")
    kind = settings.listener_text(listener, f"ssl.{store}.type")
    if (inline or location) and kind.upper() != PEM:
        raise ConfigError(
            f"listener {listener}: ssl.{store}.type={kind} is not served (without the key it is JKS); "
            f"convert the store with openssl, and set ssl.{store}.type=PEM"
        )
    if (inline or location) and settings.listener_text(listener, f"ssl.{store}.password"):
        raise ConfigError(
            f"listener {listener}: PEM has no ssl.{store}.password: leave it out; that of an encrypted key is "
            "ssl.key.password"
        )
    if inline and location:
        raise ConfigError(f"listener {listener}: ssl.{store}.{inline_key} and ssl.{store}.location exclude each other")
    if not location:
        return inline
    try:
        return Path(location).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is no text"
        raise ConfigError(f"listener {listener}: ssl.{store}.location={location} can't be read: {reason}") from None


def _first_certificate(chain: str, listener: str) -> x509.Certificate:
    match = _CERTIFICATE.search(chain)
    try:
        return x509.load_pem_x509_certificate(match[0].encode() if match else b"")
    except ValueError as error:
        raise ConfigError(f"listener {listener}: the first certificate of the chain is broken: {error}") from None


def _alternative_names(certificate: x509.Certificate) -> set[str]:
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return set()
    return {str(name.value) for name in names}
