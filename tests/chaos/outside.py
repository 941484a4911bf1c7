"""``python -m tests.chaos.outside --faults 60 --records 10000000 --seed 7``: chaos with Kafka and PostgreSQL."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from outside_chaos import main

if __name__ == "__main__":
    sys.exit(main())
