"""Secrets never appear in what people see, and texts of users cannot control a terminal or forge a log."""

from __future__ import annotations

import json
import logging
from urllib.parse import quote

import pytest

from firesteel.cluster.diagnostics.logs import LogFormatter
from firesteel.common import Configuration
from firesteel.common.errors import JobExecutionError, TaskFailure
from firesteel.config.configuration import shown
from firesteel.config.redaction import HIDDEN, Redactor, hide_passwords, is_sensitive, printable
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.testing.in_process import InProcessExecutor

SECRET = "wJalrXUtnFEMI"


@pytest.mark.parametrize(
    "key",
    [
        "s3.access-key",
        "s3.access.key",
        "fs.s3a.secret.key",
        "db.passwd",
        "gcs.credentials",
        "spark.hadoop.fs.azure.account.key.x",
        "my.private-key",
        "sasl.jaas.config",
        "SOME_API_KEY",
    ],
)
def test_keys_whose_values_are_secrets(key: str) -> None:
    assert is_sensitive(key)
    assert shown(key, SECRET) == HIDDEN


@pytest.mark.parametrize("key", ["parallelism.default", "security.ssl.rest.key", "state.backend.type"])
def test_other_keys(key: str) -> None:
    assert not is_sensitive(key)


@pytest.mark.parametrize(
    "text",
    [
        f"postgresql://me:{SECRET}@db:5432/shop",
        f"jdbc:postgresql://db/shop?user=me&password={SECRET}",
        f"could not connect to amqp://:{SECRET}@host/",
        f"amqp://me:one@{SECRET}@host/",
        f"host=db user=me password={SECRET} dbname=shop",
        f"password = '{SECRET} and \\' {SECRET}' host=db",
        f'Server=db;Pwd="{SECRET} {SECRET}";Database=shop',
    ],
)
def test_passwords_in_urls(text: str) -> None:
    assert SECRET not in hide_passwords(text)
    assert SECRET not in shown("my.url", text)
    assert SECRET not in str(Configuration().set_string("my.url", text))


@pytest.mark.parametrize(
    "text",
    [
        "http://localhost:8081/jobs",
        "s3://bucket/a@b",
        "mail me@here.org",
        "a:b@c",
        "the token is gone",
        "token = next(tokens)",
    ],
)
def test_other_texts_stay(text: str) -> None:
    assert hide_passwords(text) == text


def test_a_long_word_takes_no_longer_than_many_short_ones() -> None:
    # in quadratic time, this would take hours
    word = "x" * 1_000_000
    assert hide_passwords(f"{word} postgresql://me:geheim@db") == f"{word} postgresql://me:******@db"


def test_all_texts_of_a_failure() -> None:
    failure = TaskFailure(f"refused {SECRET}", element=repr(SECRET), traceback=f"…{SECRET}…", subtask=3)
    cleaned = Redactor({"s3.secret-key": SECRET, "short.secret": "x"}).clean_failure(failure)
    assert cleaned == TaskFailure(f"refused {HIDDEN}", element=f"'{HIDDEN}'", traceback=f"…{HIDDEN}…", subtask=3)


@pytest.mark.parametrize("secret", ['it\'s "so"', "back\\slash", "-----BEGIN KEY-----\nMIIE\n", "grün&gelb", "a b/c"])
def test_secrets_in_every_spelling(secret: str) -> None:
    redactor = Redactor({"my.private-key": secret})
    texts = [secret, repr(secret), repr(f"'{secret}"), repr((secret, '"')), json.dumps(secret), quote(secret, safe="")]
    for text in texts:
        cleaned = redactor.clean(f"refused: {text}")
        assert HIDDEN in cleaned, text
        assert not any(part in cleaned for part in ("so", "slash", "MIIE", "gelb", "b/c", "b%2Fc")), cleaned


def test_a_job_that_fails_on_its_own_secret_does_not_show_it() -> None:
    def refuse(value: str) -> str:
        raise PermissionError(f"the key {value} is not valid")

    configuration = Configuration().set_string("s3.secret-key", SECRET)
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env._executor = InProcessExecutor()
    env.from_collection([SECRET]).map(refuse).print()
    with pytest.raises(JobExecutionError) as raised:
        env.execute()
    failure = raised.value.failure
    assert failure.error_type == "PermissionError"
    assert failure.element == f"'{HIDDEN}'"
    assert SECRET not in f"{raised.value}{failure}{failure.traceback}"


def test_control_characters_are_escaped() -> None:
    assert printable("a\x1b]0;title\x07\tb\nc\x9b") == "a\\x1b]0;title\\x07\tb\nc\\x9b"
    assert printable("grün 日本") == "grün 日本"


def test_a_name_with_a_newline_is_no_other_line_of_the_log() -> None:
    formatter = LogFormatter("%(asctime)s %(levelname)s %(message)s")
    record = logging.LogRecord(
        "x", logging.INFO, __file__, 1, "Job '%s' ended.", ("a\n2026-01-01 INFO b\x1b[2J",), None
    )
    first, second = formatter.format(record).splitlines()
    assert "Job 'a" in first
    assert second == "    2026-01-01 INFO b\\x1b[2J' ended."
