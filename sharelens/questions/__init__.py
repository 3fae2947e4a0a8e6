"""What can be asked: each question is written once, over evidence that is a lake's tables or a log read in place."""

from state_model.columnar.startup import import_arrow_without_pandas

import_arrow_without_pandas()
