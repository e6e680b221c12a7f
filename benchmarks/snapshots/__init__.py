"""`make bench-snapshots`: the experiments on snapshots of thesis 000 and paper 003, and our bars.

Each part is a module and can be run alone: `python -m benchmarks.snapshots --part listing`.
"""
