"""A lake's tables in the catalogs of other engines, as views at the published cut.

`views`: which views there are; `spark`, `trino`, `duckdb`: their SQL; `registration`: into the catalog of a session.
"""
