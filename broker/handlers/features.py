"""UpdateFeatures: levels of features while the broker runs, as kafka-features sets them (KIP-584, KIP-778)."""

from typing import TYPE_CHECKING, Any, Final

from kio.schema.errors import ErrorCode

from broker.errors import StorageError
from broker.protocol.api_keys import ApiKey
from broker.protocol.registry import Answer, RequestContext, handles

if TYPE_CHECKING:
    from broker.broker import Broker

UPGRADE: Final = 1
SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 2, 3
_FIRST_VERSION_WITHOUT_RESULTS: Final = 2


@handles(ApiKey.UPDATE_FEATURES, (0, 2))
def update_features(broker: "Broker", request: Any, context: RequestContext) -> Answer:
    """All levels are set, or none; a level is in force with the answer, and after a restart."""
    problems = {asked.feature: _problem(broker, asked) for asked in request.feature_updates}
    refused = next((why for why in problems.values() if why is not None), None)
    error, why = (ErrorCode.none, None) if refused is None else (ErrorCode.invalid_update_version, refused)
    if refused is None and not getattr(request, "validate_only", False):
        try:
            broker.set_features({asked.feature: asked.max_version_level for asked in request.feature_updates})
        except StorageError as failed:
            error, why = ErrorCode.feature_update_failed, str(failed)
    if context.api_version >= _FIRST_VERSION_WITHOUT_RESULTS or error is ErrorCode.feature_update_failed:
        return {"error_code": error, "error_message": why}
    # The older versions tell it for each feature: one that would be fine beside a refused one is not set either.
    results = [{"feature": name, "error_code": error, "error_message": problems[name] or why} for name in problems]
    return {"error_code": ErrorCode.none, "results": results}


def _problem(broker: "Broker", asked: Any) -> str | None:
    name, level = asked.feature, asked.max_version_level
    levels = broker.features.supported.get(name)
    if levels is None:
        return f"feature {name} is not supported"
    if not levels.lowest <= level <= levels.highest:
        return f"{name} {level}: this broker has levels from {levels.lowest} to {levels.highest}"
    if level < broker.features.finalized()[name] and not _may_go_back(asked):
        return f"{name} is at {broker.features.finalized()[name]}: going back to {level} takes a downgrade"
    return None


def _may_go_back(asked: Any) -> bool:
    kind = getattr(asked, "upgrade_type", SAFE_DOWNGRADE if getattr(asked, "allow_downgrade", False) else UPGRADE)
    return kind in (SAFE_DOWNGRADE, UNSAFE_DOWNGRADE)
