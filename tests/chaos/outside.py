"""``python -m tests.chaos.outside --faults 60 --records 10000000 --seed 7``: chaos with Kafka and PostgreSQL."""

from __future__ import annotations

import sys

from tests.support.chaos.outside_run import main

if __name__ == "__main__":
    sys.exit(main())
