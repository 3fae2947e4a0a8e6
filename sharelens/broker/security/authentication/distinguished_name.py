"""The name in a certificate as principal: RFC 2253 as Java writes it, then the rules of ssl.principal.mapping.rules."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from cryptography import x509
from cryptography.x509.oid import NameOID

from sharelens.broker.errors import ConfigError

_KEYWORDS: Final = {
    NameOID.COMMON_NAME: "CN",
    NameOID.COUNTRY_NAME: "C",
    NameOID.LOCALITY_NAME: "L",
    NameOID.STATE_OR_PROVINCE_NAME: "ST",
    NameOID.ORGANIZATION_NAME: "O",
    NameOID.ORGANIZATIONAL_UNIT_NAME: "OU",
    NameOID.STREET_ADDRESS: "STREET",
    NameOID.DOMAIN_COMPONENT: "DC",
    NameOID.USER_ID: "UID",
}
_ESCAPED: Final = re.compile(r'^ +| +$|[,=+<>#;"\\]')
_LONG_LENGTH: Final = 0x80
_PART = r"((?:\\.|[^\\/])*)"
_RULE = re.compile(rf"\s*(?:(?P<default>DEFAULT)|RULE:{_PART}/{_PART}/(?P<case>[LU]?))\s*(?:,\s*|$)")
_REFERENCE = re.compile(r"\\(.)|\$(\d)", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One mapping rule. `pattern` null: the whole name. `case`: L, U or empty."""

    pattern: re.Pattern[str] | None
    replacement: str = ""
    case: str = ""

    def apply(self, name: str) -> str | None:
        """The principal's name; null when the pattern does not match the whole name."""
        if self.pattern is None:
            return name
        if self.pattern.fullmatch(name) is None:
            return None
        mapped = self.pattern.sub(self._expanded, name)
        return {"L": mapped.lower(), "U": mapped.upper()}.get(self.case, mapped)

    def _expanded(self, match: re.Match[str]) -> str:
        """The replacement with its groups; a number without a group stays as it is written."""

        def part(reference: re.Match[str]) -> str:
            escaped, number = reference.groups()
            if escaped is not None:
                return str(escaped)
            return match[int(number)] or "" if int(number) <= match.re.groups else reference[0]

        return _REFERENCE.sub(part, self.replacement)


def parse_rules(text: str) -> tuple[Rule, ...]:
    """The rules of ssl.principal.mapping.rules, in order (SslPrincipalMapper).

    Raises:
        ConfigError: a rule has another form, or a pattern that is no regular expression.
    """
    rules, at = [], 0
    while at < len(text):
        match = _RULE.match(text, at)
        if match is None:
            raise ConfigError(
                f"ssl.principal.mapping.rules: {text[at : at + 60]!r} is no DEFAULT and no RULE:pattern/text/[LU]"
            )
        at = match.end()
        if match["default"]:
            rules.append(Rule(pattern=None))
            continue
        try:
            rules.append(Rule(pattern=re.compile(match[2]), replacement=match[3], case=match["case"]))
        except re.error as error:
            raise ConfigError(f"ssl.principal.mapping.rules: {match[2]!r} is no regular expression: {error}") from None
    return tuple(rules) or (Rule(pattern=None),)


def mapped_name(rules: Sequence[Rule], name: str) -> str | None:
    """What the first rule that matches makes of a name; null when none matches."""
    return next((mapped for rule in rules if (mapped := rule.apply(name)) is not None), None)


def distinguished_name(certificate: bytes) -> str:
    """The subject of a certificate (DER) as X500Principal.getName() writes it: most specific first, without blanks.

    Raises:
        ValueError: the bytes are no certificate.
    """
    subject = x509.load_der_x509_certificate(certificate).subject
    return name_text(subject)


def name_text(name: x509.Name) -> str:
    """A name as X500Principal.getName() writes it."""
    return ",".join("+".join(_attribute(attribute) for attribute in rdn) for rdn in reversed(name.rdns))


def _attribute(attribute: x509.NameAttribute[str | bytes]) -> str:
    keyword = _KEYWORDS.get(attribute.oid)
    if keyword is None or not isinstance(attribute.value, str):
        return f"{attribute.oid.dotted_string}=#{_value(attribute).hex()}"
    return f"{keyword}={_ESCAPED.sub(_escape, attribute.value)}"


def _escape(match: re.Match[str]) -> str:
    return "".join(f"\\{character}" for character in match[0])


def _value(attribute: x509.NameAttribute[str | bytes]) -> bytes:
    """The value as DER: a name of this attribute alone is a sequence of a set of a sequence of type and value."""
    der = x509.Name([attribute]).public_bytes()
    at = 0
    for _ in range(3):
        at, _ = _content(der, at)
    _, end = _content(der, at)
    return der[end:]


def _content(der: bytes, at: int) -> tuple[int, int]:
    """Where the content of the element at a position begins and ends; `der` was written by the library."""
    length, begin = der[at + 1], at + 2
    if length >= _LONG_LENGTH:
        begin += length - _LONG_LENGTH
        length = int.from_bytes(der[at + 2 : begin], "big")
    return begin, begin + length
