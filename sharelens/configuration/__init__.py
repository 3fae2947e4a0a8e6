"""The configuration of sharelens: conf/base, the environment, variables, flags."""
