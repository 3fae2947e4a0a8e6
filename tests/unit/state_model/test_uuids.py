import pytest
from hypothesis import given
from hypothesis import strategies as st

from state_model.errors import InvalidUuidError
from state_model.uuids import ZERO_UUID, is_uuid_text, uuid_bytes, uuid_text


@given(st.binary(min_size=16, max_size=16))
def test_bytes_survive_the_way_through_text(raw):
    assert uuid_bytes(uuid_text(raw)) == raw
    assert is_uuid_text(uuid_text(raw))


def test_known_texts():
    assert uuid_text(bytes(range(16))) == "AAECAwQFBgcICQoLDA0ODw"
    assert uuid_text(bytes(16)) == ZERO_UUID


@pytest.mark.parametrize(
    "text",
    [
        "",
        "AAECAwQFBgcICQoLDA0OD",
        "AAECAwQFBgcICQoLDA0ODw=",
        "AAECAwQFBgcICQoLDA0O/w",
        "AAECAwQFBgcICQoLDA0ODx",
        "AAECAwQFBgcICQoLDA0ODw\n",
        "ÄAECAwQFBgcICQoLDA0ODw",
    ],
)
def test_other_texts_are_refused(text):
    assert not is_uuid_text(text)
    with pytest.raises(InvalidUuidError, match="no uuid"):
        uuid_bytes(text)


def test_other_lengths_of_bytes_are_refused():
    with pytest.raises(InvalidUuidError, match="15"):
        uuid_text(bytes(15))


@given(st.text(alphabet="ABQgw-_x", min_size=22, max_size=22))
def test_the_cheap_check_agrees_with_the_decoder(text):
    try:
        uuid_bytes(text)
        is_decodable = True
    except InvalidUuidError:
        is_decodable = False
    assert is_uuid_text(text) is is_decodable
