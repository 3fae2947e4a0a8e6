"""The explorer: pages for a browser over the answers of questions (`sharelens explore`).

`address` and `composed` say which questions a page asks; `answers` asks them, in the processes of `workers`; `site`
answers requests, which `access` lets through; `html` renders. No page computes what no question does.
"""
