"""DescribeUserScramCredentials 0, AlterUserScramCredentials 0, and DescribeClientQuotas, which has nothing to describe.

Rules: ScramControlManager and ScramImage; kafka-configs asks for quotas of users before it describes them.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final, Protocol

from kio.schema.errors import ErrorCode

from sharelens.broker.errors import StorageError
from sharelens.broker.protocol.registry import ELEMENTS_MAX_AT_ONCE, Answer, RequestContext, handles
from sharelens.broker.security.authentication.scram import HASHES, ITERATIONS_MAX, ITERATIONS_MIN, credential_of_salted
from sharelens.broker.storage.catalog import Catalog
from sharelens.broker.storage.scram_credentials import ScramCredential, ScramUsers
from sharelens.kafka_formats.messages.api_keys import ApiKey

MECHANISMS: Final = dict(enumerate(HASHES, 1))
"""Names of mechanisms by their number in requests (ScramMechanism)."""
Credentials = Mapping[str, ScramCredential]
"""The credentials of one user by mechanism."""
_NUMBERS: Final = {name: number for number, name in MECHANISMS.items()}


class UserServer(Protocol):
    """The parts of the broker that these handlers use."""

    @property
    def catalog(self) -> Catalog:
        """What survives a restart."""


class _RefusedUser(Exception):
    def __init__(self, code: ErrorCode, message: str | None) -> None:
        super().__init__(message)
        self.code, self.message = code, message


@handles(ApiKey.DESCRIBE_CLIENT_QUOTAS, (0, 1))
def describe_client_quotas(broker: UserServer, request: Any, context: RequestContext) -> Answer:
    """No quotas."""
    return {"error_code": ErrorCode.none, "error_message": None, "entries": []}


@handles(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, (0, 0), elements_max=ELEMENTS_MAX_AT_ONCE)
def describe_user_scram_credentials(broker: UserServer, request: Any, context: RequestContext) -> Answer:
    """Mechanisms and iterations of the named users, or of all; a user that is named twice is refused once."""
    users = broker.catalog.scram_users
    counts = Counter([user.name for user in request.users or ()] or list(users))
    results = [_described(users, name, count) for name, count in counts.items()]
    return {"error_code": ErrorCode.none, "error_message": "", "results": results}


def _described(users: ScramUsers, name: str, count: int) -> dict[str, Any]:
    answer = {"user": name, "error_message": "", "credential_infos": []}
    if count > 1:
        message = f"Cannot describe SCRAM credentials for the same user twice in a single request: {name}"
        return answer | {"error_code": ErrorCode.duplicate_resource, "error_message": message}
    if name not in users:
        message = f"Attempt to describe a user credential that does not exist: {name}"
        return answer | {"error_code": ErrorCode.resource_not_found, "error_message": message}
    infos = [
        {"mechanism": _NUMBERS[mechanism], "iterations": credential.iterations}
        for mechanism, credential in users[name].items()
    ]
    return answer | {"error_code": ErrorCode.none, "credential_infos": infos}


@handles(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, (0, 0), elements_max=ELEMENTS_MAX_AT_ONCE)
def alter_user_scram_credentials(broker: UserServer, request: Any, context: RequestContext) -> Answer:
    """Each user's change is made or refused; all changes of a request are durable together before the answer."""
    deletions = [(change, _without) for change in request.deletions]
    changes = [*deletions, *((change, _with) for change in request.upsertions)]
    counts = Counter(change.name for change, _ in changes)
    users: dict[str, Credentials] = dict(broker.catalog.scram_users)
    outcomes: dict[str, tuple[ErrorCode, str | None]] = {}
    for change, changed in changes:
        try:
            _check_change(change, counts[change.name])
            users[change.name] = changed(users.get(change.name, {}), change)
            outcomes[change.name] = (ErrorCode.none, None)
        except _RefusedUser as refused:
            outcomes[change.name] = (refused.code, refused.message)
    if ErrorCode.none in {code for code, _ in outcomes.values()}:
        try:
            broker.catalog.set_scram_users({name: credentials for name, credentials in users.items() if credentials})
        except StorageError as error:
            failure = (ErrorCode.kafka_storage_error, str(error))
            outcomes = {
                name: failure if user_outcome[0] is ErrorCode.none else user_outcome
                for name, user_outcome in outcomes.items()
            }
    # As Kafka does: the changes first, then what was refused.
    in_order = sorted(outcomes.items(), key=lambda outcome: outcome[1][0] is not ErrorCode.none)
    results = [{"user": name, "error_code": code, "error_message": text} for name, (code, text) in in_order]
    return {"results": results}


def _check_change(change: Any, count: int) -> None:
    if count > 1:
        raise _RefusedUser(
            ErrorCode.duplicate_resource, "A user credential cannot be altered twice in the same request"
        )
    if not change.name:
        raise _RefusedUser(ErrorCode.unacceptable_credential, "Username must not be empty")
    if change.mechanism not in MECHANISMS:
        raise _RefusedUser(ErrorCode.unsupported_sasl_mechanism, "Unknown SCRAM mechanism")


def _without(credentials: Credentials, deletion: Any) -> Credentials:
    """The credentials of a user after a deletion. Raises _RefusedUser."""
    mechanism = MECHANISMS[deletion.mechanism]
    if mechanism not in credentials:
        raise _RefusedUser(ErrorCode.resource_not_found, "Attempt to delete a user credential that does not exist")
    return {name: credential for name, credential in credentials.items() if name != mechanism}


def _with(credentials: Credentials, change: Any) -> Credentials:
    """The credentials of a user after an upsertion. Raises _RefusedUser."""
    mechanism = MECHANISMS[change.mechanism]
    if change.iterations < ITERATIONS_MIN:
        raise _RefusedUser(ErrorCode.unacceptable_credential, "Too few iterations")
    if change.iterations > ITERATIONS_MAX:
        raise _RefusedUser(ErrorCode.unacceptable_credential, "Too many iterations")
    try:
        credential = credential_of_salted(mechanism, change.salted_password, change.salt, change.iterations)
    except ValueError:
        raise _RefusedUser(ErrorCode.unknown_server_error, None) from None
    return {**credentials, mechanism: credential}
