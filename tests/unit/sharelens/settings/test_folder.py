"""The folder of --settings: which files it may have, what they say, and from when on."""

import os
from pathlib import Path

import pyarrow as pa
import pytest

from sharelens.lake.settings_rows import observations_of, setting_rows
from sharelens.measures.settings.observations import UNSET, news, settings_of
from sharelens.measures.settings.over_time import DEAD_LETTER_TOPIC, DELIVERY_COUNT_LIMIT, Setting
from sharelens.settings.files import NO_SETTINGS_FILES
from sharelens.settings.folder import FILES, read_settings_folder, with_single_files
from sharelens.source.request import Source
from state_model.errors import SharelensError, UsageError

GROUP = """\
Dynamic configs for group g are:
  share.delivery.count.limit=3 sensitive=false synonyms={DYNAMIC_GROUP_CONFIG:share.delivery.count.limit=3}
  errors.deadletterqueue.topic.name=letters sensitive=false synonyms={DYNAMIC_GROUP_CONFIG:x=letters}
  share.session.timeout.ms=9 sensitive=false synonyms={DYNAMIC_GROUP_CONFIG:share.session.timeout.ms=9}
"""
BROKER = "group.share.delivery.count.limit=7\nssl.key.password=planted-secret\nsasl.jaas.config=planted\n"
TOPICS = """\
Topic: orders\tTopicId: qWiuuiIrR325SFUd1eZw1g\tPartitionCount: 1\tReplicationFactor: 1\tConfigs: x=1
\tTopic: orders\tPartition: 0\tLeader: 1\tReplicas: 1\tIsr: 1\tElr: \tLastKnownElr:
"""


def folder_of(tmp_path: Path, **files: str) -> str:
    names = {name.replace("-", "_").partition(".")[0]: name for name in FILES}
    for name, text in files.items():
        (tmp_path / names[name]).write_text(text, encoding="utf-8")
    return str(tmp_path)


def test_all_files_of_a_folder_are_read(tmp_path: Path) -> None:
    folder = folder_of(
        tmp_path, group_configs=GROUP, broker=BROKER, topics=TOPICS, end_offsets="orders:0:12\n",
        dead_letter_topics="# ours\nparked\n",
    )  # fmt: skip
    files = read_settings_folder(folder)
    settings = settings_of(files.observations)
    assert settings.groups.of("g", DELIVERY_COUNT_LIMIT) == Setting(value="3", origin="dynamic_group_config")
    assert settings.groups.of("h", DELIVERY_COUNT_LIMIT) == Setting(value="7", origin="broker_config")
    assert settings.groups.of("g", DEAD_LETTER_TOPIC).value == "letters"
    assert settings.dead_letter_topics == {"letters", "parked"}
    assert settings.end_offsets == {("orders", 0): 12}
    assert files.topics == str(tmp_path / "topics.txt")


def test_only_settings_that_measures_read_are_taken(tmp_path: Path) -> None:
    read = repr(read_settings_folder(folder_of(tmp_path, group_configs=GROUP, broker=BROKER)))
    assert "planted" not in read
    assert "session.timeout" not in read


def test_a_file_without_known_settings_still_says_that_defaults_count(tmp_path: Path) -> None:
    settings = settings_of(read_settings_folder(folder_of(tmp_path, broker="node.id=1\n")).observations)
    assert settings.groups.of("g", DELIVERY_COUNT_LIMIT) == Setting(value="5", origin="kafka_default")
    assert settings != UNSET


def test_single_files_count_before_the_folder(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    files = read_settings_folder(folder_of(tmp_path / "folder", group_configs=GROUP, broker=BROKER))
    other = tmp_path / "other"
    other.write_text(GROUP.replace("limit=3", "limit=4"), encoding="utf-8")
    groups = Source(settings_files=with_single_files(files, str(other), None)).settings.groups
    assert groups.of("g", DELIVERY_COUNT_LIMIT).value == "4"
    assert groups.of("h", DELIVERY_COUNT_LIMIT).value == "7"
    alone = Source(settings_files=with_single_files(NO_SETTINGS_FILES, str(other), None)).settings.groups
    assert alone.of("h", DELIVERY_COUNT_LIMIT) == Setting()


def test_warnings_of_all_files_are_there_and_nothing_is_refused(tmp_path: Path) -> None:
    folder = folder_of(
        tmp_path, broker="group.share.delivery.cout.limit=3\n", group_configs=GROUP.replace("delivery", "delivry")
    )
    files = read_settings_folder(folder)
    assert [warning.split(" has settings")[0] for warning in files.warnings] == [
        f"--settings: {tmp_path}/{name}" for name in ("broker.properties", "group-configs.txt")
    ]
    broker = str(tmp_path / "broker.properties")
    assert with_single_files(files, None, broker).warnings == (
        files.warnings[0].replace("settings", "broker-config", 1),
    )


def test_a_file_holds_from_its_modification_on(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, broker=BROKER)
    os.utime(tmp_path / "broker.properties", ns=(10**18, 10**18))
    assert read_settings_folder(folder).observations[0].from_ms == 10**12


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("group-configs.txt", "limit\n", "--settings: line 1 of .*group-configs.txt is not what kafka-configs prints"),
        ("broker.properties", "a=1\n{\n", "--settings: '{' in line 2 of .*broker.properties is no name of a setting"),
        ("topics.txt", "orders\n", "--settings: line 1 of .*topics.txt is not `TOPIC-ID NAME`"),
        ("end-offsets.txt", "orders\n", "--settings: line 1 of .*end-offsets.txt is not topic:partition:offset"),
        ("dead-letter-topics.txt", "a b\n", "--settings: line 1 of .*dead-letter-topics.txt is no topic that can"),
        ("dead-letter-topics.txt", "__offsets\n", "--settings: line 1 of .*dead-letter-topics.txt is no topic that"),
        ("groups.txt", GROUP, "'groups.txt' in .* is no file of settings; there are group-configs.txt, broker.prop"),
    ],
)
def test_a_wrong_file_is_refused_in_one_line(tmp_path: Path, name: str, text: str, message: str) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match=message) as caught:
        read_settings_folder(str(tmp_path))
    assert "\n" not in str(caught.value)


def test_a_folder_without_files_and_a_missing_one_are_refused(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    with pytest.raises(UsageError, match="has no file of settings; put one of these into it: group-configs.txt"):
        read_settings_folder(str(tmp_path))
    with pytest.raises(SharelensError, match="can't read the folder .*none: No such file"):
        read_settings_folder(str(tmp_path / "none"))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("group-configs.txt", GROUP.replace("limit=3", "limit=many")),
        ("broker.properties", "node.id=1\n" * 2 + "group.share.delivery.count.limit=many\n"),
    ],
)
def test_a_limit_that_is_no_number_is_refused(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match=r"line \d of .*count.limit is 'many', which is no number of 31 bits"):
        read_settings_folder(str(tmp_path))


def test_a_pipe_in_the_folder_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "topics.txt")
    with pytest.raises(UsageError, match="topics.txt is no regular file"):
        read_settings_folder(str(tmp_path))


def test_what_files_say_is_known_when_they_are_read_again(tmp_path: Path) -> None:
    ends = "".join(f"orders:{number}:{number}\n" for number in (2, 10, 1))
    folder = folder_of(tmp_path, group_configs=GROUP, broker=BROKER, end_offsets=ends, dead_letter_topics="b\na\n")
    observations = read_settings_folder(folder).observations
    rows = setting_rows(observations)
    rows = rows.append_column("run_id", pa.array([1] * rows.num_rows, pa.int64()))
    assert news(observations_of(rows), read_settings_folder(folder).observations) == []
