"""Entry point of `make bench`; what is measured is told in README.md."""

import sys
from pathlib import Path

# As a script its own folder is on the path, not the one that holds the package.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.command import main

if __name__ == "__main__":
    sys.exit(main())
