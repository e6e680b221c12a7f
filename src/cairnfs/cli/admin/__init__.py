"""`cairn admin`: how a cluster is, and what its administrator does with it."""
