"""Configuration options are declared once, by the module of their owner."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from types import ModuleType

import pytest

import firesteel.config
from firesteel.config.options import OWNERS, all_options, declared_options

owners = pytest.mark.parametrize("owner", OWNERS, ids=lambda owner: owner.__name__.rpartition(".")[2])


def test_every_module_of_options_is_known() -> None:
    folder = Path(str(firesteel.config.__file__)).parent
    modules = {f"firesteel.config.{file.stem}" for file in folder.glob("*_options.py")}
    assert modules == {owner.__name__ for owner in OWNERS}, "add the module to OWNERS in firesteel/config/options.py"


@owners
def test_a_module_exports_the_options_that_it_declares(owner: ModuleType) -> None:
    assert sorted(owner.__all__) == sorted(declared_options(owner)), f"complete __all__ of {owner.__name__}"


@owners
def test_every_option_has_a_description(owner: ModuleType) -> None:
    missing = [name for name, option in declared_options(owner).items() if not option.description]
    assert not missing, f"call with_description in {owner.__name__}"


def test_a_key_belongs_to_one_option() -> None:
    counts = Counter(key for option in all_options() for key in (option.key, *option.fallback_keys))
    assert [key for key, count in counts.items() if count > 1] == []
