import sys

from benchmarks.snapshots.command import main

sys.exit(main())
