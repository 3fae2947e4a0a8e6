"""The table of questions: name, help, parameters and function of each, declared once.

Surfaces derive from it: the command line makes a command of each question. `shared` has the parameters that several
questions take; `kinds` says what texts a parameter takes, `rules` which parameters exclude or need each other; `asking`
makes a function's arguments from values and calls it. The table names functions by module and name, so that reading it
imports no question.
"""
