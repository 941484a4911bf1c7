"""``python -m tests.chaos --faults 200 --seed 7``: runs the chaos job under faults and judges its output."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from chaos_command import main  # noqa: E402 - needs the path above

if __name__ == "__main__":
    sys.exit(main())
