"""What the rows of the port come from, for those who show the origin itself: evidence folders and `status`."""

from sharelens.tables.lakes.published import PublishedLake
from sharelens.tables.logs.directories import LogDirectories

Origin = LogDirectories | PublishedLake
