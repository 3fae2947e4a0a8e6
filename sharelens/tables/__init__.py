"""The evidence that questions read: lakes at a published cut, log directories, running clusters."""
