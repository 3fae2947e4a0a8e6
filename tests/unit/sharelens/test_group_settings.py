"""The files behind --group-configs and --broker-config."""

import pytest

from measures.settings import DELIVERY_COUNT_LIMIT, ISOLATION_LEVEL, Setting
from sharelens.group_settings import read_group_settings
from state_model.errors import SharelensError, UsageError

PRINTED = """\
Dynamic configs for group orders workers are:
  share.delivery.count.limit=3 sensitive=false synonyms={DYNAMIC_GROUP_CONFIG:share.delivery.count.limit=3}

All configs for group audit are:
  share.isolation.level=read_committed sensitive=false synonyms={}
  share.delivery.count.limit=7 sensitive=false synonyms={STATIC_BROKER_CONFIG:group.share.delivery.count.limit=7, \
DEFAULT_CONFIG:group.share.delivery.count.limit=5}
"""


def written(tmp_path, text):
    file = tmp_path / "file"
    file.write_text(text, encoding="utf-8")
    return str(file)


def test_settings_are_read_with_the_source_that_counts(tmp_path):
    told = read_group_settings(written(tmp_path, PRINTED), None)
    assert told.of("orders workers", DELIVERY_COUNT_LIMIT) == Setting(value="3", origin="dynamic_group_config")
    assert told.of("audit", DELIVERY_COUNT_LIMIT) == Setting(value="7", origin="static_broker_config")
    assert told.of("audit", ISOLATION_LEVEL) == Setting(value="read_committed", origin="group_configs")
    assert told.of("nobody", DELIVERY_COUNT_LIMIT) == Setting()


def test_server_properties_tell_the_brokers_own(tmp_path):
    told = read_group_settings(None, written(tmp_path, "# ours\ngroup.share.delivery.count.limit = 4\n"))
    assert told.of("any", DELIVERY_COUNT_LIMIT) == Setting(value="4", origin="broker_config")


@pytest.mark.parametrize("text", ["share.delivery.count.limit=3\n", "Dynamic configs for group g are:\n  limit 3\n"])
def test_another_line_is_refused_with_its_number(tmp_path, text):
    with pytest.raises(UsageError, match="line [12] of"):
        read_group_settings(written(tmp_path, text), None)


def test_a_file_of_another_kind_is_no_server_properties(tmp_path):
    file = written(tmp_path, '{\n  "kafkaVersion": "4.4.0"\n}\n')
    with pytest.raises(UsageError, match="--broker-config: '{' in .* is no name of a setting"):
        read_group_settings(None, file)


def test_a_file_that_cannot_be_read_is_a_failure(tmp_path):
    with pytest.raises(SharelensError, match="can't read"):
        read_group_settings(str(tmp_path / "none"), None)
    with pytest.raises(SharelensError, match="can't read"):
        read_group_settings(None, str(tmp_path / "none"))
