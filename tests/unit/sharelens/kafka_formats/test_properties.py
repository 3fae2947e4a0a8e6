"""Java's properties format, case by case of java.util.Properties' description."""

import pytest

from sharelens.kafka_formats.properties import PropertiesError, parse


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("a=b", {"a": "b"}),
        ("a:b", {"a": "b"}),
        ("a b", {"a": "b"}),
        ("  a \t = \t b c  ", {"a": "b c  "}),
        ("a", {"a": ""}),
        ("a=", {"a": ""}),
        ("a==b", {"a": "=b"}),
        ("# no\n! no either\n\na=b # c", {"a": "b # c"}),
        ("a=b,\\\n   c", {"a": "b,c"}),
        ("a=b\\\\\nc=d", {"a": "b\\", "c": "d"}),
        ("a=b\r\nc=d\re=f", {"a": "b", "c": "d", "e": "f"}),
        ("a\\ b\\=c=d", {"a b=c": "d"}),
        ("a=\\u00fc\\t\\x", {"a": "ü\tx"}),
        ("a=1\na=2", {"a": "2"}),
        ("a=b\\", {"a": "b"}),
        ("#a=1\n\nnode.id = 1\nb\ncluster.id=c=d\n", {"node.id": "1", "b": "", "cluster.id": "c=d"}),
        ("a=b\\\n# goes on", {"a": "b# goes on"}),
        ("", {}),
    ],
)
def test_lines_are_read_as_java_reads_them(text, values):
    assert parse(text) == values


def test_a_broken_unicode_escape_names_the_line():
    with pytest.raises(PropertiesError, match=r"server\.properties:3: "):
        parse("a=b\n# c\nd=\\u12g4", "server.properties")
