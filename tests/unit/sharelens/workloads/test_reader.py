"""A member of a consumer group: what it writes into the journal, with a client in memory."""

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from sharelens.workloads import reader
from sharelens.workloads.profiles import Kind
from sharelens.workloads.reader import Reader, ReaderOrders
from sharelens.workloads.values import Value, write_value


class Message:
    def __init__(self, partition, offset, error=None):
        self._place = partition, offset
        self._error = error

    def error(self):
        return self._error

    def topic(self):
        return "t"

    def partition(self):
        return self._place[0]

    def offset(self):
        return self._place[1]

    def value(self):
        return write_value(Value(id=self._place[1], kind=Kind.ORDINARY))


class Client:
    """It assigns two partitions at first, then answers `consume` with the batches of a test; the second is revoked."""

    def __init__(self, config, batches, commit_answers):
        self.config = config
        self._batches, self._commit_answers = iter(batches), iter(commit_answers)

    def subscribe(self, topics, on_assign, on_revoke, on_lost):
        self.topics, self._revoke, self._lost = topics, on_revoke, on_lost
        on_assign(self, [TopicPartition("t", 0), TopicPartition("t", 1)])

    def revoke(self, partition):
        self._revoke(self, [TopicPartition("t", partition)])

    def lose(self, partition):
        self._lost(self, [TopicPartition("t", partition)])

    def consume(self, count, timeout_s):
        batch = next(self._batches)
        return batch(self) if callable(batch) else batch

    def commit(self, offsets, asynchronous):
        answer = next(self._commit_answers)
        return answer(offsets)

    def close(self):
        self.revoke(0)


def refuse(offsets):
    raise KafkaException(KafkaError(KafkaError.UNKNOWN_MEMBER_ID))


def accept(offsets):
    return []


@pytest.fixture
def entries_of(monkeypatch):
    """The entries, without those of joining and leaving, and the client of a member that reads batches."""

    def run(batches, commit_answers=(), **orders):
        entries, clients = [], []

        def client(config):
            clients.append(Client(config, batches, commit_answers))
            return clients[-1]

        monkeypatch.setattr(reader, "Consumer", client)
        count = iter([False] * len(batches))
        member = ReaderOrders(bootstrap="b", group="g", subscription="t", member="m", **orders)
        Reader(member, lambda event, **fields: entries.append((event, fields))).run(lambda: next(count, True))
        assert [event for event, _ in entries[:2]] == ["assigned", "joined"]
        assert [event for event, _ in entries[-2:]] == ["revoked", "left"]
        return [(event, without_names(fields)) for event, fields in entries[2:-2]], clients[0]

    return run


def without_names(fields):
    return {name: value for name, value in fields.items() if name not in ("group", "member", "since_ms", "topic")}


def test_what_it_reads_is_committed_after_each_batch(entries_of):
    (read, commit), _ = entries_of([[Message(0, 4), Message(0, 5)]], [lambda offsets: offsets])
    assert read == ("read", {"partition": 0, "offsets": [4, 5], "ids": [4, 5]})
    assert commit == ("commit", {"partition": 0, "offset": 6, "outcome": "confirmed"})


@pytest.mark.parametrize(("answer", "error"), [(refuse, "UNKNOWN_MEMBER_ID"), (accept, "no answer")])
def test_a_commit_that_was_not_confirmed_has_failed(entries_of, answer, error):
    (_, commit), _ = entries_of([[Message(0, 4)]], [answer])
    assert commit == ("commit", {"partition": 0, "offset": 5, "outcome": "failed", "error": error})


@pytest.mark.parametrize("end", ["revoke", "lose"])
def test_records_of_a_partition_that_it_had_to_give_up_are_neither_read_nor_committed(entries_of, end):
    def batch(client):
        getattr(client, end)(1)
        return [Message(0, 4), Message(1, 7)]

    (change, read, commit), _ = entries_of([batch], [lambda offsets: offsets])
    assert change == ({"revoke": "revoked", "lose": "lost"}[end], {"partitions": [("t", 1)]})
    assert (read[1]["partition"], commit[1]["partition"]) == (0, 0)


def test_errors_are_problems_and_it_goes_on(entries_of, monkeypatch):
    monkeypatch.setattr(reader, "PAUSE_S", 0)
    unknown = KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART)

    def fail(client):
        raise KafkaException(unknown)

    entries, _ = entries_of([fail, [Message(0, 4, unknown)]])
    assert entries == [("problem", {"error": "UNKNOWN_TOPIC_OR_PART"})] * 2


def test_a_fatal_error_has_its_text(entries_of):
    fatal = KafkaError(KafkaError._FATAL, "The regular expression is not valid")
    ((_, problem),), _ = entries_of([[Message(0, 4, fatal)]])
    assert problem == {"error": "_FATAL", "fatal": "The regular expression is not valid"}


def test_static_and_classic_members_say_what_they_are(entries_of):
    _, client = entries_of([[]], instance_id="place-1")
    assert (client.config["group.protocol"], client.config["group.instance.id"]) == ("consumer", "place-1")
    _, client = entries_of([[]], protocol="classic")
    assert client.config["group.protocol"] == "classic"
    assert client.config.keys() >= {"session.timeout.ms", "heartbeat.interval.ms"}
