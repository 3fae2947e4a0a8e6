"""The vocabulary for events of a record: the same in every answer, facts of the log only.

The log holds outcomes. A release, an expired lock and a member that left are written alike; that a record was handed
out is not written at all, and shows as a delivery count that grew by more than one.
"""

from collections.abc import Mapping

from state_model.share_records import DeliveryState, delivery_state_name

AVAILABLE_AGAIN = "available again (release, lock timeout or member left: not logged)"
NOT_DELIVERED = "available, not delivered yet"
ACKNOWLEDGED, ARCHIVED, DEAD_LETTERED = "acknowledged", "archived", "dead-lettered"
ARCHIVING = "archiving (the dead letter is not finished)"
ACQUIRED = "acquired (which no coordinator writes)"
UNKNOWN_STATE = "in delivery state {}, which this version does not know"
PASSED, RESET, LIFE_ENDED = "passed by the start offset", "offset reset", "life ended"
RECREATED, TOPIC_RECREATED = "deleted and created again", "topic deleted and created again"
IN_STATE: Mapping[int, str] = {
    DeliveryState.AVAILABLE: AVAILABLE_AGAIN,
    DeliveryState.ACQUIRED: ACQUIRED,
    DeliveryState.ACKNOWLEDGED: ACKNOWLEDGED,
    DeliveryState.ARCHIVING: ARCHIVING,
    DeliveryState.ARCHIVED: ARCHIVED,
}
NEVER_KNOWN = (
    "not in the log: which member had or has the record, whether it was processed; an acquired record and one never "
    "delivered look alike"
)


def in_state(delivery_state: int, delivery_count: int) -> str:
    """The words for a delivery state that was written for a record."""
    if delivery_state == DeliveryState.AVAILABLE and delivery_count <= 0:
        return NOT_DELIVERED
    if delivery_state not in IN_STATE:
        return UNKNOWN_STATE.format(delivery_state_name(delivery_state))
    return IN_STATE[delivery_state]


def attempts_not_logged(attempts: int) -> str:
    """The words for deliveries without an outcome in the log."""
    return f"{attempts} attempt{'s' if attempts != 1 else ''} not logged"
