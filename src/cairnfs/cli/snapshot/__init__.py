"""`cairn snapshot`: snapshots of directories, and what can be done with them."""
