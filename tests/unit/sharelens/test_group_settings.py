"""The files behind --group-configs and --broker-config."""

import pytest

from measures.settings import DELIVERY_COUNT_LIMIT, ISOLATION_LEVEL, GroupSettings, Setting
from sharelens.group_settings import read_broker_config, read_group_configs
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
    settings = GroupSettings(groups=read_group_configs(written(tmp_path, PRINTED)))
    assert settings.of("orders workers", DELIVERY_COUNT_LIMIT) == Setting(value="3", origin="dynamic_group_config")
    assert settings.of("audit", DELIVERY_COUNT_LIMIT) == Setting(value="7", origin="static_broker_config")
    assert settings.of("audit", ISOLATION_LEVEL) == Setting(value="read_committed", origin="group_configs")
    assert settings.of("nobody", DELIVERY_COUNT_LIMIT) == Setting()


def test_server_properties_tell_the_brokers_own(tmp_path):
    file = written(tmp_path, "# ours\ngroup.share.delivery.count.limit = 4\n")
    settings = GroupSettings(broker=read_broker_config(file))
    assert settings.of("any", DELIVERY_COUNT_LIMIT) == Setting(value="4", origin="broker_config")


@pytest.mark.parametrize("text", ["share.delivery.count.limit=3\n", "Dynamic configs for group g are:\n  limit 3\n"])
def test_another_line_is_refused_with_its_number(tmp_path, text):
    with pytest.raises(UsageError, match="line [12] of"):
        read_group_configs(written(tmp_path, text))


def test_a_file_of_another_kind_is_no_server_properties(tmp_path):
    file = written(tmp_path, '{\n  "kafkaVersion": "4.4.0"\n}\n')
    with pytest.raises(UsageError, match="--broker-config: '{' in line 1 of .* is no name of a setting"):
        read_broker_config(file)


def test_a_file_that_cannot_be_read_is_a_failure(tmp_path):
    with pytest.raises(SharelensError, match="can't read"):
        read_group_configs(str(tmp_path / "none"))
    with pytest.raises(SharelensError, match="can't read"):
        read_broker_config(str(tmp_path / "none"))
