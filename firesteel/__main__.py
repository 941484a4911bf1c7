"""``python -m firesteel``: the same as the ``firesteel`` command."""

from __future__ import annotations

import sys

from firesteel.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
