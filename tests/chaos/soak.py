"""``python -m tests.chaos.soak --minutes 60``: runs jobs for a long time and shows what grows."""

from __future__ import annotations

import sys

from tests.support.soak.run import main

if __name__ == "__main__":
    sys.exit(main())
