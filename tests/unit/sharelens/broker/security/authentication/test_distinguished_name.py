"""Names of certificates as principals."""

import pytest
from cryptography import x509
from cryptography.x509.oid import NameOID
from hypothesis import given
from hypothesis import strategies as st

from sharelens.broker.errors import ConfigError
from sharelens.broker.security.authentication.distinguished_name import (
    distinguished_name,
    mapped_name,
    name_text,
    parse_rules,
)

ALICE = "CN=Alice,OU=Ops,O=Org,C=FR"
EMAIL = NameOID.EMAIL_ADDRESS


def name(*attributes):
    return x509.Name([x509.NameAttribute(oid, value) for oid, value in attributes])


def test_the_most_specific_part_is_first_and_other_attributes_are_numbers():
    of_dan = name(
        (NameOID.COUNTRY_NAME, "FR"), (NameOID.STATE_OR_PROVINCE_NAME, "IDF"), (NameOID.LOCALITY_NAME, "Paris"),
        (NameOID.ORGANIZATION_NAME, "Org"), (NameOID.ORGANIZATIONAL_UNIT_NAME, "Dev"), (NameOID.COMMON_NAME, "Dan"),
        (EMAIL, "d@x.org"),
    )  # fmt: skip
    assert name_text(of_dan) == "1.2.840.113549.1.9.1=#16076440782e6f7267,CN=Dan,OU=Dev,O=Org,L=Paris,ST=IDF,C=FR"


def test_all_attributes_with_a_keyword():
    parts = (NameOID.DOMAIN_COMPONENT, NameOID.STREET_ADDRESS, NameOID.USER_ID)
    assert name_text(name(*((oid, "x") for oid in parts))) == "UID=x,STREET=x,DC=x"


def test_a_long_value_of_another_attribute_is_whole():
    raw = bytes.fromhex(name_text(name((EMAIL, "d" * 300))).partition("#")[2])
    assert raw == b"\x16\x82\x01\x2c" + b"d" * 300


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("a,b+c", "a\\,b\\+c"), ('"<a>;\\', '\\"\\<a\\>\\;\\\\'), ("a=b", "a\\=b"), ("#a", "\\#a"),
        ("  a b ", "\\ \\ a b\\ "), ("é", "é"),
    ],
)  # fmt: skip
def test_special_characters_are_escaped(value, expected):
    assert name_text(name((NameOID.COMMON_NAME, value))) == f"CN={expected}"


def test_parts_of_one_level_are_joined():
    two_part_name = x509.RelativeDistinguishedName(
        [x509.NameAttribute(NameOID.COMMON_NAME, "a"), x509.NameAttribute(NameOID.USER_ID, "b")]
    )
    assert set(name_text(x509.Name([two_part_name])).split("+")) == {"CN=a", "UID=b"}


def test_what_is_no_certificate_is_refused():
    with pytest.raises(ValueError, match=r"."):
        distinguished_name(b"no certificate")


@pytest.mark.parametrize(
    ("rules", "subject", "expected"),
    [
        ("DEFAULT", ALICE, ALICE),
        ("", ALICE, ALICE),
        ("RULE:^CN=([^,]+),OU=Ops.*$/$1/L,DEFAULT", ALICE, "alice"),
        ("RULE:^CN=([^,]+),OU=Ops.*$/$1/L,DEFAULT", "CN=Bob,OU=Dev", "CN=Bob,OU=Dev"),
        ("RULE:^CN=(.*?),OU=(.*?),.*$/$1@$2/", ALICE, "Alice@Ops"),
        (" RULE:^CN=([^,]+).*$/$1/U , RULE:.*/x/ ", ALICE, "ALICE"),
        ("RULE:^CN=([^,]+).*$/$1-$2/", ALICE, "Alice-$2"),
        (r"RULE:^CN=([^,]+).*$/a\/$1/", ALICE, "a/Alice"),
        (r"RULE:^CN=(a\/b)$/$1/", "CN=a/b", "a/b"),
        ("RULE:^CN=Alice/$1/", ALICE, None),
        ("RULE:^UID=.*$/x/,RULE:^OU=.*$/y/", ALICE, None),
    ],
)
def test_the_first_rule_that_matches_the_whole_name_counts(rules, subject, expected):
    assert mapped_name(parse_rules(rules), subject) == expected


@pytest.mark.parametrize("text", ["x", "RULE:a", "RULE:a/b", "RULE:a/b/X", "DEFAULT DEFAULT", "RULE:(/a/", "default"])
def test_what_is_no_rule_is_refused(text):
    with pytest.raises(ConfigError, match=r"ssl\.principal\.mapping\.rules"):
        parse_rules(text)


@given(st.lists(st.tuples(st.sampled_from(["CN", "O"]), st.text(min_size=1, max_size=9)), min_size=1, max_size=4))
def test_the_library_reads_the_same_name_back(parts):
    oids = {"CN": NameOID.COMMON_NAME, "O": NameOID.ORGANIZATION_NAME}
    subject = name(*((oids[keyword], value) for keyword, value in parts))
    text = name_text(subject)
    if "\0" not in text:
        assert x509.Name.from_rfc4514_string(text) == subject
