"""The files behind --group-configs and --broker-config."""

import pytest

from sharelens.measures.settings.over_time import (
    DELIVERY_COUNT_LIMIT,
    ISOLATION_LEVEL,
    GroupSettings,
    Setting,
)
from sharelens.settings.group_settings import read_broker_config, read_group_configs
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
    settings = GroupSettings(groups=read_group_configs(written(tmp_path, PRINTED)).settings)
    assert settings.of("orders workers", DELIVERY_COUNT_LIMIT) == Setting(value="3", origin="dynamic_group_config")
    assert settings.of("audit", DELIVERY_COUNT_LIMIT) == Setting(value="7", origin="static_broker_config")
    assert settings.of("audit", ISOLATION_LEVEL) == Setting(value="read_committed", origin="group_configs")
    assert settings.of("nobody", DELIVERY_COUNT_LIMIT) == Setting()


def test_server_properties_tell_the_brokers_own(tmp_path):
    file = written(tmp_path, "# ours\ngroup.share.delivery.count.limit = 4\n")
    settings = GroupSettings(broker=read_broker_config(file).settings)
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


@pytest.mark.parametrize(
    ("text", "warning"),
    [
        (
            "group.share.delivery.count.limit=4\ngroup.share.assignors=simple\ngroup.share.persister.class.name=x\n",
            None,
        ),
        ("node.idd=1\ngroup.consumer.sizze=2\nshare=1\nssl.key.passwd=planted\n", None),
        (
            "a=1\ngroup.share.delivery.cout.limit=4\n",
            "line 2: group.share.delivery.cout.limit (nearest: group.share.delivery.count.limit)",
        ),
        (
            "share.delivery.count.limit=4\n",
            "line 1: share.delivery.count.limit (nearest: group.share.delivery.count.limit)",
        ),
        (
            "share.xyz=1\nerrors.deadletterqueue.prefx=d\n",
            (
                "line 1: share.xyz, line 2: errors.deadletterqueue.prefx"
                " (nearest: errors.deadletterqueue.topic.name.prefix)"
            ),
        ),
    ],
)
def test_a_share_setting_of_an_unknown_name_is_a_warning(tmp_path, text, warning):
    file = written(tmp_path, text)
    actual = read_broker_config(file).warning
    start = f"--broker-config: {file} has settings of unknown names, which count for nothing: "
    assert actual == (None if warning is None else start + warning)
    assert "planted" not in str(actual)


@pytest.mark.slow
def test_a_warning_about_many_names_is_one_line_that_names_few(tmp_path):
    file = written(tmp_path, "".join(f"share.x{number}=1\n" for number in range(100_000)))
    warning = read_broker_config(file).warning
    assert warning.endswith(" and 99997 more")
    assert len(warning) < 400


def test_settings_of_groups_have_names_of_their_own(tmp_path):
    line = "  {0}=1 sensitive=false synonyms={{DYNAMIC_GROUP_CONFIG:{0}=1}}\n"
    names = ("share.session.timeout.ms", "share.sessn.timeout.ms", "streams.x", "share.\x1b[31mx")
    text = "Dynamic configs for group g are:\n" + "".join(map(line.format, names))
    warning = read_group_configs(written(tmp_path, text)).warning
    assert "line 3: share.sessn.timeout.ms (nearest: share.session.timeout.ms), line 5: " in warning
    assert "\x1b" not in warning
