"""Where an answer comes from: the source and the cut of a request, as plain values of a command line."""
