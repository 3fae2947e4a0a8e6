"""The Spark session, its executors and the Java that runs them."""
