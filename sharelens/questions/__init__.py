"""What can be asked: each question is written once, over evidence that is a lake's tables or a log read in place."""

from sharelens.light import leave_pandas_out

leave_pandas_out()
