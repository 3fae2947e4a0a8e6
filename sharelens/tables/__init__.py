"""The evidence that questions read: lakes at a published cut, log directories, running clusters."""

from state_model.columnar.startup import import_arrow_without_pandas

import_arrow_without_pandas()
