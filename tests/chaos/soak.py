"""``python -m tests.chaos.soak --minutes 60``: runs jobs for a long time and shows what grows."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from soak_run import main

if __name__ == "__main__":
    sys.exit(main())
