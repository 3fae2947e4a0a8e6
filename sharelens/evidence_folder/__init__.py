"""Evidence of one incident as a folder that stands alone: content that any rerun makes again byte by byte, a manifest.

`content` writes the files, `manifest` lists their sources and hashes, `verify` checks them.
"""
