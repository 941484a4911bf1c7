"""Random program testing: generated programs, run in many ways, and checked against an oracle.

- :func:`draw_program` draws a DataStream program from a seed, :func:`draw_way` how it is run.
- :func:`evaluate` is the oracle: it computes what each sink must hold.
- :class:`InProcessRunner` runs a program, :func:`check` compares.
- :class:`Campaign` does all that for many seeds, and makes programs that fail small.

``python -m firesteel.testing.programs --programs 500 --seed 7`` runs a campaign. Operators of your own are fuzzed with
a :class:`Node` for them: see ``docs/testing.md``.
"""

from __future__ import annotations

from firesteel.testing.programs.campaign import Campaign, Finding, Report
from firesteel.testing.programs.grammar import GRAMMAR, draw_program
from firesteel.testing.programs.oracle.evaluate import evaluate
from firesteel.testing.programs.oracle.flow import Flow, Mark, Mode, Record
from firesteel.testing.programs.printing import print_program
from firesteel.testing.programs.program import EventTime, Misfit, Node, Program, Ref, Sketch, StreamType
from firesteel.testing.programs.results import Outcome, Runner, check
from firesteel.testing.programs.running.faults import Fault
from firesteel.testing.programs.running.replaying import replay
from firesteel.testing.programs.running.running import InProcessRunner
from firesteel.testing.programs.running.way_drawing import draw_way
from firesteel.testing.programs.running.ways import Action, Phase, Way
from firesteel.testing.programs.shrinking import Case, shrink

__all__ = [
    "GRAMMAR",
    "Action",
    "Campaign",
    "Case",
    "EventTime",
    "Fault",
    "Finding",
    "Flow",
    "InProcessRunner",
    "Mark",
    "Misfit",
    "Mode",
    "Node",
    "Outcome",
    "Phase",
    "Program",
    "Record",
    "Ref",
    "Report",
    "Runner",
    "Sketch",
    "StreamType",
    "Way",
    "check",
    "draw_program",
    "draw_way",
    "evaluate",
    "print_program",
    "replay",
    "shrink",
]
