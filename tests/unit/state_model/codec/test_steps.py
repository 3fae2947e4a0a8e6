"""Work in steps."""

from state_model.codec.steps import STEP_ELEMENTS, StepCounter, run


def three_steps():
    yield
    yield
    return "result"


def test_the_result_of_all_steps_is_returned():
    assert run(three_steps()) == "result"


def test_a_pause_is_due_after_a_bounded_number_of_elements():
    counter = StepCounter()
    assert [index for index in range(1, 3 * STEP_ELEMENTS + 1) if counter.is_pause_due()] == [
        STEP_ELEMENTS,
        2 * STEP_ELEMENTS,
        3 * STEP_ELEMENTS,
    ]
