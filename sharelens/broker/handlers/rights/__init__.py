"""Which right each API needs, and what a client without it sees; table.py has the table (KafkaApis, ControllerApis)."""
