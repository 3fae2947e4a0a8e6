"""Starting Spark: Java, Delta's jars, a session, the daemon of its Python workers."""
