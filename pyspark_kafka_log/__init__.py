"""The Spark data source kafka_log."""
