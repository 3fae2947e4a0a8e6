"""DataFrame API: the functions of the pipeline as `DataFrame -> DataFrame`."""
