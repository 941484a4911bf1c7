"""Runs generated programs: ``python -m firesteel.testing.programs --programs 100 --seed 7``."""

from __future__ import annotations

import sys

from firesteel.testing.programs.command import main

sys.exit(main())
