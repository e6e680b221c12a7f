----------------------------- MODULE Attributes -----------------------------
(***************************************************************************)
(* One attribute of a file system's inodes, kept in two ways at once.      *)
(*                                                                         *)
(* `tree` is what CairnFS stores: rows that an operation writes in         *)
(* constant number, from which a value is resolved on the way from the     *)
(* root to an inode.  `expected` is what a magician leaves behind, who at  *)
(* each operation rewrites the inode and everything below it.  Agreement   *)
(* says that nobody can tell the two apart, also inside snapshots, which   *)
(* are brought back by roll-backs and copied by clones.                    *)
(*                                                                         *)
(* Attributes do not look at each other, so one is enough; its Kind is a   *)
(* constant.  A file is a directory that nothing is created in.            *)
(***************************************************************************)
EXTENDS Naturals, FiniteSets, TLC

CONSTANTS
    Root, Nowhere,  \* the inode that is always there; the parent of nobody's child
    Inodes,         \* the others, as many as may be there at once
    Names,          \* numbers; an entry of a directory has one
    EveryName,      \* whether all names are tried, or just any that is free
    None, Values,   \* no value; the values that there are
    Slots,          \* for so many snapshots is there room
    Kind,           \* "local", "path" (follows the path), "data" (stays with the data)
    Forgetful,      \* whether states count as the same that differ in what is past, see below
    OperationsMax,  \* so many are followed by others; 0: any number
    Rule            \* "ours", or the name of a deviation from our rules

ASSUME Kind \in {"local", "path", "data"}

VARIABLES
    tree,      \* of each inode there is: its place, TxIDs and row
    expected,  \* of each inode there is: the magician's value
    taken,     \* of each slot in use: a snapshot, with the magician's values of then
    clock,     \* the TxID of the last operation
    did        \* the last operation itself, for whoever reads a counterexample

vars == <<tree, expected, taken, clock, did>>

Is(deviation) == Rule = deviation
Now == clock + 1
Max(x, y) == IF x > y THEN x ELSE y
Restrict(f, S) == [x \in S |-> f[x]]

-----------------------------------------------------------------------------
(* Trees: functions from inodes to [parent, name, renamed, restored, row]. *)

Live == DOMAIN tree

RECURSIVE Above(_, _)
Above(t, i) == {i} \cup IF t[i].parent \in DOMAIN t THEN Above(t, t[i].parent) ELSE {}

Below(i) == {j \in Live : i \in Above(tree, j)}
Children(i) == {j \in Live : tree[j].parent = i}

FreeNames(p) ==
    LET free == Names \ {tree[j].name : j \in Children(p)}
    IN IF EveryName \/ free = {} THEN free ELSE {CHOOSE n \in free : \A m \in free : n <= m}

-----------------------------------------------------------------------------
(* Resolution.  A decision is a value with the TxID of the operation that  *)
(* decided it; a row is a decision that an inode keeps.                    *)

Undecided == [txid |-> 0, value |-> None]

FollowPath(above, n) ==
    LET moved == IF Is("no barrier") THEN above.txid ELSE Max(above.txid, n.renamed)
        own == n.row
        isRestored == IF Is("restored or equal") THEN n.restored >= moved /\ n.restored > 0
                                                 ELSE n.restored > moved
        isNewer == IF Is("own must be newer") THEN own.txid > moved ELSE own.txid >= moved
    IN IF isRestored /\ ~Is("restored as a rename") THEN own
       ELSE IF own.txid > 0 /\ isNewer THEN own
       ELSE [txid |-> IF Is("restored as a rename") THEN Max(moved, n.restored) ELSE moved,
             value |-> above.value]

StayWithData(above, n) ==
    LET barrier == IF Is("no barrier") THEN n.restored ELSE Max(n.renamed, n.restored)
        latest == Max(n.row.txid, barrier)
        isAbove == IF Is("above may be equal") THEN above.txid >= latest ELSE above.txid > latest
    IN IF isAbove THEN above ELSE n.row

Step(above, n) ==
    CASE Kind = "local" -> n.row
      [] Is("nearest ancestor") -> IF n.row.txid > 0 THEN n.row ELSE above
      [] Kind = "path" -> FollowPath(above, n)
      [] Kind = "data" -> StayWithData(above, n)

(* From `top`, which `entering` comes into, down to i. *)
RECURSIVE Resolve(_, _, _, _)
Resolve(t, top, entering, i) ==
    Step(IF i = top THEN entering ELSE Resolve(t, top, entering, t[i].parent), t[i])

Decision(i) == Resolve(tree, Root, Undecided, i)
Entering(i) == IF i = Root THEN Undecided ELSE Decision(tree[i].parent)

EnteringThen(shot) ==
    CASE Is("snapshot forgets above") -> Undecided
      [] Is("snapshot reads above now") -> Entering(shot.of)
      [] OTHER -> shot.entering

DecisionThen(shot, i) == Resolve(shot.tree, shot.of, EnteringThen(shot), i)

-----------------------------------------------------------------------------
(* What is written. *)

NewNode(p, n) ==
    [parent |-> p, name |-> n, restored |-> 0, row |-> Undecided,
     renamed |-> IF Is("creation is a barrier") THEN Now ELSE 0]

(* The row that an inode has after it left the place where d was its decision. *)
Captured(row, d) ==
    CASE Kind # "data" \/ d.txid = 0 \/ Is("no capture") -> row
      [] Is("capture only another value") /\ d.value = row.value -> row
      [] Is("capture no removal") /\ d.value = None -> row
      [] Is("capture with own TxID") -> [d EXCEPT !.txid = Now]
      [] OTHER -> d

Moved(node, d, p, n) ==
    [node EXCEPT !.parent = p, !.name = n, !.renamed = Now, !.row = Captured(node.row, d)]

(* The row of a directory that is brought back. *)
Restored(row, d) ==
    CASE Is("roll-back keeps the row of then") -> row
      [] Is("roll-back with own TxID") -> [d EXCEPT !.txid = Now]
      [] OTHER -> d

-----------------------------------------------------------------------------
(* The magician. *)

Cast(inodes, value) == [i \in Live |-> IF i \in inodes THEN value ELSE expected[i]]
Reach(i) == IF Kind = "local" THEN {i} ELSE Below(i)
Inherited(p) == IF Kind = "local" THEN None ELSE expected[p]
AfterRename(i, p) == IF Kind = "path" THEN Cast(Below(i), expected[p]) ELSE expected

-----------------------------------------------------------------------------
(* Operations.  What has a snapshot, or is above what has one, stays.      *)

HasSnapshots(i) == \E s \in DOMAIN taken : taken[s].of \in Below(i)
Did(operation) == clock' = Now /\ did' = operation

Create(i, p, n) ==
    /\ tree' = (i :> NewNode(p, n)) @@ tree
    /\ expected' = (i :> Inherited(p)) @@ expected
    /\ UNCHANGED taken /\ Did(<<"create", i, p, n>>)

Delete(i) ==
    /\ ~HasSnapshots(i)
    /\ tree' = Restrict(tree, Live \ Below(i))
    /\ expected' = Restrict(expected, Live \ Below(i))
    /\ UNCHANGED taken /\ Did(<<"delete", i>>)

Rename(i, p, n) ==
    /\ p \notin Below(i) /\ ~HasSnapshots(i)
    /\ tree' = [tree EXCEPT ![i] = Moved(@, Decision(i), p, n)]
    /\ expected' = AfterRename(i, p)
    /\ UNCHANGED taken /\ Did(<<"rename", i, p, n>>)

RenameOver(i, o) ==
    /\ i # o /\ Children(o) = {} /\ o \notin Below(i)
    /\ ~HasSnapshots(i) /\ ~HasSnapshots(o)
    /\ LET p == tree[o].parent
           moved == Moved(tree[i], Decision(i), p, tree[o].name)
       IN /\ tree' = Restrict([tree EXCEPT ![i] = moved], Live \ {o})
          /\ expected' = Restrict(AfterRename(i, p), Live \ {o})
    /\ UNCHANGED taken /\ Did(<<"rename over", i, o>>)

Write(i, row, value) ==
    /\ tree' = [tree EXCEPT ![i].row = row]
    /\ expected' = Cast(Reach(i), value)
    /\ UNCHANGED taken

Set(i, v) == Write(i, [txid |-> Now, value |-> v], v) /\ Did(<<"set", i, v>>)

Remove(i) ==
    LET row == IF Kind = "local" \/ Is("removal drops the row")
               THEN Undecided ELSE [txid |-> Now, value |-> None]
    IN Write(i, row, None) /\ Did(<<"remove", i>>)

(* Take what the parent has, with everything below. *)
Unset(i) ==
    /\ Kind # "local" /\ i # Root
    /\ Write(i, [txid |-> Now, value |-> Entering(i).value], Inherited(tree[i].parent))
    /\ Did(<<"unset", i>>)

Take(s, d) ==
    /\ taken' = (s :> [of |-> d, entering |-> Entering(d),
                       tree |-> [Restrict(tree, Below(d)) EXCEPT ![d].parent = Nowhere],
                       expected |-> Restrict(expected, Below(d))]) @@ taken
    /\ UNCHANGED <<tree, expected>> /\ Did(<<"snapshot", s, d>>)

Drop(s) ==
    /\ taken' = Restrict(taken, DOMAIN taken \ {s})
    /\ UNCHANGED <<tree, expected>> /\ Did(<<"delete snapshot", s>>)

(* Which inodes stand for those of a snapshot: the same ones where these are free. *)
Places(shot, room) ==
    LET then == DOMAIN shot.tree
    IN {m \in [then -> room] : \A i, j \in then : /\ i \in room => m[i] = i
                                                  /\ i # j => m[i] # m[j]}

(* A snapshot's inodes in these places, with its first one as given. *)
Copies(shot, m, first) ==
    [k \in {m[i] : i \in DOMAIN m} |->
        LET i == CHOOSE j \in DOMAIN m : m[j] = k
        IN IF i = shot.of THEN first ELSE [shot.tree[i] EXCEPT !.parent = m[@]]]

ValuesOf(shot, m) ==
    [k \in {m[i] : i \in DOMAIN m} |-> shot.expected[CHOOSE j \in DOMAIN m : m[j] = k]]

RollBack(s) ==
    LET shot == taken[s]
        d == shot.of
        others == Live \ Below(d)
        first == [shot.tree[d] EXCEPT
                    !.parent = tree[d].parent, !.name = tree[d].name,
                    !.restored = IF Is("roll-back leaves no mark") THEN @ ELSE Now,
                    !.row = Restored(@, DecisionThen(shot, d))]
    IN /\ \A r \in DOMAIN taken : taken[r].of \in Below(d) => taken[r].of \in DOMAIN shot.tree
       /\ \E m \in Places(shot, (Inodes \cup {Root}) \ others) :
            /\ tree' = Copies(shot, m, first) @@ Restrict(tree, others)
            /\ expected' = ValuesOf(shot, m) @@ Restrict(expected, others)
       /\ UNCHANGED taken /\ Did(<<"roll back", d, s>>)

(* A clone is moved out of the snapshot, which keeps what it has. *)
Clone(s, p, n) ==
    LET shot == taken[s]
        d == DecisionThen(shot, shot.of)
        first == Moved(shot.tree[shot.of], d, p, n)
    IN /\ \E m \in Places(shot, Inodes \ Live) :
            LET then == ValuesOf(shot, m)
            IN /\ tree' = Copies(shot, m, first) @@ tree
               /\ expected' = expected @@
                    IF Kind = "path" THEN [k \in DOMAIN then |-> expected[p]] ELSE then
       /\ UNCHANGED taken /\ Did(<<"clone", s, p, n>>)

Init ==
    /\ tree = (Root :> [parent |-> Nowhere, name |-> 0, renamed |-> 0, restored |-> 0,
                        row |-> Undecided])
    /\ expected = (Root :> None)
    /\ taken = <<>>
    /\ clock = 0
    /\ did = <<>>

Next ==
    \/ \E p \in Live : \E n \in FreeNames(p) :
         \/ \E i \in Inodes \ Live : Create(i, p, n)
         \/ \E i \in Live \ {Root} : Rename(i, p, n)
         \/ \E s \in DOMAIN taken : Clone(s, p, n)
    \/ \E i \in Live \ {Root} : Delete(i) \/ \E o \in Live \ {Root} : RenameOver(i, o)
    \/ \E i \in Live : Remove(i) \/ Unset(i) \/ \E v \in Values : Set(i, v)
    \/ \E s \in Slots \ DOMAIN taken : \E d \in Live : Take(s, d)
    \/ \E s \in DOMAIN taken : Drop(s) \/ RollBack(s)

Spec == Init /\ [][Next]_vars

-----------------------------------------------------------------------------
(* What holds. *)

Agreement == \A i \in Live : Decision(i).value = expected[i]

SnapshotsAgree ==
    \A s \in DOMAIN taken :
        LET shot == taken[s]
        IN \A i \in DOMAIN shot.tree : DecisionThen(shot, i).value = shot.expected[i]

IsTree ==
    /\ Live \subseteq Inodes \cup {Root} /\ Root \in Live /\ DOMAIN expected = Live
    /\ \A i \in Live \ {Root} : Root \in Above(tree, i)
    /\ \A i, j \in Live : tree[i].parent = tree[j].parent /\ tree[i].name = tree[j].name => i = j
    /\ \A s \in DOMAIN taken : taken[s].of \in Live

-----------------------------------------------------------------------------
(* How the states are made few.                                            *)
(*                                                                         *)
(* Rules compare TxIDs and do nothing else with them, so two states are    *)
(* the same if their TxIDs are in the same order: each is seen as its      *)
(* rank.  Names matter only where all of them are tried.                   *)
(*                                                                         *)
(* With Forgetful, TxIDs are not seen that can decide nothing any more: of *)
(* a rename and a roll-back the earlier one, both if the row is later, and *)
(* for what follows the path a row that is earlier than a rename.  Where   *)
(* states are few enough to see all of it, ForgettingChangesNothing is     *)
(* checked instead.                                                        *)

Forgotten(n) ==
    LET mark == Max(n.renamed, n.restored)
        isDecidedHere == n.row.txid > mark
        isOverruled == Kind = "path" /\ ~isDecidedHere /\ n.renamed > n.restored
    IN [n EXCEPT !.renamed = IF isDecidedHere \/ @ < mark THEN 0 ELSE @,
                 !.restored = IF isDecidedHere \/ @ < mark THEN 0 ELSE @,
                 !.row = IF isOverruled THEN Undecided ELSE @]

Kept(t) == IF Forgetful THEN [i \in DOMAIN t |-> Forgotten(t[i])] ELSE t

ForgettingChangesNothing ==
    LET less == [i \in Live |-> Forgotten(tree[i])]
    IN \A i \in Live : Resolve(less, Root, Undecided, i) = Decision(i)

TxIDs(t) == UNION {{t[i].renamed, t[i].restored, t[i].row.txid} : i \in DOMAIN t}

View ==
    LET now == Kept(tree)
        then == [s \in DOMAIN taken |-> Kept(taken[s].tree)]
        used == (TxIDs(now) \cup UNION {TxIDs(then[s]) \cup {taken[s].entering.txid} :
                                        s \in DOMAIN taken}) \ {0}
        Rank(x) == Cardinality({u \in used : u <= x})
        Seen(d) == <<Rank(d.txid), d.value>>
        SeenTree(t) == [i \in DOMAIN t |-> <<t[i].parent, IF EveryName THEN t[i].name ELSE 0,
                                            Rank(t[i].renamed), Rank(t[i].restored),
                                            Seen(t[i].row)>>]
    IN <<SeenTree(now), expected,
         [s \in DOMAIN taken |-> <<taken[s].of, Seen(taken[s].entering), SeenTree(then[s]),
                                   taken[s].expected>>]>>

Symmetry == Permutations(Inodes) \cup Permutations(Values) \cup Permutations(Slots)

Bound == OperationsMax = 0 \/ clock < OperationsMax
=============================================================================
