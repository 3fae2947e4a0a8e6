"""ShareFetch and ShareAcknowledge as clients send them, through the request and response classes of each version."""

import asyncio
import uuid
from datetime import timedelta

import pytest
from kio.index import load_request_schema, load_response_schema
from kio.schema.errors import ErrorCode

from sharelens.broker.handlers import share
from sharelens.broker.protocol.registry import RequestContext, registered
from sharelens.kafka_formats.messages.api_keys import ApiKey
from state_model import answers
from state_model.uuids import uuid_bytes
from tests.broker_parts.broker_messages import build
from tests.logs.share_partitions import ACCEPT, LOCK_MS, RELEASE, RENEW, TOPIC_ID, BatchLog, House

TOPIC = uuid.UUID(bytes=uuid_bytes(TOPIC_ID))
UNKNOWN = uuid.UUID(int=1)


class Connection:
    listener = "PLAINTEXT"

    def __init__(self, number):
        self.id = number
        self.callbacks = []

    def on_close(self, callback):
        self.callbacks.append(callback)

    def close(self):
        for callback in self.callbacks:
            callback()


class Server:
    """What the handlers see of a broker, and clients that call them."""

    node_id = 1
    share_version = 1

    def __init__(self, **settings):
        self.house = House(**settings)
        self.share_partitions = self.house.shares
        self.timers = self.house.timers
        self.connections = {}

    def advertised(self, listener):
        return {"PLAINTEXT": ("127.0.0.1", 9092)}[listener]

    def connection(self, number):
        return self.connections.setdefault(number, Connection(number))

    def send(self, api_key, version, connection, **fields):
        """An answer, or what waits for it."""
        schema = load_request_schema(api_key, version)
        context = RequestContext(
            api_key=api_key,
            api_version=version,
            client_id="c",
            client_host="/127.0.0.1",
            connection=self.connection(connection),
        )
        api = registered()[api_key]
        assert api.has(version)
        return api.handler(self, build(schema, fields), context)

    def fetch_later(self, epoch, partitions=(), *, version=2, connection=1, topic_id=TOPIC, forgotten=(), **fields):
        """`partitions` are numbers, or pairs of a number and its (first, last, types)."""
        defaults = {
            "group_id": "g",
            "member_id": "m",
            "max_wait": timedelta(0),
            "min_bytes": 1,
            "max_bytes": 1 << 20,
            "max_records": 500,
            "batch_size": 500,
        }
        return self.send(
            ApiKey.SHARE_FETCH,
            version,
            connection,
            **(defaults | fields),
            share_session_epoch=epoch,
            topics=topics(partitions, topic_id),
            forgotten_topics_data=[{"topic_id": TOPIC, "partitions": forgotten}] if forgotten else [],
        )

    def fetch(self, *args, **options):
        answer = self.fetch_later(*args, **options)
        return build(load_response_schema(ApiKey.SHARE_FETCH, options.get("version", 2)), answer)

    def acknowledge(self, epoch, partitions=(), *, version=2, topic_id=TOPIC, connection=1, **fields):
        answer = self.send(
            ApiKey.SHARE_ACKNOWLEDGE,
            version,
            connection,
            **({"group_id": "g", "member_id": "m"} | fields),
            share_session_epoch=epoch,
            topics=topics(partitions, topic_id),
        )
        return build(load_response_schema(ApiKey.SHARE_ACKNOWLEDGE, version), answer)


def topics(partitions, topic_id):
    if not partitions:
        return []
    parts = []
    for part in partitions:
        number, *batches = part if isinstance(part, tuple) else (part,)
        parts.append(
            {
                "partition_index": number,
                "acknowledgement_batches": [
                    {"first_offset": first, "last_offset": last, "acknowledge_types": [int(kind) for kind in types]}
                    for first, last, types in batches
                ],
            }
        )
    return [{"topic_id": topic_id, "partitions": parts}]


def partitions(answer):
    return {part.partition_index: part for topic in answer.responses for part in topic.partitions}


def ranges(answer):
    return {
        number: [(each.first_offset, each.last_offset, each.delivery_count) for each in part.acquired_records]
        for number, part in partitions(answer).items()
    }


@pytest.fixture
def server():
    server = Server()
    for log in server.house.logs.values():
        log.append(4)
    return server


class TestFetch:
    @pytest.mark.parametrize("version", [1, 2])
    def test_records_come_as_they_lie_in_the_log_with_the_time_they_are_locked(self, server, version):
        answer = server.fetch(0, [0], version=version)
        assert answer.error_code is ErrorCode.none
        assert answer.acquisition_lock_timeout == timedelta(milliseconds=LOCK_MS)
        assert ranges(answer) == {0: [(0, 3, 1)]}
        assert partitions(answer)[0].records == b"0-3;"
        assert answer.node_endpoints == ()

    def test_the_first_answer_names_all_partitions_later_ones_only_those_with_news(self, server):
        server.house.logs[1] = BatchLog(partition=1)
        assert ranges(server.fetch(0, [0, 1])) == {0: [(0, 3, 1)], 1: []}
        assert ranges(server.fetch(1)) == {}
        server.house.logs[1].append(2)
        assert ranges(server.fetch(2)) == {1: [(0, 1, 1)]}

    def test_forgotten_partitions_are_left_alone(self, server):
        assert ranges(server.fetch(0, [0])) == {0: [(0, 3, 1)]}
        assert ranges(server.fetch(1, [1], forgotten=[0, 1])) == {}

    def test_record_limit_mode_is_kept_to(self, server):
        assert ranges(server.fetch(0, [0], max_records=2, share_acquire_mode=1)) == {0: [(0, 1, 1)]}

    def test_unknown_partitions_have_an_error(self, server):
        assert partitions(server.fetch(0, [9]))[9].error_code is ErrorCode.unknown_topic_or_partition
        assert partitions(server.fetch(0, [0], topic_id=UNKNOWN))[0].error_code is ErrorCode.unknown_topic_id

    def test_acknowledgements_count_before_records_are_acquired(self, server):
        server.fetch(0, [0])
        answer = server.fetch(1, [(0, (0, 1, [ACCEPT]), (2, 3, [RELEASE]))])
        assert ranges(answer) == {0: [(2, 3, 2)]}
        assert partitions(answer)[0].acknowledge_error_code == 0

    def test_an_error_of_acknowledging_does_not_keep_records_back(self, server):
        server.fetch(0, [1])
        answer = server.fetch(1, [(0, (0, 9, [ACCEPT])), (1, (0, 9, [ACCEPT]))])
        output = {number: part.acknowledge_error_code for number, part in partitions(answer).items()}
        assert output == {0: ErrorCode.unknown_topic_or_partition, 1: ErrorCode.invalid_request}
        assert ranges(answer) == {0: [(0, 3, 1)], 1: []}

    def test_a_fenced_partition_names_the_current_leader(self, server):
        server.fetch(0, [0])
        server.house.persister.refuses = answers.ErrorCode.FENCED_STATE_EPOCH
        answer = server.fetch(1, [(0, (0, 3, [ACCEPT]))], max_records=0)
        assert partitions(answer)[0].acknowledge_error_code == ErrorCode.not_leader_or_follower
        assert (partitions(answer)[0].current_leader.leader_id, answer.node_endpoints[0].port) == (1, 9092)


class TestWaiting:
    def run(self, server, act, wait_ms=500, **fields):
        """Fetches with a wait; `act` happens meanwhile. Returns the answer's ranges and how long it took."""

        async def scenario():
            server.fetch(0, [0], max_records=500)
            outcome = server.fetch_later(1, max_wait=timedelta(milliseconds=wait_ms), **fields)
            task = asyncio.ensure_future(outcome)
            began_ms = server.timers.now_ms()
            await asyncio.sleep(0)
            act()
            for _ in range(5):
                await asyncio.sleep(0)
            return build(load_response_schema(ApiKey.SHARE_FETCH, 2), await task), server.timers.now_ms() - began_ms

        answer, waited_ms = asyncio.run(scenario())
        return ranges(answer), waited_ms

    def test_an_append_ends_it(self, server):
        assert self.run(server, lambda: server.house.logs[0].append(2)) == ({0: [(4, 5, 1)]}, 0)

    def test_time_ends_it(self, server):
        assert self.run(server, lambda: server.timers.advance(500)) == ({}, 500)

    def test_an_append_before_it_began_to_wait_is_not_missed(self, server):
        async def scenario():
            server.fetch(0, [0])
            outcome = server.fetch_later(1, max_wait=timedelta(milliseconds=500))
            server.house.logs[0].append(1)
            return await outcome

        answer = build(load_response_schema(ApiKey.SHARE_FETCH, 2), asyncio.run(scenario()))
        assert ranges(answer) == {0: [(4, 4, 1)]}

    def test_too_few_bytes_are_sent_after_the_wait(self, server):
        def act():
            server.house.logs[0].append(1)
            server.timers.advance(500)

        assert self.run(server, act, min_bytes=1000) == ({0: [(4, 4, 1)]}, 500)

    def test_a_connection_that_goes_ends_it_without_taking_records(self, server):
        server.fetch(0, [0], connection=2, member_id="other")

        def act():
            server.connection(1).close()
            server.house.logs[0].append(2)

        assert self.run(server, act) == ({}, 0)

    def test_released_records_end_it(self, server):
        server.fetch(0, [0], connection=2, member_id="other")
        assert self.run(server, lambda: server.connection(2).close()) == ({0: [(0, 3, 2)]}, 0)


class TestSessions:
    def test_epochs(self, server):
        assert server.fetch(1, [0]).error_code is ErrorCode.share_session_not_found
        server.fetch(0, [0])
        assert server.fetch(2, [0]).error_code is ErrorCode.invalid_share_session_epoch
        assert server.fetch(1).error_code is ErrorCode.none

    def test_the_first_fetch_has_nothing_to_acknowledge(self, server):
        assert server.fetch(0, [(0, (0, 0, [ACCEPT]))]).error_code is ErrorCode.invalid_request

    def test_a_fetch_may_close_its_session_and_acknowledge_with_it(self, server):
        server.fetch(0, [0])
        answer = server.fetch(-1, [(0, (0, 1, [ACCEPT]))])
        assert partitions(answer)[0].acknowledge_error_code == 0
        assert server.fetch(1).error_code is ErrorCode.share_session_not_found
        assert ranges(server.fetch(0, [0])) == {0: [(2, 3, 2)]}

    def test_closing_what_is_not_open(self, server):
        assert server.fetch(-1).error_code is ErrorCode.share_session_not_found
        assert server.acknowledge(-1).error_code is ErrorCode.share_session_not_found

    def test_too_many_sessions_are_refused_after_the_wait(self):
        server = Server(max_sessions=1)
        server.fetch(0, [0])

        async def scenario():
            outcome = server.fetch_later(0, [0], member_id="other", max_wait=timedelta(milliseconds=300))
            task = asyncio.ensure_future(outcome)
            await asyncio.sleep(0)
            server.timers.advance(299)
            await asyncio.sleep(0)
            assert not task.done()
            server.timers.advance(1)
            return await task

        assert asyncio.run(scenario())["error_code"] == ErrorCode.share_session_limit_reached

    def test_a_session_dies_with_its_connection(self, server):
        server.fetch(0, [0])
        server.connection(1).close()
        assert server.fetch(1, connection=2).error_code is ErrorCode.share_session_not_found


class TestAcknowledge:
    @pytest.mark.parametrize("version", [1, 2])
    def test_acknowledgements_move_the_session_on(self, server, version):
        server.fetch(0, [0])
        answer = server.acknowledge(1, [(0, (0, 3, [ACCEPT]))], version=version)
        assert {number: part.error_code for number, part in partitions(answer).items()} == {0: ErrorCode.none}
        assert server.acknowledge(1).error_code is ErrorCode.invalid_share_session_epoch
        assert server.acknowledge(2, version=version).error_code is ErrorCode.none

    def test_an_initial_epoch_is_invalid(self, server):
        assert server.acknowledge(0).error_code is ErrorCode.invalid_share_session_epoch

    def test_the_final_epoch_gives_back_the_rest(self, server):
        server.fetch(0, [0])
        assert server.acknowledge(-1, [(0, (0, 0, [ACCEPT]))]).error_code is ErrorCode.none
        assert ranges(server.fetch(0, [0])) == {0: [(1, 3, 2)]}

    @pytest.mark.parametrize(
        "batches",
        [
            [(2, 1, [ACCEPT])],
            [(2, 3, [ACCEPT]), (0, 1, [ACCEPT])],
            [(0, 3, [])],
            [(0, 3, [ACCEPT, ACCEPT])],
            [(0, 3, [5])],
            [(0, 3, [-1])],
            [(0, 3, [RENEW])],
        ],
        ids=["backwards", "out of order", "no types", "too few types", "unknown", "negative", "not announced"],
    )
    def test_batches_that_make_no_sense_are_an_invalid_request_of_their_partition(self, server, batches):
        server.fetch(0, [0, 1])
        answer = server.acknowledge(1, [(0, *batches), (1, (0, 3, [ACCEPT]))])
        output = {number: part.error_code for number, part in partitions(answer).items()}
        assert output == {0: ErrorCode.invalid_request, 1: ErrorCode.none}

    def test_unknown_partitions_have_an_error(self, server):
        server.fetch(0, [0])
        acknowledged = [(9, (0, 0, [ACCEPT]))]
        assert partitions(server.acknowledge(1, acknowledged))[9].error_code is ErrorCode.unknown_topic_or_partition
        answer = server.acknowledge(2, [(0, (0, 0, [ACCEPT]))], topic_id=UNKNOWN)
        assert partitions(answer)[0].error_code is ErrorCode.unknown_topic_id


class TestRenewal:
    def test_a_renewing_fetch_takes_no_records(self, server):
        server.fetch(0, [0], max_records=4)
        server.timers.advance(LOCK_MS - 1)
        no_records = {"max_bytes": 0, "min_bytes": 0, "max_records": 0}
        answer = server.fetch(1, [(0, (0, 3, [RENEW]))], is_renew_ack=True, **no_records)
        assert partitions(answer)[0].acknowledge_error_code == 0
        server.timers.advance(LOCK_MS - 1)
        assert ranges(server.fetch(2)) == {}

    @pytest.mark.parametrize("field", ["max_bytes", "min_bytes", "max_records", "max_wait"])
    def test_it_must_not_ask_for_any(self, server, field):
        server.fetch(0, [0])
        limits = {"max_bytes": 0, "min_bytes": 0, "max_records": 0, "max_wait": timedelta(0)}
        limits[field] = timedelta(seconds=1) if field == "max_wait" else 1
        assert server.fetch(1, is_renew_ack=True, **limits).error_code is ErrorCode.invalid_request

    def test_an_acknowledgement_may_renew_where_the_group_allows_it(self, server):
        server.fetch(0, [0])
        answer = server.acknowledge(1, [(0, (0, 3, [RENEW]))], is_renew_ack=True)
        assert partitions(answer)[0].error_code is ErrorCode.none

    def test_a_group_may_refuse_renewals(self):
        server = Server(renew_acknowledge_enable=False)
        server.house.logs[0].append(4)
        server.fetch(0, [0])
        answer = server.acknowledge(1, [(0, (0, 3, [RENEW]))], is_renew_ack=True)
        assert partitions(answer)[0].error_code is ErrorCode.invalid_request

    def test_version_one_knows_no_renewal(self, server):
        server.fetch(0, [0], version=1)
        answer = server.acknowledge(1, [(0, (0, 3, [RENEW]))], version=1)
        assert partitions(answer)[0].error_code is ErrorCode.invalid_request


class TestRefusals:
    def test_without_the_feature_nothing_is_answered(self, server):
        server.share_version = 0
        assert server.fetch(0, [0]).error_code is ErrorCode.unsupported_version
        assert server.acknowledge(1).error_code is ErrorCode.unsupported_version

    @pytest.mark.parametrize(
        "names", [{"group_id": ""}, {"group_id": None}, {"member_id": ""}, {"member_id": None}, {"member_id": "m" * 37}]
    )
    def test_groups_and_members_have_names(self, server, names):
        assert server.fetch(0, [0], **names).error_code is ErrorCode.invalid_request
        assert server.acknowledge(1, **names).error_code is ErrorCode.invalid_request

    def test_there_are_two_acquire_modes(self, server):
        assert server.fetch(0, [0], share_acquire_mode=2).error_code is ErrorCode.invalid_request


def test_both_are_answered_in_versions_one_and_two():
    for handler, key in ((share.share_fetch, ApiKey.SHARE_FETCH), (share.share_acknowledge, ApiKey.SHARE_ACKNOWLEDGE)):
        api = registered()[key]
        assert (api.handler, api.first_version, api.last_version) == (handler, 1, 2)
