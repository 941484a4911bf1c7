"""See `firesteel.testing.simulation.campaign`."""

from __future__ import annotations

import sys

from firesteel.testing.simulation.campaign import main

if __name__ == "__main__":
    sys.exit(main())
