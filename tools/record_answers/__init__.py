"""Record what every question prints about the recorded logs, and compare two recordings.

    python -m tools.record_answers record --out FOLDER [--log NAME ...] [--source log-dir|lake|cluster ...] [--jobs N]
    python -m tools.record_answers compare BEFORE AFTER

A recording proves that a refactoring changes no answer: record before it and after it, and compare. The tool calls
`sharelens.cli.main` and knows no other module of the project, so the same files work in both checkouts. Run it with a
checkout as the current directory and with PYTHONPATH set to it.

A recording is a tree of files FOLDER/LOG/SOURCE/COMMAND/VARIANT.{text,json}, one for each call: the command line, the
exit code, stdout, stderr and the files that the command wrote. `general` in the place of a log has the calls that read
no log: help pages, runbooks, definitions of tables.
"""
