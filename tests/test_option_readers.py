"""docs/configuration.md shows as in effect exactly those options that some part reads."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from firesteel.common import Configuration
from firesteel.config.options import all_options
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.testing.in_process import InProcessExecutor

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "scripts"))

import generate_docs  # noqa: E402
import option_readers  # noqa: E402

S3_TIMEOUT = "s3.upload.timeout"


def test_what_nothing_reads_has_a_reason() -> None:
    unread = {key for key, packages in option_readers.readers().items() if not packages}
    explained = set(generate_docs.WITHOUT_EFFECT)
    where = "WITHOUT_EFFECT in scripts/generate_docs.py"
    assert not unread - explained, f"nothing reads these options: use them, or give the reason in {where}"
    assert not explained - unread, f"these options are read, or do not exist: remove them from {where}"


def test_the_page_has_each_option_in_its_section() -> None:
    page = generate_docs.configuration_page()
    in_effect, _, without = page.partition("## Accepted without effect")
    shown = [set(re.findall(r"^\| `([^`]+)`", section, re.MULTILINE)) for section in (in_effect, without)]
    assert shown[0] == {key for key, packages in option_readers.readers().items() if packages}
    assert shown[1] == {option.key for option in all_options()} - shown[0]


@pytest.mark.parametrize(
    "text",
    [
        "from firesteel.config import s3_options\nt = configuration.get(s3_options.S3_UPLOAD_TIMEOUT)",
        "from firesteel.config import s3_options as o\nt = configuration.get(o.S3_UPLOAD_TIMEOUT)",
        "from firesteel.config.s3_options import S3_UPLOAD_TIMEOUT\nt = get(S3_UPLOAD_TIMEOUT)",
        "from firesteel.config.s3_options import S3_UPLOAD_TIMEOUT as T\nTABLE = {'timeout': T}",
        "import firesteel.config.s3_options\nseconds(c, option=firesteel.config.s3_options.S3_UPLOAD_TIMEOUT)",
        "import firesteel.config.s3_options as o\nALL = (o.S3_UPLOAD_TIMEOUT,)",
        "def f(c):\n    from firesteel.config import s3_options\n    return c.get(s3_options.S3_UPLOAD_TIMEOUT)",
        "async def f(c):\n    from firesteel.config.s3_options import S3_UPLOAD_TIMEOUT\n    c.get(S3_UPLOAD_TIMEOUT)",
        "if a:\n    from firesteel.config import s3_options\nc.get(s3_options.S3_UPLOAD_TIMEOUT)",
        "try:\n    pass\nexcept E:\n    from firesteel.config import s3_options\nc.get(s3_options.S3_UPLOAD_TIMEOUT)",
        "t = settings.get('s3.upload.timeout')",
        "t = settings['s3.upload.timeout']",
        "t = 's3.upload.timeout' in settings",
    ],
)
def test_a_read_is_found(text: str) -> None:
    assert option_readers.readers_in({"firesteel.runtime.example": text})[S3_TIMEOUT] == ["runtime"]


def test_a_read_through_another_module_is_found() -> None:
    modules = {
        "firesteel.runtime.one": "from firesteel.config.s3_options import S3_UPLOAD_TIMEOUT",
        "firesteel.spark.two": "from firesteel.runtime import one\none_timeout = get(one.S3_UPLOAD_TIMEOUT)",
    }
    assert option_readers.readers_in(modules)[S3_TIMEOUT] == ["spark"]


@pytest.mark.parametrize(
    ("module", "text"),
    [
        ("runtime.example", "from firesteel.config.s3_options import S3_UPLOAD_TIMEOUT"),
        ("runtime.example", "from firesteel.config import s3_options\nc.set(s3_options.S3_UPLOAD_TIMEOUT, 1)"),
        ("runtime.example", "from firesteel.config import s3_options\ns[s3_options.S3_UPLOAD_TIMEOUT.key] = 1"),
        ("runtime.example", "from firesteel.config import s3_options\nraise E(f'{s3_options.S3_UPLOAD_TIMEOUT.key}')"),
        ("runtime.example", "from other import s3_options\nc.get(s3_options.S3_UPLOAD_TIMEOUT)"),
        ("runtime.example", "from firesteel.config import s3_options as o\ndef f(o):\n    c.get(o.S3_UPLOAD_TIMEOUT)"),
        ("runtime.example", "c.get(S3_UPLOAD_TIMEOUT)"),
        ("runtime.example", "settings['s3.upload.timeout'] = 1"),
        ("runtime.example", "settings = {'s3.upload.timeout': 1}"),
        ("runtime.example", "# configuration.get(s3_options.S3_UPLOAD_TIMEOUT)"),
        ("testing.example", "settings.get('s3.upload.timeout')"),
        ("common.example", "def get_upload_timeout():\n    return configuration.get_string('s3.upload.timeout', '')"),
    ],
)
def test_what_is_no_read(module: str, text: str) -> None:
    assert option_readers.readers_in({f"firesteel.{module}": text})[S3_TIMEOUT] == []


@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
def test_what_a_job_reads_is_shown_as_read(backend: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compares what the syntax trees say with what happens."""
    observed: set[tuple[str, str]] = set()

    def observe(name: str) -> None:
        original = getattr(Configuration, name)

        def observed_method(self, option, *rest):
            module = sys._getframe(1).f_globals["__name__"].split(".")
            if module[0] == "firesteel" and module[1] not in ("common", "config", "datastream", "testing"):
                observed.add((getattr(option, "key", option), module[1]))
            return original(self, option, *rest)

        monkeypatch.setattr(Configuration, name, observed_method)

    for name in ("get", "get_optional", "contains"):
        observe(name)
    settings = {
        "execution.checkpointing.interval": "10 ms",
        "execution.checkpointing.dir": str(tmp_path),
        "state.backend.type": backend,
        "restart-strategy.type": "fixed-delay",
        "parallelism.default": "2",
    }
    env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(settings))
    env._executor = InProcessExecutor()
    with env.from_collection(list(range(50))).key_by(lambda n: n % 3).sum().execute_and_collect() as results:
        assert len(list(results)) == 50
    assert len(observed) > 30
    read_by = option_readers.readers()
    missing = {(key, package) for key, package in observed if key in read_by and package not in read_by[key]}
    assert not missing
