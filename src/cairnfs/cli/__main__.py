"""`python -m cairnfs.cli` is `cairn`."""

import sys

from cairnfs.cli.main import main

sys.exit(main())
