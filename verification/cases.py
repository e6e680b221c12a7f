"""Which constants TLC is run with: our rules as far as it can go, and every deviation from them."""

from __future__ import annotations

from verification.tlc import Case

# What must hold.  A forgetful case sees as the same what differs in TxIDs that can decide nothing
# any more; the others see everything, and check that this is harmless.  Without a bound on the
# operations all states are seen that there are.  What takes longest comes first.
OURS = (
    Case("path", inodes=3, forgetful=True),
    Case("data", inodes=3, forgetful=True),
    Case("path", inodes=2, every_name=True),
    Case("data", inodes=2, every_name=True),
    Case("local", inodes=2, every_name=True),
    Case("path", inodes=2, snapshots=1, forgetful=True, operations_max=7),
    Case("data", inodes=2, snapshots=1, forgetful=True, operations_max=7),
    Case("path", inodes=3, snapshots=1, forgetful=True, operations_max=6),
    Case("data", inodes=3, snapshots=1, forgetful=True, operations_max=6),
    Case("path", inodes=2, snapshots=2, operations_max=6),
    Case("data", inodes=2, snapshots=2, operations_max=6),
    Case("local", inodes=2, snapshots=1, operations_max=5),
)

# Comparisons that may go either way, since equal TxIDs are of one operation.
EQUAL = (
    Case("path", inodes=2, snapshots=1, operations_max=6, rule="own must be newer"),
    Case("path", inodes=2, snapshots=1, operations_max=6, rule="restored or equal"),
    Case("data", inodes=2, snapshots=1, operations_max=6, rule="above may be equal"),
)

# Deviations that TLC must catch: (kinds, rules), without and with snapshots.
_OF_TREES = (
    (("path", "data"), ("nearest ancestor", "no barrier", "removal drops the row")),
    (("data",), ("no capture", "capture with own TxID", "capture only another value")),
    (("data",), ("capture no removal", "creation is a barrier")),
)
_OF_SNAPSHOTS = (
    (("path", "data"), ("roll-back leaves no mark", "roll-back keeps the row of then")),
    (("path", "data"), ("roll-back with own TxID", "snapshot forgets above")),
    (("path", "data"), ("snapshot reads above now",)),
    (("path",), ("restored as a rename",)),
)

WRONG = tuple(
    Case(kind, inodes=2, snapshots=snapshots, rule=rule, is_caught=True)
    for snapshots, deviations in ((0, _OF_TREES), (1, _OF_SNAPSHOTS))
    for kinds, rules in deviations
    for rule in rules
    for kind in kinds
)

CASES = (*OURS, *EQUAL, *WRONG)
