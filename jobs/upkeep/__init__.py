"""Upkeep of a lake: compaction, retention, removal of old files, upgrade."""
