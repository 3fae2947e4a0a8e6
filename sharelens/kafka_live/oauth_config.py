"""OAuth client credentials in Kafka's properties: keys of KIP-1139, or options of the login module as in KIP-768."""

from collections.abc import Mapping
from urllib.parse import urlsplit

from sharelens.kafka_live.oauth import ClientCredentials
from state_model.errors import UsageError

URL = "sasl.oauthbearer.token.endpoint.url"
CLIENT_ID = "sasl.oauthbearer.client.credentials.client.id"
CLIENT_SECRET = "sasl.oauthbearer.client.credentials.client.secret"  # noqa: S105 - a key, no secret
SCOPE = "sasl.oauthbearer.scope"
ENCODES = "sasl.oauthbearer.header.urlencode"
RETRIEVER = "sasl.oauthbearer.jwt.retriever.class"
TIMEOUT = "sasl.login.read.timeout.ms"
READ = frozenset({URL, CLIENT_ID, CLIENT_SECRET, SCOPE, ENCODES, RETRIEVER, TIMEOUT})
OTHER = f"tokens come by client credentials: {URL}, {CLIENT_ID} and {CLIENT_SECRET}"
FORM = 'clientId="ID" clientSecret="SECRET"'
HANDLER, HANDLERS = "sasl.login.callback.handler.class", (".OAuthBearerLoginCallbackHandler",)
RETRIEVERS = (".ClientCredentialsJwtRetriever", ".DefaultJwtRetriever")
EXTENSION = "extension_"
OPTIONS = frozenset({"clientId", "clientSecret", "scope"})


def client_credentials(
    values: Mapping[str, str], options: Mapping[str, str], truststore: str | None, timeout_ms: int, where: str
) -> ClientCredentials:
    """The credentials by properties; those of the login module (`options`) count where keys of their own are missing.

    Raises:
        UsageError: something is missing or not supported; the message shows no value of a secret.
    """
    for key, classes in ((HANDLER, HANDLERS), (RETRIEVER, RETRIEVERS)):
        if key in values and not values[key].endswith(classes):
            raise UsageError(f"{where}: {key} names a class that is not supported; leave it out: {OTHER}")
    url = values.get(URL, "")
    if urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).hostname:
        raise UsageError(f"{where}: {URL} is missing, or no http or https address; give that of the token endpoint")
    for option in options:
        if option not in OPTIONS and not option.startswith(EXTENSION):
            raise UsageError(f"{where}: sasl.jaas.config has options that are not supported; {OTHER}")
    client_id = values.get(CLIENT_ID) or options.get("clientId")
    client_secret = values.get(CLIENT_SECRET) or options.get("clientSecret")
    if not client_id or not client_secret:
        raise UsageError(f"{where}: the client's id or secret is missing; give {CLIENT_ID} and {CLIENT_SECRET}")
    return ClientCredentials(
        url=url,
        client_id=client_id,
        client_secret=client_secret,
        scope=values.get(SCOPE) or options.get("scope"),
        extensions=tuple(
            (name.removeprefix(EXTENSION), value) for name, value in options.items() if name.startswith(EXTENSION)
        ),
        encodes=values.get(ENCODES, "false").lower() == "true",
        timeout_ms=timeout_ms,
        truststore=truststore,
    )
