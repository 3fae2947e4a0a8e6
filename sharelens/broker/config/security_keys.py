"""The configurations of TLS and SASL, which every listener may override (BrokerSecurityConfigs)."""

from collections.abc import Mapping

from sharelens.broker.config.definitions import INT_MAX, LONG_MAX, Definition, Kind, Value

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
LISTENER_PREFIX = "listener.name."
JAAS_CONFIG = "sasl.jaas.config"
_STORES = ("ssl.keystore.", "ssl.truststore.", "ssl.key.")


def _key(
    name: str,
    kind: Kind,
    default: Value,
    doc: str,
    *,
    low: int | None = None,
    high: int | None = None,
    choices: tuple[str, ...] = (),
) -> Definition:
    return Definition(name=name, kind=kind, default=default, doc=doc, low=low, high=high, choices=choices)


SECURITY: Mapping[str, Definition] = {
    definition.name: definition
    for definition in (
        _key("ssl.keystore.type", Kind.STRING, "JKS", "Type of the key store; PEM alone is served."),
        _key("ssl.keystore.location", Kind.STRING, None, "PEM file with the private key and its certificate chain."),
        _key("ssl.keystore.key", Kind.PASSWORD, None, "Private key as PEM text, PKCS#8, instead of a location."),
        _key("ssl.keystore.certificate.chain", Kind.PASSWORD, None, "Certificate chain as PEM text."),
        _key("ssl.keystore.password", Kind.PASSWORD, None, "Not for PEM: a key store with it is refused."),
        _key("ssl.truststore.password", Kind.PASSWORD, None, "Not for PEM: a trust store with it is refused."),
        _key("ssl.key.password", Kind.PASSWORD, None, "Password of an encrypted private key."),
        _key("ssl.truststore.type", Kind.STRING, "JKS", "Type of the trust store; PEM alone is served."),
        _key("ssl.truststore.location", Kind.STRING, None, "PEM file with the trusted certificates."),
        _key("ssl.truststore.certificates", Kind.PASSWORD, None, "Trusted certificates as PEM text."),
        _key(
            "ssl.client.auth",
            Kind.STRING,
            "none",
            "Whether clients show a certificate.",
            choices=("none", "requested", "required"),
        ),
        _key(
            "ssl.enabled.protocols",
            Kind.LIST,
            ("TLSv1.2", "TLSv1.3"),
            "Versions of TLS.",
            choices=("TLSv1.2", "TLSv1.3"),
        ),
        _key("ssl.principal.mapping.rules", Kind.STRING, "DEFAULT", "Rules from a certificate's name to a principal."),
        _key("ssl.allow.dn.changes", Kind.BOOLEAN, False, "Whether a new certificate may have another name."),
        _key(
            "ssl.allow.san.changes",
            Kind.BOOLEAN,
            False,
            "Whether a new certificate may lack names of the old.",
        ),
        _key("sasl.enabled.mechanisms", Kind.LIST, ("GSSAPI",), "Mechanisms of SASL; GSSAPI is not served."),
        _key(
            JAAS_CONFIG,
            Kind.PASSWORD,
            None,
            "Login module, as listener.name.NAME.MECHANISM.sasl.jaas.config.",
        ),
        _key("sasl.server.callback.handler.class", Kind.STRING, None, "Class that checks the tokens of OAUTHBEARER."),
        _key("sasl.server.max.receive.size", Kind.INT, 512 << 10, "Largest request before authentication.", low=1),
        _key(
            "connections.max.reauth.ms",
            Kind.LONG,
            0,
            "How long an authentication lasts; 0: without end.",
            low=0,
            high=LONG_MAX,
        ),
        _key(
            "sasl.oauthbearer.jwks.endpoint.url",
            Kind.STRING,
            None,
            "URL of the keys of tokens: https, http or file.",
        ),
        _key(
            "sasl.oauthbearer.jwks.endpoint.refresh.ms",
            Kind.LONG,
            3_600_000,
            "How often the keys are read again.",
            low=1,
        ),
        _key(
            "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms",
            Kind.LONG,
            100,
            "First wait after a failed reading.",
            low=1,
        ),
        _key(
            "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms",
            Kind.LONG,
            10_000,
            "Longest wait after a failed reading.",
            low=1,
        ),
        _key("sasl.oauthbearer.expected.audience", Kind.LIST, (), "Audiences of which a token needs one."),
        _key("sasl.oauthbearer.expected.issuer", Kind.STRING, None, "The issuer of tokens."),
        _key("sasl.oauthbearer.clock.skew.seconds", Kind.INT, 30, "Difference of clocks that tokens may have.", low=0),
        _key("sasl.oauthbearer.sub.claim.name", Kind.STRING, "sub", "Claim with the name of the user."),
        _key("sasl.oauthbearer.scope.claim.name", Kind.STRING, "scope", "Claim with the scopes."),
    )
}
"""Definitions that a listener may override; by name."""

FAILURE_DELAY = _key(
    "connection.failed.authentication.delay.ms",
    Kind.INT,
    100,
    "How long the answer to a failed authentication is held back.",
    low=0,
    high=INT_MAX,
)


def listener_definition(key: str) -> Definition | None:
    """The definition of `listener.name.NAME.KEY` or `listener.name.NAME.MECHANISM.KEY`; None for another key.

    Keys of key stores and trust stores can change while the broker runs (DynamicSecurityConfigs). Kafka 4.3.1 takes
    login modules, too (DynamicListenerConfig), and goes on with those of its start.
    """
    if not key.startswith(LISTENER_PREFIX):
        return None
    name = next((name for name in SECURITY if key.endswith(f".{name}")), None)
    if name is None or len(key) <= len(LISTENER_PREFIX) + len(name) + 1:
        return None
    base = SECURITY[name]
    return Definition(
        name=key,
        kind=base.kind,
        default=base.default,
        doc=base.doc,
        low=base.low,
        high=base.high,
        choices=base.choices,
        is_dynamic=name.startswith(_STORES),
        is_stored_only=name == JAAS_CONFIG,
    )


def listener_key(listener: str, name: str, mechanism: str | None = None) -> str:
    """The key by which a listener, or a mechanism on it, overrides a configuration (ListenerName.configPrefix)."""
    middle = "" if mechanism is None else f"{mechanism.lower()}."
    return f"{LISTENER_PREFIX}{listener.lower()}.{middle}{name}"
