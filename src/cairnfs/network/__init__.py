"""Blocking connections to other nodes, for whoever makes calls: the client and DataNodes."""
