"""Client credentials in Kafka's properties: which values count, and that secrets are in no message."""

import pytest

from sharelens.kafka_live.command_config import command_config
from sharelens.kafka_live.oauth_config import CLIENT_ID, CLIENT_SECRET, ENCODES, HANDLER, RETRIEVER, SCOPE, TIMEOUT, URL
from state_model.errors import UsageError

MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
PACKAGE = "org.apache.kafka.common.security.oauthbearer"
BASE = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "OAUTHBEARER",
    URL: "https://login.example:8443/token",
    "sasl.jaas.config": f"{MODULE} required ;",
}
KEYS = {CLIENT_ID: "observer", CLIENT_SECRET: "s3cret"}
OPTIONS = f'{MODULE} required clientId="other" clientSecret="0ther" scope="read" extension_logicalCluster="lc-1";'


def credentials(**changes):
    config = command_config(BASE | KEYS | changes, "file")
    assert config.client_credentials is not None
    return config.client_credentials


def test_keys_name_the_client():
    parsed = credentials(
        **{SCOPE: "kafka", ENCODES: "TRUE", TIMEOUT: "700", HANDLER: f"{PACKAGE}.OAuthBearerLoginCallbackHandler"}
    )
    assert (parsed.client_id, parsed.client_secret, parsed.scope) == ("observer", "s3cret", "kafka")
    assert (parsed.url, parsed.encodes, parsed.timeout_ms) == ("https://login.example:8443/token", True, 700)


def test_options_of_the_login_module_count_where_there_are_no_keys():
    config = command_config(BASE | {"sasl.jaas.config": OPTIONS}, "file").client_credentials
    assert (config.client_id, config.client_secret, config.scope) == ("other", "0ther", "read")
    assert config.extensions == (("logicalCluster", "lc-1"),)
    assert credentials(**{"sasl.jaas.config": OPTIONS}).client_id == "observer"


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({URL: ""}, f"{URL} is missing"),
        ({URL: "file:///etc/token"}, "no http or https address"),
        ({CLIENT_SECRET: ""}, "the client's id or secret is missing"),
        ({HANDLER: "com.example.Handler"}, f"{HANDLER} names a class"),
        ({RETRIEVER: f"{PACKAGE}.JwtBearerJwtRetriever"}, f"{RETRIEVER} names a class"),
        ({"sasl.jaas.config": f'{MODULE} required unsecuredLoginStringClaim_sub="s3cret";'}, "options that are not"),
        ({"sasl.jaas.config": ""}, 'OAuthBearerLoginModule required clientId="ID" clientSecret="SECRET";'),
        ({TIMEOUT: "soon"}, f"{TIMEOUT} is no number of milliseconds"),
    ],
)
def test_what_is_missing_or_not_supported_is_one_line_without_secrets(changes, text):
    with pytest.raises(UsageError) as refused:
        credentials(**changes)
    message = str(refused.value)
    assert text in message
    assert "s3cret" not in message
    assert "\n" not in message


def test_no_secret_is_in_a_repr():
    assert "s3cret" not in repr(command_config(BASE | KEYS, "file"))
