"""The type by which numba knows a kernel inside another kernel."""

from typing import Any

from numba.core import types
from numba.core.datamodel.models import OpaqueModel
from numba.extending import register_model

unliteral: Any = types.unliteral


class KernelType(types.Dispatcher):
    """A kernel is compiled once for int64, not again for each constant that a call names: docs/adr/0010."""

    def get_call_type(self, context: Any, args: Any, kws: Any) -> Any:
        """The signature of a call with the types of its arguments, constants among them."""
        named = {name: unliteral(kind) for name, kind in dict(kws).items()}
        return super().get_call_type(context, tuple(map(unliteral, args)), named)


register_model(KernelType)(OpaqueModel)
