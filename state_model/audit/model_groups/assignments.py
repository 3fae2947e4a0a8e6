"""Checks of a member's state that streams and consumer groups share."""

from state_model.audit.group_steps import GroupDifference
from state_model.audit.model_groups.history import ModelRecord
from state_model.audit.model_groups.shape import AnyHistory, differs
from state_model.audit.rule import Field


def unknown_state(history: AnyHistory, record: ModelRecord) -> GroupDifference | None:
    """A state of a member that no coordinator writes."""
    kind, state = history.kind, record.number("state")
    known_states = (*kind.settled, kind.unrevoked)
    if not record.is_a(kind.assignment) or state in known_states:
        return None
    return differs(Field.MEMBER_STATE, max(known_states), state)


def state_of_revocation(history: AnyHistory, record: ModelRecord) -> GroupDifference | None:
    """Something to give up in another state than the one for that, or that state without anything to give up."""
    kind = history.kind
    if not record.is_a(kind.assignment):
        return None
    is_pending = history.life.read_assignment(record).pending != kind.empty
    if is_pending == (record.number("state") == kind.unrevoked):
        return None
    return differs(Field.MEMBER_STATE, kind.unrevoked if is_pending else kind.settled[0], record.number("state"))


def members_without_target(history: AnyHistory, record: ModelRecord) -> GroupDifference | None:
    """A member without a target, or a target without a member, when the target assignment is complete."""
    life = history.life
    if not record.is_a(history.kind.target) or not life.is_whole or life.targets.keys() == life.members.keys():
        return None
    unmatched_records = [life.targets[name].record for name in life.targets.keys() - life.members.keys()]
    unmatched_records += [life.members[name] for name in life.members.keys() - life.targets.keys()]
    newest = max(unmatched_records, key=lambda other: other.log_offset)
    return differs(Field.MEMBERS, len(life.members), len(life.targets.keys() & life.members.keys()), newest)
