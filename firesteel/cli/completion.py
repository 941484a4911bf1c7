"""``firesteel completion``: prints a script for shell completion."""

from __future__ import annotations

import argparse
import sys
from typing import Any

__all__ = ["register", "run"]


def register(commands: Any) -> None:
    parser = commands.add_parser(
        "completion",
        help="print a script for shell completion",
        description='For bash: eval "$(firesteel completion bash)" in ~/.bashrc. For zsh: firesteel completion zsh > '
        "_firesteel in a directory of $fpath. For fish: firesteel completion fish > "
        "~/.config/fish/completions/firesteel.fish.",
    )
    parser.add_argument("shell", choices=("bash", "zsh", "fish"))
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    import shtab

    from firesteel.cli.main import parser
    from firesteel.client.errors import UsageError

    if options.shell not in shtab.SUPPORTED_SHELLS:
        raise UsageError(
            f"shtab {shtab.__version__} does not support {options.shell}.",
            hint="Install a newer version: pip install -U shtab.",
        )
    sys.stdout.write(shtab.complete(parser(), options.shell))
    return 0
