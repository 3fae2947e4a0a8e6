"""KIP-932's early design: share state as control records inside the user partition, SHARE_CHECKPOINT and SHARE_DELTA.

No Kafka ever shipped it. The draft shows these records as JSON, without types, versions and widths; what is assumed
about them stands beside each (docs/explanation/early-design.md).
"""
