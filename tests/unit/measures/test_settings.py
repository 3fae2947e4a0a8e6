"""Which setting counts for a group, and where it is from."""

from measures.settings import DELIVERY_COUNT_LIMIT, ISOLATION_LEVEL, GroupSettings, Setting

OWN = {"g": {DELIVERY_COUNT_LIMIT: Setting(value="3", origin="dynamic_group_config")}}


def test_a_groups_own_setting_counts_before_the_brokers():
    told = GroupSettings(groups=OWN, broker={"group.share.delivery.count.limit": "7"})
    assert told.of("g", DELIVERY_COUNT_LIMIT) == Setting(value="3", origin="dynamic_group_config")
    assert told.of("h", DELIVERY_COUNT_LIMIT) == Setting(value="7", origin="broker_config")


def test_kafkas_default_counts_only_when_the_file_was_given_that_would_say_otherwise():
    assert GroupSettings(broker={}).of("h", DELIVERY_COUNT_LIMIT) == Setting(value="5", origin="kafka_default")
    assert GroupSettings(groups=OWN).of("h", DELIVERY_COUNT_LIMIT) == Setting()
    assert GroupSettings(groups=OWN).of("h", ISOLATION_LEVEL) == Setting(
        value="read_uncommitted", origin="kafka_default"
    )
    assert GroupSettings(broker={}).of("h", ISOLATION_LEVEL) == Setting()


def test_what_is_no_number_is_unknown():
    assert Setting(value="many", origin="x").number is None
    assert Setting().number is None
    assert Setting(value="12", origin="x").number == 12
