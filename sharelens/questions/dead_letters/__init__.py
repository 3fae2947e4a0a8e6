"""Records given up, their dead letters, and plans to send them again."""
