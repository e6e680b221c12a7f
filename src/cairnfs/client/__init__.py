"""A client in Python alone: `cairnfs.connect` is the way in."""
