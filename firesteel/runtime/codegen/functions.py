"""User functions as callables."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from firesteel.types.conversion import NEVER, Bind

__all__ = ["ConvertedFunction", "converted_function", "direct_call", "method_of", "program_function"]


class ConvertedFunction(ABC):
    """A function of the program whose result is converted.

    Generated code calls the function of the program itself, or contains its body, and converts the results that do not
    pass a test.
    """

    call: Callable[[Any], Any]
    """The function of the program."""

    keeps_longs = False
    """Whether every int of 64 bits stays as it is."""

    @abstractmethod
    def test(self, result: str, bind: Bind) -> str:
        """Writes the condition under which a result stays as it is; the first name in it is that of the result."""

    @abstractmethod
    def convert(self, result: Any) -> Any:
        """Converts a result."""

    def write(self, result: str, call: str, bind: Bind) -> str:
        """Writes the expression of the converted result, which assigns the result of the call to a variable."""
        convert = bind("convert", self.convert)
        test = self.test(result, bind)
        if test == NEVER:
            return f"{convert}({call})"
        return f"({result} if {test.replace(result, f'({result} := {call})', 1)} else {convert}({result}))"


def method_of(function: Any, name: str) -> Callable[..., Any]:
    """A Function object's method, or the bare callable itself."""
    method: Callable[..., Any] | None = getattr(function, name, None)
    return method if callable(method) else function


def converted_function(function: Any) -> ConvertedFunction | None:
    """Returns the object that a callable is the method of, if it converts results of the program's function."""
    owner = getattr(function, "__self__", None)
    return owner if isinstance(owner, ConvertedFunction) else None


def program_function(function: Any) -> Any:
    """Returns the function of the program if another one converts its results, else the function itself."""
    return function.call if isinstance(function, ConvertedFunction) else function


def direct_call(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Returns a function that does the same with fewer calls."""
    converted = converted_function(function)
    if converted is None:
        return function
    names: dict[str, Any] = {"call": converted.call}

    def bind(hint: str, value: Any) -> str:
        name = f"{hint}_{len(names)}"
        names[name] = value
        return name

    text = f"lambda value: {converted.write('result', 'call(value)', bind)}"
    # the name of the file tells a failure's account that the frame is not one of the program's
    direct: Callable[[Any], Any] = eval(compile(text, __file__, "eval"), names)  # noqa: S307 - our own text
    return direct
