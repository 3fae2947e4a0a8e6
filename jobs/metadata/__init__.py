"""The metadata log in the lake: its records without secrets, and the configuration and topic histories from them."""
