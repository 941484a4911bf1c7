"""Ships the modules and files beside a program with its job, so that slots do not need them."""

from __future__ import annotations

import io
import os
import sys
import sysconfig
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

import cloudpickle

import firesteel

__all__ = ["program_archive", "program_modules", "program_roots", "shipped_by_value"]


@contextmanager
def shipped_by_value(roots: Sequence[str]) -> Iterator[None]:
    """While it lasts, functions and classes of modules below the directories are pickled with their definitions.

    The cluster can import what is installed, but not what lies beside the program.
    """
    registered: list[ModuleType] = []
    known = cloudpickle.list_registry_pickle_by_value()
    try:
        for module in program_modules(roots):
            if module.__name__ not in known:
                cloudpickle.register_pickle_by_value(module)
                registered.append(module)
        yield
    finally:
        for module in registered:
            cloudpickle.unregister_pickle_by_value(module)


def program_roots(search_path: Sequence[str] = ()) -> list[str]:
    """The directories whose modules other machines do not have: the script's, the current one, and further ones."""
    script = getattr(sys.modules.get("__main__"), "__file__", None)
    beside = [str(Path(script).resolve().parent)] if script else []
    return [*beside, os.getcwd(), *search_path]  # noqa: PTH109


def program_archive(roots: Sequence[str]) -> bytes | None:
    """A zip archive of the modules that are loaded from below the directories; None if there are none.

    A package is taken whole, as its functions may import other modules of it later. The same files give the same bytes.
    """
    files: dict[str, Path] = {}
    for module in program_modules(roots):
        name, _, rest = module.__name__.partition(".")
        if rest:
            continue
        for place in map(Path, getattr(module, "__path__", ())):
            files |= {f"{name}/{path.relative_to(place).as_posix()}": path for path in place.rglob("*.py")}
        if not hasattr(module, "__path__") and module.__file__:
            files[Path(module.__file__).name] = Path(module.__file__)
    if not files:
        return None
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(files):
            archive.writestr(zipfile.ZipInfo(name), files[name].read_bytes())
    return content.getvalue()


def program_modules(roots: Sequence[str]) -> list[ModuleType]:
    """The modules that are loaded from below the directories, except those that are installed there."""
    below = [os.path.join(os.path.realpath(root), "") for root in roots]  # noqa: PTH118
    installed = [os.path.join(os.path.realpath(path), "") for path in _installed()]  # noqa: PTH118
    found = []
    for name, module in list(sys.modules.items()):
        if name == "__main__" or name.partition(".")[0] == "firesteel" or not isinstance(module, ModuleType):
            continue
        if getattr(module, "__name__", None) != name:
            continue
        places = [os.path.realpath(place) for place in _places(module)]
        if places and all(
            place.startswith(tuple(below)) and not place.startswith(tuple(installed)) for place in places
        ):
            found.append(module)
    return found


def _places(module: ModuleType) -> list[str]:
    file = getattr(module, "__file__", None)
    if file:
        return [str(file)]
    path = getattr(module, "__path__", None)
    return [str(place) for place in path or ()]


def _installed() -> set[str]:
    """Where the interpreter's own modules and those that were installed are."""
    names = ("stdlib", "platstdlib", "purelib", "platlib")
    package = str(Path(firesteel.__file__).parent)
    return {package, *(sysconfig.get_path(name) for name in names), *_site_packages()}


def _site_packages() -> list[str]:
    return [entry for entry in sys.path if Path(entry).name in ("site-packages", "dist-packages")]
