"""Processes that ask questions: bounds of time and memory, and what follows when one ends."""

import asyncio
import os
import signal
import time

import pytest

from sharelens.pages.answers import PageError
from sharelens.pages.workers import MOST_WAITING, Workers

pytestmark = pytest.mark.slow


def sleep_long() -> None:
    time.sleep(60)


def fill_memory() -> int:
    return len(bytes(16 << 30))


def recurse() -> None:
    raise RecursionError("deep")


def end_process() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def refuse() -> None:
    raise PageError("no", is_usage=True)


def test_what_takes_too_long_is_ended_and_the_next_question_is_answered() -> None:
    with Workers(timeout_s=1, most_bytes=2 << 30) as workers:
        with pytest.raises(PageError, match=r"no answer within 1 s \(--timeout\)"):
            workers.ask_now(sleep_long)
        assert workers.ask_now(os.getpid) != os.getpid()


def test_memory_has_a_bound_and_the_process_lives_on() -> None:
    with Workers(timeout_s=60, most_bytes=4 << 30) as workers:
        with pytest.raises(MemoryError):
            workers.ask_now(fill_memory)
        with pytest.raises(PageError, match="the question's process ended"):
            workers.ask_now(end_process)
        assert workers.ask_now(os.getpid)
        with pytest.raises(PageError, match="^no$") as refusal:
            workers.ask_now(refuse)
        assert refusal.value.is_usage


def test_an_error_of_a_question_is_its_own_and_leaves_the_processes_alone() -> None:
    with Workers(timeout_s=60, most_bytes=4 << 30) as workers:
        pool = workers._pool
        with pytest.raises(RecursionError, match="^deep$"):
            workers.ask_now(recurse)
        assert workers._pool is pool


def test_processes_that_ended_while_idle_cost_no_answer() -> None:
    with Workers(timeout_s=60, most_bytes=4 << 30) as workers:
        before = {workers.ask_now(os.getpid) for _ in range(8)}
        for pid in before:
            os.kill(pid, signal.SIGKILL)
        assert workers.ask_now(os.getpid) not in before


def test_so_many_questions_wait_and_further_ones_are_refused() -> None:
    async def ask_many(workers: Workers) -> list[object]:
        questions = [workers.ask(os.getpid) for _ in range(MOST_WAITING + 3)]
        return await asyncio.gather(*questions, return_exceptions=True)

    with Workers(timeout_s=60, most_bytes=2 << 30) as workers:
        answers = asyncio.run(ask_many(workers))
    refused = [answer for answer in answers if isinstance(answer, PageError)]
    answered = [answer for answer in answers if isinstance(answer, int)]
    assert (len(answered), len(refused)) == (MOST_WAITING, 3), set(map(repr, answers))
    assert len(set(answered)) <= 2
    assert "questions wait already" in str(refused[0])
