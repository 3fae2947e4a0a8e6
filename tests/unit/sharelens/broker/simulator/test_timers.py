"""Virtual time."""

from hypothesis import given
from hypothesis import strategies as st

from sharelens.broker.simulator.timers import Clock, VirtualTimers


@given(st.lists(st.integers(0, 20), max_size=30))
def test_timers_fire_in_the_order_of_their_time_and_then_of_their_setting(delays):
    clock = Clock(1_000)
    timers, fired = VirtualTimers(clock), []
    for number, delay_ms in enumerate(delays):
        timers.after_ms(delay_ms, lambda number=number: fired.append((timers.now_ms(), number)))
    clock.run_while(lambda: True)
    assert fired == sorted((1_000 + delay_ms, number) for number, delay_ms in enumerate(delays))


def test_a_timer_that_is_cancelled_or_whose_owner_has_stopped_does_not_fire():
    clock, fired = Clock(0), []
    staying, stopped = VirtualTimers(clock), VirtualTimers(clock)
    staying.after_ms(5, lambda: fired.append("cancelled")).cancel()
    stopped.after_ms(6, lambda: fired.append("stopped"))
    staying.after_ms(7, lambda: fired.append("stays"))
    stopped.stop()
    clock.run_while(lambda: True)
    assert (fired, clock.now_ms) == (["stays"], 7)


def test_time_does_not_pass_inside_a_callback_and_can_stop():
    clock = Clock(0)
    timers, fired = VirtualTimers(clock), []

    def again():
        fired.append(clock.now_ms)
        timers.after_ms(0, lambda: fired.append("at once"))
        timers.after_ms(10, again)

    again()
    clock.run_while(lambda: len(fired) < 5)
    assert fired == [0, "at once", 10, "at once", 20]
