"""Evidence of one incident as a folder that stands alone: content that any rerun makes again byte by byte, a manifest.

`content` says which files there are and what they hold, `manifest` where they come from, `verify` whether that is true.
"""
