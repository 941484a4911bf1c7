"""Bytecode analysis of small functions.

Each Python version has instructions of its own, and what their arguments mean changes as well: ``RETURN_CONST`` of
3.12 has a constant for an argument, which must be compared with its type, as ``1 == True``. So the instructions that
an expression may be compiled to are listed for each version. Code with any other, and any code in a version that is
not listed, has no shape.
"""

from __future__ import annotations

import dis
import sys
from types import CodeType
from typing import Any

__all__ = ["shape_of"]

_CONSTANTS = frozenset({"LOAD_CONST", "RETURN_CONST", "KW_NAMES"})
"""Their argument is the place of a constant, which need not be the same in code that does the same."""


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_EVERYWHERE = _names(
    "BINARY_SUBSCR BUILD_CONST_KEY_MAP BUILD_LIST BUILD_MAP BUILD_SLICE BUILD_STRING BUILD_TUPLE CALL_FUNCTION_EX "
    "COMPARE_OP CONTAINS_OP DICT_MERGE DICT_UPDATE IS_OP LIST_EXTEND LOAD_ATTR LOAD_CONST LOAD_DEREF LOAD_FAST "
    "LOAD_GLOBAL NOP POP_TOP RETURN_VALUE UNARY_INVERT UNARY_NEGATIVE UNARY_NOT"
)
_SINCE_3_11 = _EVERYWHERE | _names("BINARY_OP CALL COPY COPY_FREE_VARS PUSH_NULL RESUME SWAP")
_SINCE_3_12 = _SINCE_3_11 | _names(
    "BINARY_SLICE CALL_INTRINSIC_1 POP_JUMP_IF_FALSE POP_JUMP_IF_NONE POP_JUMP_IF_NOT_NONE POP_JUMP_IF_TRUE "
    "RETURN_CONST"
)
_KNOWN: dict[tuple[int, int], frozenset[str]] = {
    (3, 10): _EVERYWHERE
    | _names(
        "BINARY_ADD BINARY_AND BINARY_FLOOR_DIVIDE BINARY_LSHIFT BINARY_MATRIX_MULTIPLY BINARY_MODULO BINARY_MULTIPLY "
        "BINARY_OR BINARY_POWER BINARY_RSHIFT BINARY_SUBTRACT BINARY_TRUE_DIVIDE BINARY_XOR CALL_FUNCTION "
        "CALL_FUNCTION_KW CALL_METHOD DUP_TOP FORMAT_VALUE JUMP_FORWARD JUMP_IF_FALSE_OR_POP JUMP_IF_TRUE_OR_POP "
        "LIST_TO_TUPLE LOAD_METHOD POP_JUMP_IF_FALSE POP_JUMP_IF_TRUE ROT_THREE ROT_TWO UNARY_POSITIVE"
    ),
    (3, 11): _SINCE_3_11
    | _names(
        "FORMAT_VALUE JUMP_FORWARD JUMP_IF_FALSE_OR_POP JUMP_IF_TRUE_OR_POP KW_NAMES LIST_TO_TUPLE LOAD_METHOD "
        "POP_JUMP_FORWARD_IF_FALSE POP_JUMP_FORWARD_IF_NONE POP_JUMP_FORWARD_IF_NOT_NONE POP_JUMP_FORWARD_IF_TRUE "
        "PRECALL UNARY_POSITIVE"
    ),
    (3, 12): _SINCE_3_12 | _names("FORMAT_VALUE JUMP_FORWARD KW_NAMES"),
    (3, 13): _SINCE_3_12
    | _names("CALL_KW CONVERT_VALUE FORMAT_SIMPLE FORMAT_WITH_SPEC JUMP_FORWARD LOAD_FAST_LOAD_FAST TO_BOOL"),
}


def shape_of(code: CodeType) -> tuple[Any, ...] | None:
    """Names and instructions of an expression's code, equal for code that does the same; None if it is not known.

    >>> one, other = (lambda x: 1), (lambda x: True)
    >>> shape_of(one.__code__) == shape_of(other.__code__)
    False
    """
    known = _KNOWN.get(sys.version_info[:2])
    if known is None:
        return None
    instructions: list[Any] = []
    for instruction in dis.get_instructions(code):
        name, argument = instruction.opname, instruction.arg
        if name not in known:
            return None
        if name in _CONSTANTS:
            # not argval, which in some versions is the place, too
            constant = code.co_consts[argument or 0]
            instructions.append((name, type(constant), repr(constant)))
        else:
            # with the same names the same argument means the same; it has bits that argval does not show
            instructions.append((name, argument))
    return code.co_names, code.co_varnames, code.co_freevars, tuple(instructions)
