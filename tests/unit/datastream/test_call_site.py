"""The line of user code in errors."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import pytest

import firesteel
from firesteel.datastream.streams.call_site import user_call_site


def _in_file(path: str) -> Any:
    """A function that passes its call on, as if it were in another file."""
    names: dict[str, Any] = {}
    exec(compile("def passes_on(call): return call()", path, "exec"), names)
    return names["passes_on"]


@pytest.mark.parametrize(
    "path", [str(Path(firesteel.__file__).parent / "some_module.py"), "<frozen runpy>", "/venv/bin/firesteel"]
)
def test_lines_of_the_product_and_of_its_command_are_not_the_users(path: str) -> None:
    place = functools.singledispatch(_in_file(path))(user_call_site)
    assert place is not None
    assert place.startswith(f"{__file__}:")


def test_a_program_of_that_name_is_the_users() -> None:
    assert _in_file("/home/user/firesteel.py")(user_call_site) == "/home/user/firesteel.py:1"
