"""Runs every program under examples/: all of them in this process, some on Spark as a user does."""

from __future__ import annotations

import importlib
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from typing_extensions import Self

from firesteel.cli.main import main
from firesteel.datastream import stream_execution_environment
from firesteel.datastream.executor import execution_context
from firesteel.testing import eventually
from firesteel.testing.in_process import InProcessExecutor

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from examples import demo  # noqa: E402

EXPECTED = {
    "custom_connector": "1500 invoices, 1500 different ones, expected 1500\n",
    "exactly_once": "40 results, 40 different ones, expected 40\n",
    "word_count": """\
39 words, 30 different ones:
     4  to
     3  the
     2  and
     2  be
     2  of
     2  or
     1  'tis
     1  a
""",
    "spend_per_customer": """\
from 10:00  Ada       19.75
from 10:00  Grace     99.90
from 10:05  Ada       35.00
""",
    "sessions": """\
bob  09:02-09:02  /home
ann  09:00-09:35  /home /shoes /cart
bob  10:05-10:20  /cart /pay
ann  10:50-11:05  /home /help
""",
    "timers": """\
  65 s  cellar silent since 5 s
 150 s  boiler silent since 90 s
 200 s  cellar silent since 140 s
""",
    "side_outputs": """\
order> 1: 20.00
order> 2: 1500.00
order> 5: 75.50
order> 6: 9800.00
review> order 2: 1500.00 is more than 1000.00
review> order 6: 9800.00 is more than 1000.00
broken> JSONDecodeError in {"order": 3, "amou
broken> KeyError in {"order": 4}
""",
    "fraud_detection": """\
alert> 4711: 7200.00 in DE, then 640.00 in BR after 240 s
checked> 0815: nothing abroad within the time after 9500.00
alert> 2342: 5100.00 in DE, then 700.00 in US after 100 s
""",
    "state": """\
boiler  70.0  average of 1: 70.0
cellar  12.0  average of 1: 12.0
boiler  72.0  average of 2: 71.0
cellar  13.0  average of 2: 12.5
boiler  74.0  average of 3: 72.0
""",
    "connected_streams": """\
order 101 (lamp) went to Paris after 5 hours
order 103 (chair) went to Berlin after 5 hours
order 102 (desk) was not shipped in time
""",
    "joins": """\
ann clicked shoes 20 minutes after a view of shoes
ann clicked shoes 5 minutes after a view of boats
cat clicked boats 10 minutes after a view of shoes
hour 0: boats had 1 views and 0 clicks
hour 0: lamps had 1 views and 1 clicks
hour 0: shoes had 1 views and 1 clicks
hour 1: boats had 0 views and 1 clicks
hour 1: shoes had 1 views and 0 clicks
""",
    "sql": """\
+----+--------------------------------+--------------+
| op |                       customer |        euros |
+----+--------------------------------+--------------+
| +I |                            Ada |        12.50 |
| +I |                          Grace |        80.00 |
| +I |                         Edsger |       999.00 |
+----+--------------------------------+--------------+
3 rows in set
""",
    "custom_watermarks": """\
 0-10 s  north   9 kW  (watermark 10 s)
 0-10 s  south   2 kW  (watermark 10 s)
late> ('south', 8, 6)
10-20 s  north   7 kW  (watermark 20 s)
10-20 s  south   1 kW  (watermark 20 s)
""",
}

RESULT = re.compile(r"  (\d\d:\d\d)-\d\d:\d\d  (\w+) +([\d,.]+) +([\d,]+)(  updated by a late payment)?")
LATE = re.compile(r"  \d\d:\d\d:\d\d     (\w+) +([\d,.]+)         -  too late: side output")
SUMMARY = re.compile(r"  (records|records/s|windows fired|late|watermark) +([\d,:]+|none yet)(  \(.*\))?")


@pytest.fixture
def run_example(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Runs an example's main() in this process, without Spark, and returns what it prints."""
    monkeypatch.setattr(stream_execution_environment, "resolve_executor", lambda configuration: InProcessExecutor())

    def run(name: str, *arguments: str) -> str:
        monkeypatch.setattr(sys, "argv", [f"examples/{name}.py", *arguments])
        importlib.import_module(f"examples.{name}").main()
        printed = capsys.readouterr()
        assert printed.err == ""
        return printed.out

    return run


def run_on_spark(name: str, *arguments: str, timeout: float = 240) -> str:
    """Runs an example in a process of its own, as the README says; nothing but its results may be seen."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("SPARK", "PYSPARK"))}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", f"examples.{name}", *arguments],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    assert done.stderr == ""
    assert done.returncode == 0
    return done.stdout


def sorted_lines(text: str) -> list[str]:
    """Two print sinks, and two inputs, are not in a certain order to each other."""
    return sorted(text.splitlines())


def test_every_example_is_tested() -> None:
    programs = {path.stem for path in (ROOT / "examples").glob("*.py")}
    elsewhere = {"state_processor", "kafka_auctions"}  # in tests/spark and tests/services
    assert programs == {*EXPECTED, *elsewhere, "demo", "kappa", "__init__"}


@pytest.mark.parametrize("name", EXPECTED)
def test_example(name: str, run_example: Callable[..., str]) -> None:
    printed = run_example(name)
    if name in ("side_outputs", "connected_streams", "fraud_detection", "joins"):
        assert sorted_lines(printed) == sorted_lines(EXPECTED[name])
    else:
        assert printed == EXPECTED[name]


@pytest.mark.parametrize("name", [*EXPECTED, "demo", "kappa", "kafka_auctions"])
def test_example_has_help(name: str, run_example: Callable[..., str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exited:
        run_example(name, "--help")
    assert exited.value.code == 0
    assert "usage:" in capsys.readouterr().out


def test_example_is_small_enough_to_read() -> None:
    lengths = {name: len((ROOT / "examples" / f"{name}.py").read_text().splitlines()) for name in EXPECTED}
    two_connectors, patterns = lengths.pop("custom_connector"), lengths.pop("fraud_detection")
    assert {name: length for name, length in lengths.items() if length > 70} == {}
    assert two_connectors <= 110
    assert patterns <= 85


def test_options_of_examples(run_example: Callable[..., str], tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_text("spark spark flint\nspark\n")
    printed = run_example("word_count", "--input", str(tmp_path), "--parallelism", "3", "--top", "1")
    assert printed == "4 words, 2 different ones:\n     3  spark\n"
    assert "silent since 5 s" not in run_example("timers", "--patience", "200")
    assert "ann  09:00-11:05" in run_example("sessions", "--gap", "90")
    assert "review" not in run_example("side_outputs", "--limit", "10000")


WINDOWS = [
    ("2024-01-01 00:00:00.000", "2024-01-01 00:00:10.000", "920", "99264887"),
    ("2024-01-01 00:00:10.000", "2024-01-01 00:00:20.000", "920", "99369571"),
    ("2024-01-01 00:00:20.000", "2024-01-01 00:00:30.000", "920", "97852081"),
    ("2024-01-01 00:00:30.000", "2024-01-01 00:00:40.000", "920", "98472882"),
    ("2024-01-01 00:00:40.000", "2024-01-01 00:00:50.000", "920", "98224090"),
]


def cells(printed: str, word: str, count: int) -> list[tuple[str, ...]]:
    """The last cells of the lines of a printed table that have a word."""
    lines = [re.split(r"\s*\|\s*", line) for line in printed.splitlines() if word in line]
    return [tuple(line[-count - 1 : -1]) for line in lines]


def test_sql_script_in_streaming_and_in_batch(capsys: pytest.CaptureFixture[str]) -> None:
    script = str(ROOT / "examples" / "windows.sql")
    with execution_context(None, InProcessExecutor()):
        for options in ([], ["-D", "execution.runtime-mode=batch"]):
            assert main(["sql", *options, "-f", script]) == 0
            assert cells(capsys.readouterr().out, "| 2024", 4) == WINDOWS


FRAUD = (
    ("18", "902", "2", "954.000000", "BR", "60"),
    ("15", "1045", "2", "1695.000000", "BR", "60"),
    ("6", "1474", "2", "1218.000000", "BR", "60"),
    ("7", "473", "2", "1431.000000", "BR", "60"),
)


def test_sql_script_with_a_pattern(capsys: pytest.CaptureFixture[str]) -> None:
    script = str(ROOT / "examples" / "fraud.sql")
    with execution_context(None, InProcessExecutor()):
        for options in ([], ["-D", "execution.runtime-mode=batch"]):
            assert main(["sql", *options, "-f", script]) == 0
            assert sorted(cells(capsys.readouterr().out, "BR", 6)) == sorted(FRAUD)


def check_demo(printed: str, seconds: float, rate: float) -> dict[str, str]:
    """Every payment is in its window's last result or came out as too late; the summary says the same."""
    lines = [line for line in printed.splitlines() if line]
    assert "Starting Spark" in lines[0]
    assert lines[1].split() == ["window", "customer", "spend", "payments"]
    latest: dict[tuple[str, str], tuple[int, int]] = {}
    late: list[int] = []
    summary: dict[str, str] = {}
    firings = 0
    for line in lines[2:]:
        if match := RESULT.fullmatch(line):
            start, customer, spend, payments, updated = match.groups()
            assert bool(updated) == ((start, customer) in latest)
            latest[start, customer] = int(payments.replace(",", "")), cents(spend)
            firings += 1
        elif match := LATE.fullmatch(line):
            late.append(cents(match[2]))
        else:
            match = SUMMARY.fullmatch(line)
            assert match, f"not expected: {line!r}"
            summary[match[1]] = match[2]
    make = demo.MakePayment(7, rate)
    made = [make(number) for number in range(int(seconds * rate))]
    assert sum(payments for payments, _ in latest.values()) + len(late) == len(made)
    assert sum(spend for _, spend in latest.values()) + sum(late) == sum(payment.cents for payment in made)
    assert list(summary) == ["records", "records/s", "windows fired", "late", "watermark"]
    assert summary["records"] == f"{len(made):,}"
    assert summary["windows fired"] == f"{firings:,}"
    assert summary["late"] == f"{len(late):,}"
    return summary


def cents(spend: str) -> int:
    return int(spend.replace(",", "").replace(".", ""))


def test_demo(run_example: Callable[..., str]) -> None:
    printed = run_example("demo", "--seconds", "2", "--rate", "2000")
    check_demo(printed, 2, 2000)


def test_demos_payments_are_late_as_promised() -> None:
    make = demo.MakePayment(7, 5000)
    due = [demo.START + number * 40 for number in range(100_000)]
    behind = [time - make(number).time for number, time in enumerate(due)]
    assert {make(number).customer for number in range(1000)} == set(demo.CUSTOMERS)
    assert make(123) == demo.MakePayment(7, 5000)(123) != demo.MakePayment(8, 5000)(123)
    assert sum(1 for delay in behind if delay == 600_000) == 9  # the first of ten would be from before the start
    assert sum(1 for delay in behind if 60_000 <= delay < 120_000) == 40
    assert sum(1 for delay in behind if delay >= 5_000) == 50


def kappa_prints(history: int, live: int) -> list[str]:
    """What must be printed however long it takes, for so many payments."""
    return [
        f"Backfill: {history:,} payments, on Spark's shuffle, parallelism 2",
        f"  {history:,} results; it has stopped by itself, and holds no slots",
        "Live: from its last checkpoint, pipelined, parallelism 3",
        f"  {history + live:,} results; stopped with a savepoint",
        f"{history + live:,} payments: 0 lost, 0 twice, 7 of 7 totals are right",
    ]


def test_kappa(run_example: Callable[..., str]) -> None:
    printed = run_example("kappa", "--history", "5", "--live", "2")
    assert printed.splitlines() == kappa_prints(5_000, 2_000)


@pytest.mark.spark
def test_kappa_on_spark() -> None:
    assert run_on_spark("kappa").splitlines() == kappa_prints(40_000, 8_000)


@pytest.mark.spark
def test_example_on_spark() -> None:
    assert sorted_lines(run_on_spark("word_count")) == sorted_lines(EXPECTED["word_count"])


SLOW_JAVA = """\
#!/bin/sh
case "$*" in
  *SparkSubmit*pyspark-shell*)
    case "$*" in *launcher.Main*) ;; *)
      touch "{here}/starts"
      while [ ! -e "{here}/interrupted" ]; do sleep 0.05; done
    esac ;;
esac
exec "{real}" "$@"
"""
"""It is asked for its version, and how to start Spark, before it is to do that."""


def _path_with_java() -> str:
    return os.pathsep.join([f"{os.environ.get('JAVA_HOME', '')}/bin", os.environ["PATH"]])


class RunningDemo:
    """The demo as a process of its own, as the terminal's foreground job would be: Ctrl-C goes to all of its group."""

    def __init__(self, **environment: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "examples.demo", "--seconds", "600"],
            cwd=ROOT,
            env={**os.environ, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.communicate()

    def line_with(self, text: str) -> str:
        """Waits for a line of its output."""
        assert self._process.stdout is not None
        return next(line for line in self._process.stdout if text in line)

    def interrupt(self, then: Callable[[], None] = lambda: None) -> str:
        """Presses Ctrl-C; the rest of what it prints. Nothing may be left of it."""
        children = psutil.Process(self._process.pid).children(recursive=True)
        os.killpg(self._process.pid, signal.SIGINT)
        then()
        printed, errors = self._process.communicate(timeout=240)
        assert errors == ""
        assert self._process.returncode == 0
        _, alive = psutil.wait_procs(children, timeout=120)
        assert alive == []
        return printed


@pytest.mark.spark
def test_demo_is_interrupted() -> None:
    with RunningDemo() as running:
        # the second window: metrics, of which the rate is made, come later than results
        running.line_with("09:05-09:10")
        printed = running.interrupt().splitlines()
    assert "  Cancelled." in printed
    summary = {match[1]: match[2] for line in printed if (match := SUMMARY.fullmatch(line))}
    assert list(summary) == ["records", "records/s", "windows fired", "late", "watermark"]
    assert summary["records/s"] != "0"
    assert int(summary["records"].replace(",", "")) > 7_500  # the first window has as many
    assert summary["windows fired"] != "0"


@pytest.mark.spark
def test_demo_is_interrupted_while_spark_starts(tmp_path: Path) -> None:
    """A Java that waits with Spark until the demo has been interrupted."""
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text(SLOW_JAVA.format(real=shutil.which("java", path=_path_with_java()), here=tmp_path))
    java.chmod(0o755)
    with RunningDemo(JAVA_HOME=str(tmp_path)) as running:
        running.line_with("payments")
        eventually((tmp_path / "starts").exists, timeout=240)
        printed = running.interrupt(then=(tmp_path / "interrupted").touch)
    assert printed == "\n  Cancelled before the job had started.\n"


@pytest.mark.spark
def test_demo_on_spark() -> None:
    summary = check_demo(run_on_spark("demo", "--seconds", "3"), 3, 5000)
    assert summary["watermark"].startswith("09:0")
