"""Records what Flink makes of the statements of the tests: what it prints, or why they are refused.

Run it with a Python that has PyFlink 2.3; it writes tests/integration/table/recorded/statements.json.
"""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "tests" / "integration" / "table"


def main() -> None:
    """Records all statements, in streaming and in batch mode."""
    # the JVM, which prints, inherits the output of this process
    printed = tempfile.TemporaryFile("w+", encoding="utf-8")  # noqa: SIM115
    os.dup2(printed.fileno(), 1)
    from pyflink.table import EnvironmentSettings, TableEnvironment

    recorded = {}
    for mode in ("streaming", "batch"):
        settings = getattr(EnvironmentSettings, f"in_{mode}_mode")()
        environment = TableEnvironment.create(settings)
        environment.get_config().set("parallelism.default", "1").set_local_timezone("UTC")
        statements = re.split(r";\n", (FOLDER / "statements.sql").read_text("utf-8"))
        recorded[mode] = [{"sql": sql, **_outcome(environment, sql, printed)} for sql in statements if sql.strip()]
    lines = []
    for mode, outcomes in recorded.items():
        entries = ",\n".join(f"  {json.dumps(outcome, ensure_ascii=False)}" for outcome in outcomes)
        lines.append(f' "{mode}": [\n{entries}\n ]')
    (FOLDER / "recorded" / "statements.json").write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")


def _outcome(environment: Any, sql: str, printed: Any) -> dict[str, Any]:
    start = os.fstat(printed.fileno()).st_size
    try:
        result = environment.execute_sql(sql)
        result.print()
    except Exception as error:  # noqa: BLE001 - whatever Flink refuses it with
        return {"errors": _reasons(str(error))}
    printed.seek(start)
    return {"printed": printed.read(), "schema": str(result.get_resolved_schema())}


def _reasons(text: str) -> list[str]:
    """The messages of an error and its causes."""
    lines = [line for line in text.splitlines() if not re.match(r"\s+(at |\.\.\. )", line)]
    reasons = re.split(r"^(?:: |Caused by: )?[\w.$]+Exception: ", "\n".join(lines), flags=re.MULTILINE)[1:]
    return list(dict.fromkeys(reason.strip() for reason in reasons))


if __name__ == "__main__":
    main()
    sys.stderr.write("recorded\n")
