"""UpdateFeatures: levels of features while the broker runs, as kafka-features sets them (KIP-584, KIP-778)."""

from typing import TYPE_CHECKING, Any, Final

from kio.schema.errors import ErrorCode

from sharelens.broker.errors import StorageError
from sharelens.broker.protocol.registry import ELEMENTS_MAX_AT_ONCE, Answer, RequestContext, handles
from sharelens.kafka_formats.messages.api_keys import ApiKey

if TYPE_CHECKING:
    from sharelens.broker.broker import Broker

UPGRADE: Final = 1
SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 2, 3
_FIRST_VERSION_WITHOUT_RESULTS: Final = 2


@handles(ApiKey.UPDATE_FEATURES, (0, 2), elements_max=ELEMENTS_MAX_AT_ONCE)
def update_features(broker: "Broker", request: Any, context: RequestContext) -> Answer:
    """All levels are set, or none; a level is effective before the answer is sent, and after a restart."""
    problems = {update.feature: _problem(broker, update) for update in request.feature_updates}
    refused = next((why for why in problems.values() if why is not None), None)
    error, why = (ErrorCode.none, None) if refused is None else (ErrorCode.invalid_update_version, refused)
    if refused is None and not getattr(request, "validate_only", False):
        try:
            broker.set_features({update.feature: update.max_version_level for update in request.feature_updates})
        except StorageError as failed:
            error, why = ErrorCode.feature_update_failed, str(failed)
    if context.api_version >= _FIRST_VERSION_WITHOUT_RESULTS or error is ErrorCode.feature_update_failed:
        return {"error_code": error, "error_message": why}
    # The older versions answer for each feature: beside a refused feature no other is set.
    results = [{"feature": name, "error_code": error, "error_message": problems[name] or why} for name in problems]
    return {"error_code": ErrorCode.none, "results": results}


def _problem(broker: "Broker", update: Any) -> str | None:
    name, level = update.feature, update.max_version_level
    levels = broker.features.supported.get(name)
    if levels is None:
        return f"feature {name} is not supported"
    if not levels.lowest <= level <= levels.highest:
        return f"{name} {level}: this broker has levels from {levels.lowest} to {levels.highest}"
    if level < broker.features.finalized()[name] and not _may_go_back(update):
        return f"{name} is at {broker.features.finalized()[name]}: level {level} needs a downgrade"
    return None


def _may_go_back(update: Any) -> bool:
    kind = getattr(update, "upgrade_type", SAFE_DOWNGRADE if getattr(update, "allow_downgrade", False) else UPGRADE)
    return kind in (SAFE_DOWNGRADE, UNSAFE_DOWNGRADE)
