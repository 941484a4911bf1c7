"""The web pages, in a real browser: against a real cluster, and against answers that are made up."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from firesteel.testing import eventually
from tests.support.rest.browser import OFFLINE, Visit, open_browser, sync_api
from tests.support.rest.web_answers import JOB, WebAnswers, vertex_id
from tests.support.rest.web_cluster import START_S, Cluster

pytestmark = pytest.mark.cluster
expect = sync_api.expect

COUNTING = """
import logging
import time
from firesteel.common import Types, WatermarkStrategy
from firesteel.connectors import DataGeneratorSource, RateLimiterStrategy
from firesteel.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from firesteel.datastream.state import ValueStateDescriptor


class Count(KeyedProcessFunction):
    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("seen", Types.LONG()))
        self.digits = runtime_context.get_metrics_group().counter("digits")
        log = logging.getLogger("digits")
        log.info("opened")
        try:
            1 / 0
        except ZeroDivisionError:
            log.exception("cannot divide")

    def process_element(self, value, ctx):
        self.count.update((self.count.value() or 0) + 1)
        self.digits.inc()
        time.sleep(0.002)
        yield value


env = StreamExecutionEnvironment.get_execution_environment()
# seldom enough that the details of one are still known when they are looked at: the last ten are
env.enable_checkpointing(4000)
# slow enough that no records queue up, on a busy machine either: a barrier would wait behind them
source = DataGeneratorSource(lambda n: n % 10, None, RateLimiterStrategy.per_second(100))
numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "Digits").map(lambda n: n).name("Last digit")
numbers.key_by(lambda n: n).process(Count()).uid("count").name("Count").filter(lambda n: False).print()
env.execute("counting digits")
"""

FAILING = """
from firesteel.datastream import StreamExecutionEnvironment


def invert(n):
    return 1 / (n - 5)


env = StreamExecutionEnvironment.get_execution_environment()
env.from_sequence(1, 10).map(invert).name("Invert").print()
env.execute("dividing by zero")
"""


@pytest.fixture(scope="module", autouse=True)
def starting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """The cluster comes up while the tests run that do not need it."""
    cluster = Cluster(tmp_path_factory.mktemp("web"))
    try:
        cluster.await_java()
        yield cluster
    finally:
        cluster.close()


@pytest.fixture
def cluster(starting: Cluster) -> Cluster:
    starting.await_start()
    return starting


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with open_browser() as browser:
        yield browser


@pytest.fixture
def visit(browser: Any) -> Iterator[Visit]:
    """A tab; the test fails if anything went wrong in it."""
    with Visit(browser) as visit:
        yield visit
        assert visit.problems == []


def _submit(page: Any, cluster: Cluster, program: str, directory: Path, text: str) -> None:
    file = directory / program
    file.write_text(text)
    page.goto(cluster.login_link())
    expect(page).to_have_url(re.compile(r"#/$"))  # the code is not in the history
    page.goto(f"{cluster.url}/#/submit")
    page.locator("input[type=file]").set_input_files(str(file))
    expect(page.get_by_text(f"{program} is uploaded.")).to_be_visible()
    expect(page.get_by_role("button", name="Run")).to_be_visible()


# -- with answers that are made up ----------------------------------------------------------------------


def test_a_large_graph_is_drawn_without_overlaps_and_its_vertices_are_found(visit: Visit) -> None:
    visit.answer_with(WebAnswers(vertices=200))
    page = visit.page
    page.goto(f"{OFFLINE}/#/jobs/{JOB}")
    expect(page.locator(".node")).to_have_count(200)
    overlapping = page.evaluate(
        """() => {
          const boxes = [...document.querySelectorAll('.node')].map((node) => node.getBoundingClientRect());
          return boxes.flatMap((a, i) => boxes.slice(i + 1).filter(
            (b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom)).length;
        }"""
    )
    assert overlapping == 0
    page.get_by_label("Find a vertex").fill("a job 117 ")
    expect(page.get_by_role("region", name="Vertices of the job").locator("tbody tr")).to_have_count(1)


def test_names_are_text_and_never_markup(visit: Visit) -> None:
    visit.answer_with(WebAnswers(name="<img src=x onerror=alert(1)>"))
    visit.page.goto(f"{OFFLINE}/#/jobs/{JOB}")
    expect(visit.page.get_by_role("heading", level=1)).to_contain_text("<img src=x onerror=alert(1)>")
    expect(visit.page.locator(".node").first).to_contain_text("<b>next</b>")
    assert visit.page.locator("main img").count() == 0


def test_thousands_of_subtasks_come_in_pages_and_a_refresh_keeps_the_place(visit: Visit) -> None:
    answers = WebAnswers(parallelism=3000)
    visit.answer_with(answers)
    page = visit.page
    page.goto(f"{OFFLINE}/#/jobs/{JOB}/overview?vertex={vertex_id(1)}&view=subtasks")
    drawer = page.locator("aside.drawer")
    expect(drawer.get_by_text("1–50 of 3,000 rows")).to_be_visible()
    drawer.get_by_role("button", name="Next").click()
    expect(drawer.get_by_text("51–100 of 3,000 rows")).to_be_visible()
    body = drawer.locator(".drawer-body")
    drawer.get_by_role("link", name="localhost:1", exact=True).nth(8).focus()
    body.evaluate("element => element.scrollTop = 200")
    answers.busy[1] = 870.0
    expect(page.locator(".node").nth(1)).to_contain_text("Busy 87%")
    expect(drawer.get_by_text("51–100 of 3,000 rows")).to_be_visible()
    assert body.evaluate("element => element.scrollTop") == 200
    assert page.evaluate("document.activeElement.textContent") == "localhost:1"


def test_the_bottleneck_is_named_in_a_sentence_and_in_the_graph(visit: Visit) -> None:
    visit.answer_with(WebAnswers())
    visit.page.goto(f"{OFFLINE}/#/jobs/{JOB}")
    expect(visit.page.locator(".note")).to_contain_text("Bottleneck: a job 1")
    expect(visit.page.locator(".node.is-bottleneck")).to_contain_text("a job 1")


def test_a_row_of_tabs_does_not_scroll_vertically(visit: Visit) -> None:
    visit.answer_with(WebAnswers())
    visit.page.goto(f"{OFFLINE}/#/jobs/{JOB}")
    expect(visit.page.locator(".tabs").first).to_be_visible()
    assert visit.page.locator(".tabs").first.evaluate("row => getComputedStyle(row).overflowY") == "hidden"


def test_subtasks_that_have_finished_leave_no_gap_in_the_bar_of_their_vertex(visit: Visit) -> None:
    visit.answer_with(WebAnswers())
    visit.page.goto(f"{OFFLINE}/#/jobs/{JOB}")
    expect(visit.page.locator(".tabs").first).to_be_visible()
    times = {"busyTimeMsPerSecond": 100, "backPressuredTimeMsPerSecond": 100, "idleTimeMsPerSecond": 50}
    answer = [{"id": name, "avg": time} for name, time in times.items()]
    flow = visit.page.evaluate("answer => import('./pages/flow.js').then(flow => flow.flowOf(answer))", answer)
    assert [flow[name] for name in ("busy", "backpressured", "idle")] == [0.4, 0.4, 0.2]


def test_a_lost_jobmanager_is_said_and_its_return_too(visit: Visit) -> None:
    answers = WebAnswers()
    visit.answer_with(answers)
    visit.expect_problems("net::ERR_")
    page = visit.page
    page.goto(OFFLINE)
    expect(page.get_by_role("link", name="a job")).to_be_visible()
    answers.is_there = False
    expect(page.get_by_role("alert")).to_contain_text("has been unreachable since")
    expect(page.get_by_role("link", name="a job")).to_be_visible()
    answers.is_there = True
    expect(page.get_by_text("is restored")).to_be_visible()
    expect(page.get_by_role("alert")).to_have_count(0)


def test_a_hidden_page_asks_for_nothing(visit: Visit) -> None:
    answers = WebAnswers()
    visit.answer_with(answers)
    page = visit.page
    page.clock.install()
    page.goto(OFFLINE)
    expect(page.get_by_role("link", name="a job")).to_be_visible()
    page.evaluate(
        """() => {
          Object.defineProperty(document, 'hidden', { value: true, configurable: true });
          document.dispatchEvent(new Event('visibilitychange'));
        }"""
    )
    visit.await_answers()  # of what was under way
    before = len(answers.asked)
    page.clock.run_for(60_000)
    visit.await_answers()
    assert answers.asked[before:] == []
    page.evaluate(
        """() => {
          Object.defineProperty(document, 'hidden', { value: false, configurable: true });
          document.dispatchEvent(new Event('visibilitychange'));
        }"""
    )
    eventually(lambda: page.evaluate("true") and len(answers.asked) > before, timeout=START_S)


def test_a_token_is_asked_for_and_sent(visit: Visit) -> None:
    answers = WebAnswers()
    visit.answer_with(answers)
    visit.expect_problems("status of 401")
    page = visit.page
    page.goto(f"{OFFLINE}/#/jobs/{JOB}")
    page.get_by_role("button", name="Cancel", exact=True).click()
    page.get_by_role("button", name="Cancel the job").click()
    dialog = page.get_by_role("dialog", name="This cluster requires a token")
    dialog.get_by_label("Token").fill("secret")
    with page.expect_request(lambda request: request.method == "PATCH") as sent:
        dialog.get_by_role("button", name="Continue").click()
    assert sent.value.headers["authorization"] == "Bearer secret"
    # it is refused here, which the dialog says; whoever has no other one is told what the JobManager said
    expect(dialog).to_contain_text("did not accept the token")
    dialog.get_by_role("button", name="Skip").click()
    expect(page.get_by_role("alert")).to_contain_text("This request requires a token.")


def test_a_job_is_stopped_by_keyboard_and_drained(visit: Visit) -> None:
    answers = WebAnswers()
    visit.answer_with(answers)
    page = visit.page
    page.goto(f"{OFFLINE}/#/jobs/{JOB}")
    page.get_by_role("button", name="Stop").press("Enter")
    dialog = page.get_by_role("dialog", name="Stop with a savepoint")
    expect(dialog.get_by_label("Directory")).to_be_focused()
    dialog.get_by_role("checkbox", name="Drain").press("Space")
    dialog.get_by_label("Directory").press("Enter")
    expect(dialog.locator(".result-path")).to_contain_text("file:/savepoints/1")
    sent = json.loads(answers.bodies[f"jobs/{JOB}/stop"])
    assert sent == {"targetDirectory": None, "drain": True, "formatType": "CANONICAL"}
    expect(dialog.get_by_role("button", name="Close")).to_be_focused()
    answers.state = "FINISHED"
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Stop")).to_have_count(0)
    # what had the focus is gone: the next Tab goes on in the content
    expect(page.locator("main")).to_be_focused()


def test_a_job_that_waits_says_for_how_many_slots(visit: Visit) -> None:
    answers = WebAnswers(parallelism=3)
    answers.state = "CREATED"
    visit.answer_with(answers)
    visit.page.goto(f"{OFFLINE}/#/jobs/{JOB}")
    expect(visit.page.locator(".note")).to_contain_text("it needs 3, and 2 of 4 are free")


def test_an_open_failure_stays_open_when_the_next_one_comes(visit: Visit) -> None:
    answers = WebAnswers()
    answers.failures = [1_000, 2_000]
    visit.answer_with(answers)
    visit.expect_problems("status of 404")  # the browser writes down that there are no metrics of the job here
    page = visit.page
    page.goto(f"{OFFLINE}/#/jobs/{JOB}/exceptions")
    page.locator("summary").click()
    expect(page.get_by_text("ValueError: at 1000")).to_be_visible()
    answers.failures.append(3_000)
    expect(page.get_by_text("ValueError: at 3000")).to_be_visible()
    expect(page.get_by_text("ValueError: at 1000")).to_be_visible()


def test_the_log_of_a_job_is_followed_and_filtered(visit: Visit) -> None:
    answers = WebAnswers()
    visit.answer_with(answers)
    page = visit.page
    page.goto(f"{OFFLINE}/#/jobs/{JOB}")
    page.get_by_role("navigation", name="Parts of the job").get_by_role("link", name="Log", exact=True).click()
    expect(page.get_by_text("have not logged anything")).to_be_visible()
    line = "2026-02-03 14:05:06,789 {}  rules [Map ({}/2)#0] - {}\n"
    failure = line.format("ERROR", 2, "cannot divide") + "    Traceback:\n    ZeroDivisionError: division by zero\n"
    answers.log = "".join(line.format("INFO", 1, f"record {n}") for n in range(200)) + failure
    log = page.locator("pre.log")
    expect(log).to_contain_text("record 0")
    expect(page.get_by_text("203 lines")).to_be_visible()
    at_end = "element => element.scrollHeight - element.scrollTop - element.clientHeight < 40"
    assert log.evaluate(at_end)
    # a reader who has scrolled up stays there when more lines come, and keeps what is selected when none do
    log.evaluate("element => element.scrollTop = 0")
    answers.log += line.format("INFO", 1, "<b>last</b>")
    expect(log).to_contain_text("<b>last</b>")
    assert log.evaluate("element => element.scrollTop") == 0
    log.evaluate("element => getSelection().selectAllChildren(element)")
    before = len(answers.asked)
    eventually(lambda: page.evaluate("true") and len(answers.asked) > before + 8, timeout=START_S)
    assert "record 0" in page.evaluate("getSelection().toString()")
    # a line that is found comes with its traceback
    page.get_by_label("Filter lines").fill("(2/2)")
    expect(page.get_by_text("3 lines")).to_be_visible()
    expect(log).to_contain_text("ZeroDivisionError")
    page.get_by_label("Filter lines").fill("nothing like it")
    expect(page.get_by_text("0 lines")).to_be_visible()
    page.get_by_label("Level from").select_option("ERROR")
    eventually(lambda: page.evaluate("true") and f"GET /jobs/{JOB}/log?level=ERROR" in answers.asked, timeout=START_S)
    with page.expect_download() as downloaded:
        page.get_by_role("button", name="Download").click()
    assert downloaded.value.suggested_filename == f"{JOB}.log"


def test_a_phone_needs_no_sideways_scrolling(browser: Any) -> None:
    for scheme in ("light", "dark"):
        with Visit(browser, width=360, height=740, scheme=scheme) as visit:
            visit.answer_with(WebAnswers())
            page = visit.page
            # the page before is still there for a moment: what is waited for is on the next one only
            for place, sign in {
                "#/overview": "main table",
                f"#/jobs/{JOB}": ".graph .node",
                f"#/jobs/{JOB}/overview?vertex={vertex_id(0)}&view=subtasks": "aside.drawer table",
            }.items():
                page.goto(f"{OFFLINE}/{place}")
                expect(page.locator(sign).first).to_be_attached()
                assert not visit.is_wider_than_the_screen(), place
            expect(page.get_by_role("link", name="Submit")).to_be_in_viewport(ratio=1)
            assert visit.problems == []


def test_dark_colours_follow_the_system_and_can_be_chosen(browser: Any) -> None:
    def darkness(page: Any) -> int:
        return sum(map(int, re.findall(r"\d+", page.evaluate("getComputedStyle(document.body).backgroundColor"))[:3]))

    with Visit(browser, scheme="dark") as visit:
        visit.answer_with(WebAnswers())
        visit.page.goto(OFFLINE)
        eventually(lambda: darkness(visit.page) < 200)
        visit.page.get_by_role("button", name="Light colours").click()
        eventually(lambda: darkness(visit.page) > 600)
        visit.page.reload()
        eventually(lambda: darkness(visit.page) > 600)
        assert visit.problems == []


def test_everything_is_reached_by_keyboard(visit: Visit) -> None:
    visit.answer_with(WebAnswers())
    page = visit.page
    page.goto(f"{OFFLINE}/#/jobs/{JOB}")
    expect(page.locator(".node")).to_have_count(3)
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()
    graph = page.locator(".graph")
    graph.focus()
    stage = page.locator(".graph-stage")
    before = stage.get_attribute("style")
    page.keyboard.press("+")
    page.keyboard.press("ArrowRight")
    expect(stage).not_to_have_attribute("style", before)
    page.keyboard.press("0")
    page.keyboard.press("Tab")
    expect(page.locator(".node").first).to_be_focused()
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"
    page.keyboard.press("Enter")
    expect(page.locator("aside.drawer")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.locator("aside.drawer")).to_have_count(0)
    expect(page.locator(".node").first).to_be_focused()
    page.get_by_role("button", name="Stop").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog", name="Stop with a savepoint")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.get_by_role("button", name="Stop")).to_be_focused()


# -- with a real cluster ------------------------------------------------------------------------------


def test_a_job_from_submit_over_all_pages_and_a_savepoint_to_its_end(
    cluster: Cluster, visit: Visit, tmp_path: Path
) -> None:
    page = visit.page
    page.goto(cluster.url)
    expect(page.get_by_text("No job is running.")).to_be_visible()
    _submit(page, cluster, "digits.py", tmp_path, COUNTING)
    page.get_by_role("button", name="Show plan").click()
    plan = page.get_by_role("dialog", name="Plan of digits.py")
    expect(plan.locator(".node")).to_have_count(2)
    plan.get_by_role("button", name="Close").click()
    page.get_by_label("Parallelism").fill("1")
    page.get_by_role("button", name="Run").click()

    # the job, its graph, and each view of a vertex
    expect(page.get_by_role("heading", level=1)).to_contain_text("counting digits")
    expect(page.get_by_role("heading", level=1)).to_contain_text("RUNNING")
    expect(page.locator(".node")).to_have_count(2)
    expect(page.locator(".edge-label")).to_have_text("HASH")
    expect(page.locator(".node", has_text="Count")).to_contain_text(re.compile(r"Busy \d+%"))
    expect(page.locator(".node", has_text="Count")).to_contain_text(re.compile(r"[\d,.]+ k? ?rec/s"))
    page.locator(".node", has_text="Count").click()
    drawer = page.locator("aside.drawer")
    for view, text in {
        "Subtasks": "RUNNING",
        "TaskManagers": "RUNNING",
        "Watermarks": "watermark",
        "Accumulators": re.compile(r"digits.*By subtask.*digits", re.DOTALL),
        "Backpressure": "Not backpressured",
        "Metrics": "busyTimeMsPerSecond",
        "Detail": "Records received",
    }.items():
        drawer.get_by_role("link", name=view, exact=True).click()
        expect(drawer.locator(".drawer-body")).to_contain_text(text)
    drawer.get_by_role("link", name="Flame graph").click()
    expect(drawer.locator(".frame.is-user").first).to_be_visible()
    expect(drawer.locator(".frame.is-user", has_text="firesteel/")).to_have_count(0)
    drawer.get_by_role("link", name="Metrics").click()
    drawer.get_by_label("Filter metrics by name").fill("inPoolUsage")
    drawer.get_by_text("inPoolUsage", exact=True).click()
    expect(drawer.locator("figure", has_text="inPoolUsage").locator("polyline").first).to_be_attached()
    page.keyboard.press("Escape")
    expect(drawer).to_have_count(0)

    # the other tabs
    tabs = page.get_by_role("navigation", name="Parts of the job")
    for tab, text in {
        "Exceptions": "There are no failures.",
        "Timeline": "Subtask 0",
        "Data skew": "Count",
        "Configuration": "Restart strategy",
        "Checkpoints": "Exactly once",
    }.items():
        tabs.get_by_role("link", name=tab).click()
        expect(page.locator("main")).to_contain_text(text)
    expect(page.get_by_role("img", name="Duration of checkpoints").locator("circle").first).to_be_visible()
    page.get_by_role("button", name="Details of checkpoint").first.click()
    expect(page.locator(".checkpoint-details")).to_contain_text("Count")
    tabs.get_by_role("link", name="Log", exact=True).click()
    log = page.locator("pre.log")
    expect(log).to_contain_text(re.compile(r"INFO +digits \[Count .*\(1/1\)#0\] - opened"))
    page.get_by_label("Level from").select_option("ERROR")
    expect(log).not_to_contain_text("opened")
    expect(log).to_contain_text("ZeroDivisionError: division by zero")
    tabs.get_by_role("link", name="State", exact=True).click()
    page.get_by_role("button", name="seen value of Count").click()
    page.locator("input[name=key]").fill("3")
    page.get_by_role("button", name="Read").click()
    expect(page.locator("main pre")).to_contain_text('"value"')

    # a checkpoint, a savepoint, and the end
    page.get_by_role("button", name="Checkpoint", exact=True).click()
    expect(page.get_by_text(re.compile(r"Checkpoint \d+ is complete."))).to_be_visible()
    page.get_by_role("button", name="Savepoint", exact=True).click()
    page.get_by_role("button", name="Trigger").click()
    dialog = page.get_by_role("dialog", name="Take a savepoint")
    expect(dialog).to_contain_text("The savepoint is complete.")
    path = dialog.locator(".result-path").inner_text().strip()
    assert Path(path.removeprefix("file:")).is_dir()
    dialog.get_by_role("button", name="Close").click()
    page.get_by_role("button", name="Cancel", exact=True).click()
    page.get_by_role("button", name="Cancel the job").click()
    page.get_by_role("dialog").get_by_role("button", name="Close").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("CANCELED")
    expect(page.get_by_role("button", name="Savepoint")).to_have_count(0)
    page.get_by_role("link", name="Jobs", exact=True).click()
    expect(page.get_by_role("region", name="Completed jobs")).to_contain_text("counting digits")


def test_a_failing_job_shows_the_users_own_line(cluster: Cluster, visit: Visit, tmp_path: Path) -> None:
    page = visit.page
    _submit(page, cluster, "zero.py", tmp_path, FAILING)
    page.get_by_role("button", name="Run").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("FAILED")
    page.get_by_role("link", name="See why").click()
    expect(page.get_by_role("heading", name="ZeroDivisionError")).to_be_visible()
    marked = page.locator(".user-line")
    expect(marked.filter(has_text="return 1 / (n - 5)").first).to_be_visible()
    assert not [line for line in marked.all_inner_texts() if "/firesteel/runtime/" in line]


def test_the_pages_of_the_cluster(cluster: Cluster, visit: Visit) -> None:
    page = visit.page
    page.goto(f"{cluster.url}/#/taskmanagers")
    page.locator("tbody a").first.click()
    expect(page.get_by_text("All slots are free.")).to_be_visible()
    expect(page.get_by_text("Heap", exact=True)).to_be_visible()
    for kind in ("Direct", "Mapped", "Network buffers"):  # which Python does not have
        expect(page.get_by_text(kind, exact=True)).to_have_count(0)
    parts = page.get_by_role("navigation", name="Parts of the TaskManager")
    parts.get_by_role("link", name="Logs").click()
    expect(page.get_by_role("heading", name="Log files")).to_be_visible()
    parts.get_by_role("link", name="Stdout").click()
    nothing = page.get_by_text("There is no output yet.")
    expect(page.get_by_label("taskmanager-stdout.txt").or_(nothing).first).to_be_visible()
    parts.get_by_role("link", name="Thread dump").click()
    expect(page.get_by_role("heading", name="Thread dump")).to_be_visible()
    page.get_by_role("link", name="JobManager", exact=True).click()
    expect(page.get_by_text("web.refresh-interval")).to_be_visible()
    parts = page.get_by_role("navigation", name="Parts of the JobManager")
    parts.get_by_role("link", name="Metrics").click()
    expect(page.get_by_text("taskSlotsTotal")).to_be_visible()
    parts.get_by_role("link", name="Logs").click()
    page.get_by_role("button", name="jobmanager.log").click()
    expect(page.get_by_text("This JobManager leads")).to_be_visible()
    parts.get_by_role("link", name="Stdout").click()
    expect(page.get_by_label("jobmanager-stdout.txt").or_(nothing).first).to_be_visible()
    parts.get_by_role("link", name="Thread dump").click()
    expect(page.locator("details").first).to_be_visible()


def test_a_program_without_a_job_says_so_in_the_servers_words(cluster: Cluster, visit: Visit, tmp_path: Path) -> None:
    visit.expect_problems("status of 400")
    _submit(visit.page, cluster, "empty.py", tmp_path, "print('no job')\n")
    visit.page.get_by_role("button", name="Run").click()
    expect(visit.page.get_by_role("alert")).to_contain_text("execute")
