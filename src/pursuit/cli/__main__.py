"""The command line as a module: ``python -m pursuit.cli``."""

import sys

from pursuit.cli import main

sys.exit(main())
