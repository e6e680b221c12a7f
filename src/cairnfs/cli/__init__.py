"""The command line, `cairn`."""
