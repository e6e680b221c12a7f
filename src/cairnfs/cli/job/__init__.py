"""`cairn job`: bulk work on Spark."""
