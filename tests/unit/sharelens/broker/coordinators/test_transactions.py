"""The transaction coordinator over real logs: fencing, commit and abort, time-outs, what a kill leaves."""

import pytest
from kio.schema.errors import ErrorCode

from sharelens.broker.coordinators.classic_groups import MemberCall
from sharelens.broker.coordinators.classic_records import CommittedOffset
from sharelens.broker.coordinators.transaction_log import Transaction, TransactionLog, TransactionStatus
from sharelens.broker.ports import ProducerIdentity, TopicPartition
from state_model.topics import OFFSETS_TOPIC
from tests.broker_parts.broker_transactions import USER_TOPIC, Coordinators, CrashError

AT = TopicPartition(USER_TOPIC, 0)
THERE = TopicPartition(USER_TOPIC, 1)
NOBODY = MemberCall(group_id="g", member_id="", generation_id=-1)


@pytest.fixture
def broker(tmp_path):
    coordinators = Coordinators(tmp_path)
    yield coordinators
    coordinators.cluster.close()


def begin(broker, *partitions, transactional_id="tx"):
    producer = broker.transactions.init_producer_id(transactional_id, 60_000)
    assert producer.error_code is ErrorCode.none
    assert add(broker, producer, *partitions, transactional_id=transactional_id) == "none"
    return producer


def add(broker, producer, *partitions, transactional_id="tx"):
    return broker.transactions.add_partitions(
        transactional_id, producer.producer_id, producer.producer_epoch, partitions
    ).name


def end(broker, producer, *, is_commit, transactional_id="tx"):
    return broker.transactions.end(
        transactional_id, producer.producer_id, producer.producer_epoch, is_commit=is_commit
    ).name


def status(broker, transactional_id="tx"):
    return broker.transactions.get(transactional_id).status


def lso_and_end(broker, partition=0):
    log = broker.cluster.get(USER_TOPIC, partition)
    return log.last_stable_offset, log.high_watermark


class TestProducers:
    def test_each_idempotent_producer_has_an_id_of_its_own(self, broker):
        first, second = (broker.transactions.init_producer_id(None, 0) for _ in range(2))
        assert first.producer_id != second.producer_id
        assert (first.producer_epoch, second.producer_epoch) == (0, 0)

    def test_a_transactional_id_keeps_its_producer_id_and_raises_the_epoch(self, broker):
        answers = [broker.transactions.init_producer_id("tx", 60_000) for _ in range(3)]
        assert len({answer.producer_id for answer in answers}) == 1
        assert [answer.producer_epoch for answer in answers] == [0, 1, 2]

    @pytest.mark.parametrize(
        ("transactional_id", "timeout_ms", "identity", "error"),
        [
            ("", 60_000, {}, "invalid_request"),
            ("tx", 0, {}, "invalid_transaction_timeout"),
            ("tx", 900_001, {}, "invalid_transaction_timeout"),
            ("tx", 60_000, {"producer_id": 5}, "invalid_request"),
            ("tx", 60_000, {"producer_epoch": 5}, "invalid_request"),
        ],
    )
    def test_what_does_not_fit_is_refused(self, broker, transactional_id, timeout_ms, identity, error):
        answer = broker.transactions.init_producer_id(transactional_id, timeout_ms, **identity)
        assert answer.error_code.name == error

    def test_a_producer_that_names_its_epoch_goes_on_unless_another_took_over(self, broker):
        first = broker.transactions.init_producer_id("tx", 60_000)
        identity = {"producer_id": first.producer_id, "producer_epoch": first.producer_epoch}
        assert broker.transactions.init_producer_id("tx", 60_000, **identity).producer_epoch == 1
        assert broker.transactions.init_producer_id("tx", 60_000, **identity).producer_epoch == 1
        broker.transactions.init_producer_id("tx", 60_000)
        assert broker.transactions.init_producer_id("tx", 60_000, **identity).error_code is ErrorCode.producer_fenced
        stranger = {"producer_id": 77, "producer_epoch": 0}
        assert broker.transactions.init_producer_id("tx", 60_000, **stranger).error_code is ErrorCode.producer_fenced

    def test_an_id_whose_epochs_ran_out_gets_another_producer_id(self, broker):
        log = TransactionLog(broker.cluster, broker.cluster)
        log.append(Transaction(transactional_id="tx", producer_id=7, producer_epoch=32_766, timeout_ms=60_000))
        broker.restart()
        identity = {"producer_id": 7, "producer_epoch": 32_766}
        answer = broker.transactions.init_producer_id("tx", 60_000, **identity)
        assert (answer.producer_id >= 1000, answer.producer_epoch) == (True, 0)
        assert broker.transactions.init_producer_id("tx", 60_000, **identity) == answer
        broker.restart()
        assert broker.transactions.get("tx").previous_producer_id == 7

    @pytest.mark.slow
    def test_an_id_without_use_for_a_week_is_removed(self, broker):
        first = broker.transactions.init_producer_id("tx", 60_000)
        broker.timers.advance(7 * 86_400_000 + 3_600_001)
        assert broker.transactions.get("tx") is None
        broker.restart()
        assert add(broker, first, AT) == "invalid_producer_id_mapping"


class TestEnds:
    def test_committed_records_are_below_the_last_stable_offset(self, broker):
        producer = begin(broker, AT)
        broker.produce(producer, 0, "paid")
        assert (lso_and_end(broker), broker.visible(0)) == ((0, 1), [])
        assert end(broker, producer, is_commit=True) == "none"
        assert (lso_and_end(broker), broker.visible(0)) == ((2, 2), ["paid"])
        assert status(broker) is TransactionStatus.COMPLETE_COMMIT

    def test_aborted_records_are_in_the_aborted_index(self, broker):
        producer = begin(broker, AT)
        broker.produce(producer, 0, "paid twice")
        assert end(broker, producer, is_commit=False) == "none"
        assert (lso_and_end(broker), broker.visible(0)) == ((2, 2), [])
        assert len(broker.cluster.get(USER_TOPIC, 0).aborted_transactions(0, 2)) == 1

    def test_an_end_may_be_repeated_but_not_turned_round(self, broker):
        producer = begin(broker, AT)
        end(broker, producer, is_commit=True)
        assert end(broker, producer, is_commit=True) == "none"
        assert end(broker, producer, is_commit=False) == "invalid_txn_state"

    def test_a_transaction_that_never_began_has_no_end(self, broker):
        producer = broker.transactions.init_producer_id("tx", 60_000)
        assert end(broker, producer, is_commit=True) == "invalid_txn_state"
        assert end(broker, producer, is_commit=True, transactional_id="other") == "invalid_producer_id_mapping"
        assert end(broker, producer, is_commit=True, transactional_id="") == "invalid_request"

    def test_one_open_too_long_is_aborted_and_its_producer_fenced(self, broker):
        producer = begin(broker, AT)
        broker.produce(producer, 0, "slow")
        broker.timers.advance(60_000)
        assert status(broker) is TransactionStatus.ONGOING
        broker.timers.advance(10_001)
        assert status(broker) is TransactionStatus.COMPLETE_ABORT
        assert end(broker, producer, is_commit=True) == "producer_fenced"
        assert broker.produce(producer, 0, "late") == "invalid_producer_epoch"

    def test_the_next_incarnation_aborts_what_the_one_before_left_open(self, broker):
        first = begin(broker, AT)
        broker.produce(first, 0, "left")
        second = begin(broker, AT)
        assert second.producer_epoch > first.producer_epoch
        assert add(broker, first, AT) == "producer_fenced"
        broker.produce(second, 0, "right")
        end(broker, second, is_commit=True)
        assert broker.visible(0) == ["right"]

    def test_a_batch_outside_of_an_open_transaction_is_refused(self, broker):
        producer = begin(broker, AT)
        assert broker.produce(producer, 1, "elsewhere") == "invalid_txn_state"
        end(broker, producer, is_commit=True)
        assert broker.produce(producer, 0, "late") == "invalid_txn_state"
        assert broker.produce(ProducerIdentity(5, 0), 0, "unknown") == "invalid_producer_id_mapping"


class TestDisk:
    def test_a_decision_that_cannot_be_written_is_none(self, broker):
        producer = begin(broker, AT)
        broker.produce(producer, 0, "paid")
        broker.cluster.disk.is_full = True
        assert end(broker, producer, is_commit=True) == "coordinator_not_available"
        assert broker.transactions.init_producer_id("tx", 60_000).error_code is ErrorCode.coordinator_not_available
        broker.cluster.disk.is_full = False
        assert status(broker) is TransactionStatus.ONGOING
        assert end(broker, producer, is_commit=False) == "none"

    @pytest.mark.parametrize("appends", [1, 2, 3])
    def test_what_was_decided_is_carried_out_after_a_kill(self, broker, appends):
        producer = begin(broker, AT, THERE)
        broker.produce(producer, 0, "here")
        broker.produce(producer, 1, "there")
        broker.cluster.disk.crash_at = appends
        with pytest.raises(CrashError):
            end(broker, producer, is_commit=True)
        broker.restart()
        assert (broker.visible(0), broker.visible(1)) == (["here"], ["there"])
        assert status(broker) is TransactionStatus.COMPLETE_COMMIT

    def test_a_transaction_is_still_open_after_a_kill(self, broker):
        producer = begin(broker, AT)
        broker.produce(producer, 0, "before")
        broker.restart()
        assert broker.produce(producer, 0, "after") == 1
        assert end(broker, producer, is_commit=True) == "none"
        assert broker.visible(0) == ["before", "after"]

    def test_markers_that_the_disk_refused_are_tried_again(self, broker, monkeypatch):
        producer = begin(broker, AT)
        broker.produce(producer, 0, "paid")
        log, disk = broker.cluster.get(USER_TOPIC, 0), broker.cluster.disk
        real_append = log.append_marker

        def refused(*arguments, **named):
            disk.is_full = True
            return real_append(*arguments, **named)

        monkeypatch.setattr(log, "append_marker", refused)
        assert end(broker, producer, is_commit=True) == "none"
        assert end(broker, producer, is_commit=True) == "concurrent_transactions"
        assert add(broker, producer, AT) == "concurrent_transactions"
        again = broker.transactions.init_producer_id("tx", 60_000)
        assert again.error_code is ErrorCode.concurrent_transactions
        monkeypatch.undo()
        disk.is_full = False
        broker.timers.advance(1_000)
        assert (status(broker), broker.visible(0)) == (TransactionStatus.COMPLETE_COMMIT, ["paid"])


class TestOffsets:
    def commit(self, broker, producer, offset):
        partition = TopicPartition(OFFSETS_TOPIC, broker.group_log.partition_for("g"))
        assert add(broker, producer, partition) == "none"
        codes = broker.commits.commit_in_transaction(
            NOBODY, {AT: CommittedOffset(offset=offset)}, ProducerIdentity(*_identity(producer))
        )
        assert codes == {AT: ErrorCode.none}

    def committed(self, broker):
        actual = broker.groups.offsets.get("g", AT)
        return None if actual is None else actual.offset

    @pytest.mark.parametrize("is_killed", [False, True])
    def test_they_count_when_the_transaction_commits(self, broker, is_killed):
        producer = begin(broker, AT)
        self.commit(broker, producer, 5)
        if is_killed:
            broker.restart()
        assert (self.committed(broker), broker.groups.offsets.waiting("g")) == (None, {AT})
        end(broker, producer, is_commit=True)
        assert (self.committed(broker), broker.groups.offsets.waiting("g")) == (5, set())
        broker.restart()
        assert self.committed(broker) == 5

    def test_they_do_not_when_it_aborts(self, broker):
        producer = begin(broker, AT)
        broker.commits.commit(NOBODY, {AT: CommittedOffset(offset=3)})
        self.commit(broker, producer, 5)
        end(broker, producer, is_commit=False)
        assert self.committed(broker) == 3
        broker.restart()
        assert (self.committed(broker), broker.groups.offsets.waiting("g")) == (3, set())

    @pytest.mark.parametrize("is_killed", [False, True])
    def test_a_newer_commit_outside_stands(self, broker, is_killed):
        producer = begin(broker, AT)
        self.commit(broker, producer, 5)
        broker.commits.commit(NOBODY, {AT: CommittedOffset(offset=9)})
        end(broker, producer, is_commit=True)
        if is_killed:
            broker.restart()
        assert self.committed(broker) == 9


def _identity(producer):
    return producer.producer_id, producer.producer_epoch
