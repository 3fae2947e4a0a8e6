"""Tables made of log directories while they are scanned; nothing is written."""
