"""``python -m tests.chaos --faults 200 --seed 7``: runs the chaos job under faults and judges its output."""

from __future__ import annotations

import sys

from tests.support.chaos.command import main

if __name__ == "__main__":
    sys.exit(main())
