"""A DataNode: keeps replicas of blocks on disks, and moves them over the network."""
