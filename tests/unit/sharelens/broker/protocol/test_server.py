"""Connections and their limits, over real sockets of this machine."""

import asyncio
import itertools

import pytest

from sharelens.broker.errors import FrameError
from sharelens.broker.protocol.authentication import Reply
from sharelens.broker.protocol.connection import READ_AHEAD_BYTES
from sharelens.broker.protocol.server import Limits, ListenError, Server

PATIENCE_S = 10


class Echo:
    """Answers a frame with itself. b"wait…" is answered when `gate` opens, b"bad" is no request, b"mute" no answer."""

    def __init__(self):
        self.gate = asyncio.Event()
        self.received_frames = []
        self.connections = []
        self.closed_ids = []

    def dispatch(self, frame, connection, client_host):
        self.received_frames.append(frame)
        if connection not in self.connections:
            self.connections.append(connection)
            connection.on_close(lambda: self.closed_ids.append(connection.id))
        if frame == b"bad":
            raise FrameError("no request")
        if frame == b"mute":
            return None
        if frame.startswith(b"wait"):
            return self._wait(frame)
        return [len(frame).to_bytes(4, "big"), frame]

    async def _wait(self, frame):
        await self.gate.wait()
        if frame == b"wait and fail":
            raise FrameError("no answer")
        return [len(frame).to_bytes(4, "big"), frame]


def framed(*frames):
    return b"".join(len(frame).to_bytes(4, "big") + frame for frame in frames)


async def receive(reader):
    size = int.from_bytes(await asyncio.wait_for(reader.readexactly(4), PATIENCE_S), "big")
    return await asyncio.wait_for(reader.readexactly(size), PATIENCE_S)


async def is_closed(reader):
    """Whether the other side closes, perhaps after an answer."""
    try:
        while await asyncio.wait_for(reader.read(1 << 16), PATIENCE_S):
            pass
    except ConnectionError:
        pass
    return True


async def until(condition):
    async with asyncio.timeout(PATIENCE_S):
        while not condition():
            await asyncio.sleep(0.001)


def served(scenario, security=None, **limits):
    """Run `scenario(echo, server, connect)` against a server on a port of its own."""

    async def run():
        echo = Echo()
        server = Server(echo, Limits(**limits))
        port = await server.listen("PLAINTEXT", "127.0.0.1", 0, security)
        writers = []

        async def connect():
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writers.append(writer)
            return reader, writer

        try:
            await scenario(echo, server, connect)
        finally:
            for writer in writers:
                writer.close()
            await server.stop()

    asyncio.run(run())


def test_requests_of_a_connection_are_answered_one_at_a_time_in_order():
    async def scenario(echo, server, connect):
        reader, writer = await connect()
        writer.write(framed(b"one", b"wait", b"two", b"mute", b"three"))
        assert await receive(reader) == b"one"
        await until(lambda: b"wait" in echo.received_frames)
        assert echo.received_frames == [b"one", b"wait"]
        echo.gate.set()
        assert [await receive(reader) for _ in range(3)] == [b"wait", b"two", b"three"]

    served(scenario)


def test_a_request_that_waits_holds_up_no_other_connection():
    async def scenario(echo, server, connect):
        _, slow = await connect()
        slow.write(framed(b"wait"))
        await until(lambda: echo.received_frames == [b"wait"])
        reader, writer = await connect()
        writer.write(framed(b"quick"))
        assert await receive(reader) == b"quick"

    served(scenario)


def test_a_frame_that_comes_byte_by_byte_is_whole():
    async def scenario(echo, server, connect):
        reader, writer = await connect()
        for byte in framed(b"slowly"):
            writer.write(bytes([byte]))
            await writer.drain()
            await asyncio.sleep(0)
        assert await receive(reader) == b"slowly"

    served(scenario)


@pytest.mark.parametrize(
    "raw", [b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff", b"\x00\x00\x00\x65", framed(b"bad"), framed(b"one", b"bad")]
)
def test_what_is_no_frame_closes_that_connection_alone(raw):
    async def scenario(echo, server, connect):
        good_reader, good_writer = await connect()
        reader, writer = await connect()
        writer.write(raw)
        assert await is_closed(reader)
        good_writer.write(framed(b"still here"))
        assert await receive(good_reader) == b"still here"
        await until(lambda: server.connections == 1)

    served(scenario, frame_bytes_max=100)


def test_an_answer_that_fails_closes_the_connection():
    async def scenario(echo, server, connect):
        reader, writer = await connect()
        writer.write(framed(b"wait and fail"))
        echo.gate.set()
        assert await is_closed(reader)

    served(scenario)


def test_half_frames_together_stay_within_the_limit():
    async def scenario(echo, server, connect):
        pairs = [await connect() for _ in range(4)]
        for size, (_, writer) in zip((30_000, 40_000, 20_000), pairs, strict=False):
            writer.write((1 << 20).to_bytes(4, "big") + bytes(size))
        await until(lambda: sum(connection.memory_bytes for connection in server._connections) == 90_012)
        pairs[3][1].write((1 << 20).to_bytes(4, "big") + bytes(20_000))
        assert await is_closed(pairs[1][0])
        await until(lambda: server.connections == 3)
        assert sum(connection.memory_bytes for connection in server._connections) == 70_012

    served(scenario, memory_bytes_max=100_000)


@pytest.mark.slow
def test_no_more_than_a_little_is_read_ahead_of_a_request_that_waits():
    async def scenario(echo, server, connect):
        reader, writer = await connect()
        writer.write(framed(b"wait", *[bytes(1 << 18)] * 64))
        await until(lambda: any(connection.memory_bytes >= READ_AHEAD_BYTES for connection in server._connections))
        (connection,) = server._connections
        for _ in range(50):
            await asyncio.sleep(0.001)
        assert connection.memory_bytes < READ_AHEAD_BYTES + (1 << 19)
        echo.gate.set()
        assert await receive(reader) == b"wait"
        for _ in range(64):
            assert len(await receive(reader)) == 1 << 18

    served(scenario)


@pytest.mark.slow
def test_a_client_that_sends_many_requests_at_once_gets_one_answer_in_a_turn():
    async def scenario(echo, server, connect):
        turns = []

        async def count_turns():
            while b"last" not in echo.received_frames:
                turns.append(len(echo.received_frames))
                await asyncio.sleep(0)

        reader, writer = await connect()
        writer.write(framed(*[b"x"] * 5000, b"last"))
        await count_turns()
        assert max(after - before for before, after in itertools.pairwise(turns)) <= 1
        for _ in range(5000):
            assert await receive(reader) == b"x"
        assert await receive(reader) == b"last"

    served(scenario)


def test_a_client_that_sends_many_requests_at_once_does_not_delay_another():
    async def scenario(echo, server, connect):
        _, busy_writer = await connect()
        reader, writer = await connect()
        busy_writer.write(framed(*[b"x"] * 5000))
        await until(lambda: echo.received_frames)
        writer.write(framed(b"other"))
        assert await receive(reader) == b"other"
        assert echo.received_frames.index(b"other") < 1000

    served(scenario)


@pytest.mark.slow
def test_nothing_is_read_from_a_client_that_does_not_read_its_answers():
    async def scenario(echo, server, connect):
        reader, writer = await connect()
        large = bytes(8 << 20)
        writer.write(framed(large))
        await until(lambda: any(connection.is_busy for connection in server._connections))
        (connection,) = server._connections
        writer.write(framed(*[bytes(1 << 10)] * 64))
        for _ in range(50):
            await asyncio.sleep(0.001)
        assert not connection._transport.is_reading()
        assert len(connection._buffer) == 0
        assert len(await receive(reader)) == len(large)
        for _ in range(64):
            assert len(await receive(reader)) == 1 << 10
        assert connection._transport.is_reading()

    served(scenario)


@pytest.mark.slow
def test_the_next_request_waits_until_the_client_has_read_the_last_answer():
    async def scenario(echo, server, connect):
        reader, writer = await connect()
        large = bytes(8 << 20)
        writer.write(framed(large))
        await until(lambda: any(connection.is_busy for connection in server._connections))
        writer.write(framed(b"next"))
        for _ in range(50):
            await asyncio.sleep(0.001)
        assert b"next" not in echo.received_frames
        assert len(await receive(reader)) == len(large)
        assert await receive(reader) == b"next"

    served(scenario)


def test_a_client_that_leaves_while_its_request_waits_is_noticed():
    async def scenario(echo, server, connect):
        _, writer = await connect()
        writer.write(framed(b"wait"))
        await until(lambda: echo.received_frames == [b"wait"])
        writer.close()
        await until(lambda: echo.closed_ids == [1])
        assert server.connections == 0
        output = []
        echo.connections[0].on_close(lambda: output.append("at once"))
        assert output == ["at once"]

    served(scenario)


@pytest.mark.slow
def test_silent_connections_are_closed_and_waiting_ones_are_not():
    async def scenario(echo, server, connect):
        silent_reader, _ = await connect()
        _, waiting_writer = await connect()
        waiting_writer.write(framed(b"wait"))
        assert await is_closed(silent_reader)
        assert server.connections == 1

    served(scenario, idle_ms=40)


def test_one_connection_too_many_is_closed_at_once():
    async def scenario(echo, server, connect):
        pairs = [await connect() for _ in range(2)]
        await until(lambda: server.connections == 2)
        reader, _ = await connect()
        assert await is_closed(reader)
        pairs[0][1].write(framed(b"served"))
        assert await receive(pairs[0][0]) == b"served"

    served(scenario, connections_max=2)


def test_one_host_gets_its_share_of_connections():
    async def scenario(echo, server, connect):
        await connect()
        await until(lambda: server.connections == 1)
        reader, _ = await connect()
        assert await is_closed(reader)

    served(scenario, connections_per_host_max=1)


def test_a_stop_gives_up_what_waits_and_closes_everything():
    async def scenario(echo, server, connect):
        waiting_reader, waiting_writer = await connect()
        idle_reader, _ = await connect()
        waiting_writer.write(framed(b"wait"))
        await until(lambda: echo.received_frames == [b"wait"])
        await server.stop()
        assert await is_closed(waiting_reader)
        assert await is_closed(idle_reader)
        assert server.connections == 0
        with pytest.raises(OSError, match="refused|Connect call failed"):
            await connect()

    served(scenario)


def test_an_address_in_use_is_refused_in_one_line():
    async def scenario(echo, server, connect):
        port = server._servers[0].sockets[0].getsockname()[1]
        other = Server(echo, Limits())
        with pytest.raises(
            ListenError, match=f"^can't listen on 127.0.0.1:{port}: Address already in use; give another address$"
        ):
            await other.listen("PLAINTEXT", "127.0.0.1", port)

    served(scenario)


class Gate:
    """Authenticates whoever says b"open", refuses b"fail", and answers the rest (authentication.ConnectionSecurity)."""

    frame_bytes_max = 10
    principal = "User:ANONYMOUS"

    def channel(self):
        return None

    def authenticator(self):
        return Gate()

    @property
    def is_complete(self):
        return self.principal != "User:ANONYMOUS"

    def receive(self, frame):
        if self.is_complete:
            return None
        if frame == b"fail":
            return Reply(pieces=(framed(b"refused"),), closes=True, delay_s=0.05)
        if frame == b"open":
            self.principal = "User:alice"
        return Reply(pieces=(framed(b"gate"),))


@pytest.mark.slow
def test_requests_reach_the_handlers_only_after_authentication():
    async def scenario(echo, server, connect):
        reader, writer = await connect()
        writer.write(framed(b"knock", b"open", b"hello"))
        assert [await receive(reader) for _ in range(3)] == [b"gate", b"gate", b"hello"]
        assert echo.received_frames == [b"hello"]
        assert echo.connections[0].principal == "User:alice"
        await asyncio.sleep(0.2)
        writer.write(framed(b"after the timeout"))
        assert await receive(reader) == b"after the timeout"

    served(scenario, Gate(), authentication_timeout_s=0.1)


@pytest.mark.slow
def test_the_answer_to_a_failure_is_held_back_and_later_requests_are_not_read():
    async def scenario(echo, server, connect):
        reader, writer = await connect()
        begun_s = asyncio.get_running_loop().time()
        writer.write(framed(b"fail", b"open", b"hello"))
        assert await receive(reader) == b"refused"
        assert asyncio.get_running_loop().time() - begun_s >= 0.05
        assert await reader.read() == b""
        assert echo.received_frames == []

    served(scenario, Gate())


def test_a_client_that_leaves_before_its_answer_is_no_problem():
    async def scenario(echo, server, connect):
        _, writer = await connect()
        writer.write(framed(b"fail"))
        await writer.drain()
        await until(lambda: server.connections == 1)
        writer.close()
        await until(lambda: server.connections == 0)
        reader, writer = await connect()
        writer.write(framed(b"open"))
        assert await receive(reader) == b"gate"

    served(scenario, Gate())


@pytest.mark.slow
@pytest.mark.parametrize("sends", [b"", framed(b"knock"), b"\0\0\0\x0aslow"])
def test_a_client_has_only_so_long_to_authenticate(sends):
    async def scenario(echo, server, connect):
        reader, writer = await connect()
        writer.write(sends)
        assert await is_closed(reader)

    served(scenario, Gate(), authentication_timeout_s=0.05)


@pytest.mark.slow
def test_a_client_that_sends_a_byte_now_and_then_gains_no_time():
    async def scenario(echo, server, connect):
        reader, writer = await connect()
        closing = asyncio.create_task(is_closed(reader))
        while not closing.done():
            writer.write(b"\0")
            await asyncio.sleep(0.01)
        assert echo.received_frames == []

    served(scenario, Gate(), authentication_timeout_s=0.1)


def test_frames_are_small_before_authentication():
    async def scenario(echo, server, connect):
        reader, writer = await connect()
        writer.write((11).to_bytes(4, "big"))
        assert await is_closed(reader)
        reader, writer = await connect()
        writer.write(framed(b"open", b"larger than ten bytes"))
        assert [await receive(reader) for _ in range(2)] == [b"gate", b"larger than ten bytes"]

    served(scenario, Gate())
