"""ML_PREDICT with a service on the loopback, and with providers of the program."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from firesteel.common.errors import FiresteelError
from firesteel.common.time import Duration
from firesteel.config import checkpointing_options
from firesteel.table import DataTypes, EnvironmentSettings, ModelDescriptor, Schema, TableEnvironment
from firesteel.table.bound.errors import ValidationError
from firesteel.table.connector.model import (
    ModelContext,
    ModelProvider,
    ModelProviderFactory,
    PredictFunction,
    register_model_provider,
)
from firesteel.testing.eventually import eventually
from firesteel.testing.in_process import InProcessExecutor
from tests.support.sql.model_server import Answer, ModelServer, chat, embedding, model_server


def _environment(mode: str = "streaming", parallelism: int = 1) -> TableEnvironment:
    created = TableEnvironment.create(getattr(EnvironmentSettings, f"in_{mode}_mode")())
    created._session.environment._executor = InProcessExecutor()
    created.get_config().set("parallelism.default", str(parallelism))
    return created


def _model(environment: TableEnvironment, server: ModelServer, path: str = "chat/completions", **options: str) -> None:
    given = {"endpoint": f"{server.url}/v1/{path}", "api-key": "the key", "model": "small", **options}
    shown = ", ".join(f"'{key.replace('_', '-')}' = '{value}'" for key, value in given.items())
    output = "STRING" if path.startswith("chat") else "ARRAY<FLOAT>"
    environment.execute_sql(
        f"CREATE MODEL m INPUT (text STRING) OUTPUT (answer {output}) WITH ('provider' = 'openai', {shown})"
    )


def _rows(environment: TableEnvironment, query: str) -> list[tuple[Any, ...]]:
    with environment.execute_sql(query).collect() as rows:
        return [tuple(row) for row in rows]


def _echo(body: dict[str, Any]) -> Answer:
    return chat(body["messages"][-1]["content"].upper())


def test_chat() -> None:
    environment = _environment()
    texts = [(1, "ada"), (2, None), (3, "grace")]
    names = DataTypes.ROW([DataTypes.FIELD("id", DataTypes.INT()), DataTypes.FIELD("answer", DataTypes.STRING())])
    environment.create_temporary_view("people", environment.from_elements(texts, names))
    with model_server(_echo) as server:
        _model(environment, server, temperature="0.5", max_tokens="7", stop="a,b", system_prompt="Shout.", topP="1")
        query = "SELECT id, answer0, answer FROM ML_PREDICT(TABLE people, MODEL m, DESCRIPTOR(answer))"
        assert _rows(environment, query) == [(1, "ADA", "ada"), (3, "GRACE", "grace")]
        first = next(request for request in server.requests if request["messages"][-1]["content"] == "ada")
    assert first == {
        "path": "/v1/chat/completions",
        "model": "small",
        "temperature": 0.5,
        "top_p": 1.0,
        "max_tokens": 7,
        "stop": ["a", "b"],
        "messages": [{"role": "system", "content": "Shout."}, {"role": "user", "content": "ada"}],
    }
    assert server.headers[0]["Authorization"] == "Bearer the key"


def test_embeddings_in_batch_mode() -> None:
    environment = _environment("batch")
    environment.execute_sql("CREATE VIEW words AS SELECT * FROM (VALUES ('a'), ('bc')) AS t (word)")
    with model_server(lambda body: embedding(len(body["input"]), 0.5)) as server:
        _model(environment, server, "embeddings", dimension="2")
        found = _rows(environment, "SELECT word, answer FROM ML_PREDICT(TABLE words, MODEL m, DESCRIPTOR(word))")
        assert sorted(found) == [("a", [1.0, 0.5]), ("bc", [2.0, 0.5])]
        assert server.requests[0]["dimensions"] == 2


def test_rows_keep_their_order_and_run_at_the_same_time() -> None:
    """The first row is answered last: the others are asked meanwhile, and come after it."""
    rest = threading.Semaphore(0)

    def answer(body: dict[str, Any]) -> Answer:
        if body["messages"][-1]["content"] == "0":
            for _ in range(3):
                assert rest.acquire(timeout=60)
        else:
            rest.release()
        return _echo(body)

    environment = _environment()
    environment.create_temporary_view("t", environment.from_elements([(str(n),) for n in range(8)], ["text"]))
    with model_server(answer) as server:
        _model(environment, server)
        config = "MAP['async', 'true', 'max-concurrent-operations', '4', 'timeout', '2 min']"
        found = _rows(environment, f"SELECT answer FROM ML_PREDICT(TABLE t, MODEL m, DESCRIPTOR(text), {config})")
        assert found == [(str(n),) for n in range(8)]
        assert 2 <= server.most_running <= 4


def test_an_update_has_the_answers_of_both_rows() -> None:
    environment = _environment()
    environment.create_temporary_view("t", environment.from_elements([("a",), ("b",), ("a",)], ["k"]))
    environment.execute_sql("CREATE VIEW counts AS SELECT k, CAST(COUNT(*) AS STRING) AS c FROM t GROUP BY k")
    with model_server(lambda body: chat(f"<{body['messages'][-1]['content']}>")) as server:
        _model(environment, server)
        config = "MAP['output-mode', 'ALLOW_UNORDERED']"
        sql = f"SELECT k, answer FROM ML_PREDICT(TABLE counts, MODEL m, DESCRIPTOR(c), {config})"
        state: list[tuple[Any, ...]] = []
        with environment.execute_sql(sql).collect() as rows:
            for row in rows:
                kind = str(row.get_row_kind().name)
                if kind in ("INSERT", "UPDATE_AFTER"):
                    state.append(tuple(row))
                else:
                    state.remove(tuple(row))
        assert sorted(state) == [("a", "<2>"), ("b", "<1>")]


class TestFailures:
    def test_busy_services_are_asked_again(self) -> None:
        failures = [(429, {"retry-after-ms": "1"}, {}), (503, {"retry-after": "0"}, {})]
        environment = _environment()
        with model_server(lambda body: failures.pop() if failures else _echo(body)) as server:
            _model(environment, server)
            assert _predicted(environment) == [("x", "X")]
            assert len(server.requests) == 3

    def test_a_request_that_is_refused_fails_the_job(self) -> None:
        environment = _environment()
        with model_server(lambda body: (400, {}, {"error": "no such model"})) as server:
            _model(environment, server)
            with pytest.raises(FiresteelError, match=r"answered 400: .*no such model"):
                _predicted(environment)
            assert len(server.requests) == 1

    def test_failures_can_be_ignored(self) -> None:
        environment = _environment()
        with model_server(lambda body: (500, {"retry-after-ms": "1"}, {})) as server:
            _model(environment, server, retry_num="2", retry_fallback_strategy="ignore")
            assert _predicted(environment) == []
            assert len(server.requests) == 3

    def test_failures_as_columns(self) -> None:
        environment = _environment()
        outputs = (
            Schema.new_builder()
            .column("answer", DataTypes.STRING())
            .column_by_metadata("http-status-code", DataTypes.INT())
            .column_by_metadata("error-string", DataTypes.STRING())
        )
        with model_server(lambda body: (418, {}, "tea")) as server:
            descriptor = (
                ModelDescriptor.for_provider("openai")
                .input_schema(Schema.new_builder().column("text", DataTypes.STRING()).build())
                .output_schema(outputs.build())
                .option("endpoint", f"{server.url}/chat/completions/")
                .option("api-key", "k")
                .option("model", "small")
                .option("error-handling-strategy", "ignore")
                .build()
            )
            environment.create_temporary_model("m", descriptor)
            (row,) = _predicted(environment, "text, answer, `http-status-code`, `error-string`")
        assert row[:3] == ("x", None, 418)
        assert "answered 418" in row[3]

    def test_a_call_that_takes_too_long(self) -> None:
        is_over = threading.Event()
        environment = _environment()

        def answer(body: dict[str, Any]) -> Answer:
            is_over.wait(60)
            return _echo(body)

        with model_server(answer) as server:
            _model(environment, server)
            try:
                with pytest.raises(FiresteelError, match="has not ended in time"):
                    _predicted(environment, config=", MAP['timeout', '10 ms']")
            finally:
                is_over.set()

    def test_a_service_that_is_not_there(self) -> None:
        environment = _environment()
        with model_server(_echo) as server:
            _model(environment, server, error_handling_strategy="failover")
        with pytest.raises(FiresteelError, match="cannot be reached"):
            _predicted(environment)


def _predicted(environment: TableEnvironment, columns: str = "text, answer", config: str = "") -> list[tuple[Any, ...]]:
    environment.create_temporary_view("t", environment.from_elements([("x",)], ["text"]))
    return _rows(environment, f"SELECT {columns} FROM ML_PREDICT(TABLE t, MODEL m, DESCRIPTOR(text){config})")


@pytest.mark.parametrize(("options", "message"), [
    ({"endpoint": "http://x/v1/images"}, "Unsupported endpoint"),
    ({"max-context-size": "10"}, "tokenizer"),
    ({"temperature": "warm"}, "'temperature': 'warm' is not a number"),
    ({"error-handling-strategy": "pray"}, "Use one of retry, failover, ignore"),
    ({"tempreature": "1"}, "Did you mean 'temperature'"),
])  # fmt: skip
def test_options_that_are_refused(options: dict[str, str], message: str) -> None:
    environment = _environment()
    given = {"endpoint": "http://x/v1/chat/completions", "api-key": "secret of mine", "model": "small", **options}
    shown = ", ".join(f"'{key}' = '{value}'" for key, value in given.items())
    environment.execute_sql(
        f"CREATE MODEL m INPUT (text STRING) OUTPUT (answer STRING) WITH ('provider' = 'openai', {shown})"
    )
    with pytest.raises(ValidationError, match=message) as raised:
        _predicted(environment)
    assert "secret of mine" not in str(raised.value)


@dataclass(frozen=True)
class _Halves(PredictFunction):
    def predict(self, row: tuple[Any, ...]) -> Iterable[tuple[Any, ...]]:
        (number,) = row
        if number is not None and number % 2 == 0:
            yield (number // 2, "half")
            yield (number // 2, "other half")


class _HalvesProvider(ModelProvider):
    name = "halves"

    def create_predict_function(self) -> PredictFunction:
        return _Halves()


class _HalvesFactory(ModelProviderFactory):
    identifier = "halves"

    def create_model_provider(self, context: ModelContext) -> ModelProvider:
        return _HalvesProvider()


@pytest.mark.parametrize("parallelism", [1, 3])
def test_a_provider_of_the_program(parallelism: int, tmp_path: Path) -> None:
    """It is called row by row, with arguments cast to the types of the model."""
    register_model_provider(_HalvesFactory())
    environment = _environment(parallelism=parallelism)
    environment.execute_sql(
        "CREATE MODEL h INPUT (n BIGINT) OUTPUT (half BIGINT, what STRING) WITH ('provider' = 'halves')"
    )
    environment.execute_sql(
        "CREATE TABLE t (n INT) WITH ('connector' = 'datagen', 'fields.n.kind' = 'sequence', 'fields.n.start' = '1', "
        "'fields.n.end' = '5')"
    )
    query = "SELECT * FROM TABLE(ML_PREDICT(TABLE t, MODEL h, DESCRIPTOR(n)))"
    both = ("half", "other half")
    assert sorted(_rows(environment, query)) == [(n, n // 2, what) for n in (2, 4) for what in both]
    with pytest.raises(ValidationError, match="Require async mode, but model provider halves doesn't"):
        _rows(environment, "SELECT * FROM ML_PREDICT(TABLE t, MODEL h, DESCRIPTOR(n), MAP['async', 'true'])")


@pytest.mark.parametrize("parallelism", [1, 3])
def test_calls_under_way_are_part_of_savepoints(parallelism: int, tmp_path: Path) -> None:
    """A job is stopped while the service does not answer; restored, it writes each row once."""
    goes_on = threading.Event()

    def answer(body: dict[str, Any]) -> Answer:
        if int(body["messages"][-1]["content"]) > 5:
            goes_on.wait(60)
        return _echo(body)

    with model_server(answer) as server:
        first = _numbers(server, tmp_path, 2)
        client = first.execute_sql(_WRITE).get_job_client()
        assert client is not None
        eventually(partial(_check_running, server))
        stopped = client.stop_with_savepoint(False, str(tmp_path / "savepoints"))
        goes_on.set()
        savepoint = stopped.result()
        second = _numbers(server, tmp_path, parallelism)
        second.get_config().set("execution.state-recovery.path", savepoint)
        second.execute_sql(_WRITE).wait()
    written = "".join(path.read_text() for path in (tmp_path / "out").iterdir() if not path.name.startswith("."))
    assert sorted(map(int, written.split())) == list(range(1, 21))


def _check_running(server: ModelServer) -> None:
    assert server.running >= 3


_WRITE = "INSERT INTO written SELECT answer FROM ML_PREDICT(TABLE numbers, MODEL m, DESCRIPTOR(text))"


def _numbers(server: ModelServer, path: Path, parallelism: int) -> TableEnvironment:
    environment = _environment(parallelism=parallelism)
    configuration = environment.get_config().get_configuration()
    configuration.set(checkpointing_options.CHECKPOINTING_INTERVAL, Duration.of_millis(50))
    environment.execute_sql(
        "CREATE TABLE numbers (n BIGINT, text AS CAST(n AS STRING)) WITH ('connector' = 'datagen', "
        "'fields.n.kind' = 'sequence', 'fields.n.start' = '1', 'fields.n.end' = '20')"
    )
    environment.execute_sql(
        f"CREATE TABLE written (n STRING) WITH ('connector' = 'filesystem', 'path' = '{path}/out', 'format' = 'csv')"
    )
    _model(environment, server)
    return environment
