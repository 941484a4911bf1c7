"""Copies of records and state values, for where a value must not be shared with a function that may change it.

``copy_value`` returns an immutable value itself and a deep copy of anything else, as ``copy.deepcopy`` makes it: an
object that occurs twice in a value is one object in the copy too. Plain data (lists, dicts, sets, tuples, ``Row``,
dataclasses and other objects without a copy protocol of their own) is copied here, in a fraction of the time. Parts
that Python cannot copy, such as an open file, a lock or a generator, are in the copy as they are.
"""

from __future__ import annotations

import copy
import copyreg
import datetime as dt
import decimal
import enum
import fractions
import ipaddress
import pathlib
import pickle
import re
import sys
import types
import uuid
import weakref
import zoneinfo
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Collection, Iterable
from functools import partial
from itertools import chain
from typing import Any, TypeVar

from firesteel.common.time import Duration, Instant, Time
from firesteel.common.types import Row, RowKind
from firesteel.common.windows import CountWindow, GlobalWindow, TimeWindow

__all__ = ["IMMUTABLE", "are_immutable", "copy_all", "copy_flat", "copy_known_flat", "copy_value", "is_fixed"]

IMMUTABLE: frozenset[type] = frozenset(
    {
        *(type(None), bool, int, float, complex, str, bytes, range, type(...), type(NotImplemented)),
        *(dt.date, dt.datetime, dt.time, dt.timedelta, dt.timezone, zoneinfo.ZoneInfo),
        *(decimal.Decimal, fractions.Fraction, uuid.UUID, re.Pattern),
        *(pathlib.PurePosixPath, pathlib.PureWindowsPath, type(pathlib.Path())),
        *(ipaddress.IPv4Address, ipaddress.IPv4Network, ipaddress.IPv6Address, ipaddress.IPv6Network),
        *(type, types.FunctionType, types.BuiltinFunctionType, types.ModuleType, types.CodeType, weakref.ref),
        *(RowKind, Duration, Instant, Time, TimeWindow, CountWindow, GlobalWindow),
    }
)
"""Types whose values never change. (``copy.deepcopy`` does not copy functions, classes and modules either.)"""

_are_atoms = IMMUTABLE.issuperset
_CONTAINERS = frozenset({list, dict, tuple, set, type(None), bool, int, float, str, bytes})
"""Types that are pickled without a look at their class."""
_dumps, _loads = pickle.dumps, pickle.loads
_new_row = Row.__new__
C = TypeVar("C", bound=Collection[Any])
Memo = dict[int, Any]
Copier = Callable[[Any, Memo], Any]


def copy_value(value: Any) -> Any:
    """The value itself if nothing in it can change, else a deep copy."""
    kind = value.__class__
    if kind in IMMUTABLE:
        return value
    if kind is tuple:
        for member in value:
            if member.__class__ not in IMMUTABLE and not (member.__class__ is tuple and is_fixed(member)):
                break
        else:
            return value
        copied = _copy_tuple_of_flat(value)
    else:
        copied = copy_flat(value)
    if copied is not None:
        return copied
    if kind in _CONTAINERS and _CONTAINERS.issuperset(map(type, value.values() if kind is dict else value)):
        # nested plain data: pickle is written in C
        try:
            return _loads(_dumps(value, 5))
        except Exception:  # noqa: BLE001 - objects inside may raise anything
            return _copy(value, {})
    return _copy(value, {})


def copy_flat(value: Any) -> Any:
    """A copy of a list, dict, set, row or object whose members are of immutable types, else None.

    Frozen dataclasses and named tuples of such members are returned themselves. A loop is no slower here than functions
    written in C, and much quicker to start. Keys of dicts are shared: they must not change anyway.
    """
    kind = value.__class__
    if kind is dict:
        for member in value.values():
            if member.__class__ not in IMMUTABLE:
                return None
        return value.copy()
    if kind is list or kind is set:
        for member in value:
            if member.__class__ not in IMMUTABLE:
                return None
        return value.copy()
    if kind is Row:
        for member in value._values:
            if member.__class__ not in IMMUTABLE:
                return None
        return _copy_flat_row(value)
    copier = _flat_copiers.get(kind)
    return None if copier is None else copier(value)


def copy_known_flat(value: Any) -> Any:
    """A copy of what ``copy_flat`` has returned; an immutable value itself."""
    kind = value.__class__
    if kind in IMMUTABLE or kind is tuple:
        return value
    if kind is Row:
        return _copy_flat_row(value)
    return value.copy() if kind in _CONTAINERS else copy_flat(value)


def _copy_flat_row(value: Row) -> Row:
    row = _new_row(Row)
    row._fields, row._row_kind, row._values = value._fields, value._row_kind, value._values.copy()
    return row


def _copy_tuple_of_flat(value: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """A copy of a tuple with one member that can change, and that is flat; else None."""
    members = list(value)
    place = -1
    for i, member in enumerate(members):
        if member.__class__ not in IMMUTABLE and not (member.__class__ is tuple and is_fixed(member)):
            if place >= 0:
                return None
            place = i
    members[place] = copied = copy_flat(members[place])
    return None if copied is None else tuple(members)


def is_fixed(value: tuple[Any, ...]) -> bool:
    """Whether nothing in a tuple can change."""
    for member in value:
        if member.__class__ not in IMMUTABLE and not (member.__class__ is tuple and is_fixed(member)):
            return False
    return True


def copy_all(values: C) -> C | list[Any]:
    """Copies of several values, which share nothing with each other; the collection itself if all are immutable."""
    return values if are_immutable(values) else list(map(copy_value, values))


def are_immutable(values: Iterable[Any]) -> bool:
    """Whether all values are of immutable types, or tuples of such values."""
    kinds = set(map(type, values))
    if _are_atoms(kinds):
        return True
    if not _are_atoms(kinds - {tuple}):
        return False
    if len(kinds) > 1:
        values = [value for value in values if value.__class__ is tuple]
    return _are_atoms(map(type, chain.from_iterable(values)))


# -- copying of any value ---------------------------------------------------------------------------


def _copy(value: Any, memo: Memo) -> Any:
    kind = value.__class__
    if kind in IMMUTABLE:
        return value
    known = memo.get(id(value))
    if known is not None:
        return known
    copier = _copiers.get(kind)
    if copier is None:
        copier = _find_copier(kind)
    return copier(value, memo)


def _copy_list(value: list[Any], memo: Memo) -> list[Any]:
    if are_immutable(value):
        made = memo[id(value)] = value.copy()
        return made
    made = memo[id(value)] = []
    add = made.append
    for member in value:
        add(member if member.__class__ in IMMUTABLE else _copy(member, memo))
    return made


def _copy_dict(value: dict[Any, Any], memo: Memo) -> dict[Any, Any]:
    return _fill_dict({}, value, memo)


def _fill_dict(made: dict[Any, Any], value: dict[Any, Any], memo: Memo) -> dict[Any, Any]:
    memo[id(value)] = made
    for key, member in value.items():
        made[key] = member if member.__class__ in IMMUTABLE else _copy(member, memo)
    return made


def _copy_defaultdict(value: defaultdict[Any, Any], memo: Memo) -> dict[Any, Any]:
    return _fill_dict(defaultdict(value.default_factory), value, memo)


def _copy_ordered_dict(value: OrderedDict[Any, Any], memo: Memo) -> dict[Any, Any]:
    return _fill_dict(OrderedDict(), value, memo)


def _copy_deque(value: deque[Any], memo: Memo) -> deque[Any]:
    made: deque[Any] = deque(maxlen=value.maxlen)
    memo[id(value)] = made
    made.extend(member if member.__class__ in IMMUTABLE else _copy(member, memo) for member in value)
    return made


def _copy_set(value: set[Any], memo: Memo) -> set[Any]:
    made = memo[id(value)] = value.copy() if are_immutable(value) else {_copy(member, memo) for member in value}
    return made


def _copy_frozenset(value: frozenset[Any], memo: Memo) -> frozenset[Any]:
    return value if are_immutable(value) else frozenset(_copy(member, memo) for member in value)


def _copy_bytearray(value: bytearray, memo: Memo) -> bytearray:
    made = memo[id(value)] = value.copy()
    return made


def _copy_tuple(value: tuple[Any, ...], memo: Memo) -> tuple[Any, ...]:
    return _copy_tuple_as(tuple, value, memo)


def _copy_tuple_as(kind: Any, value: tuple[Any, ...], memo: Memo) -> tuple[Any, ...]:
    members = [member if member.__class__ in IMMUTABLE else _copy(member, memo) for member in value]
    for member, original in zip(members, value, strict=True):
        if member is not original:
            break
    else:
        return value
    # a tuple that contains itself, by way of a list, has been copied meanwhile
    known: tuple[Any, ...] | None = memo.get(id(value))
    if known is None:
        known = memo[id(value)] = tuple.__new__(kind, members)
    return known


def _copy_row(value: Row, memo: Memo) -> Row:
    made = memo[id(value)] = _new_row(Row)
    made._fields = value._fields
    made._row_kind = value._row_kind
    made._values = _copy_list(value._values, memo)
    return made


def _copy_object(slots: tuple[str, ...], value: Any, memo: Memo) -> Any:
    """An object whose state is its attributes alone."""
    made = memo[id(value)] = _new(value.__class__)
    fields = getattr(value, "__dict__", None)
    if fields:
        if _are_atoms(map(type, fields.values())):
            made.__dict__.update(fields)
        else:
            _fill_dict(made.__dict__, fields, memo)
    for slot in slots:
        try:
            member = getattr(value, slot)
        except AttributeError:
            continue
        _set(made, slot, member if member.__class__ in IMMUTABLE else _copy(member, memo))
    return made


_new = object.__new__
_set = object.__setattr__


def _copy_flat_object(value: Any) -> Any:
    fields = value.__dict__
    for member in fields.values():
        if member.__class__ not in IMMUTABLE:
            return None
    made = _new(value.__class__)
    made.__dict__.update(fields)
    return made


def _flat_frozen(value: Any) -> Any:
    for member in value.__dict__.values():
        if member.__class__ not in IMMUTABLE:
            return None
    return value


def _flat_named_tuple(value: Any) -> Any:
    return value if is_fixed(value) else None


def _copy_frozen(slots: tuple[str, ...], value: Any, memo: Memo) -> Any:
    """A frozen dataclass: the object itself if all its fields are immutable."""
    fields = getattr(value, "__dict__", None)
    members = [*fields.values()] if fields else []
    members += [getattr(value, slot, None) for slot in slots]
    return value if are_immutable(members) else _copy_object(slots, value, memo)


def _copy_not(value: Any, _memo: Memo) -> Any:
    return value


# -- how values of a class are copied ---------------------------------------------------------------

_BUILT_IN: dict[type, Copier] = {
    list: _copy_list,
    dict: _copy_dict,
    tuple: _copy_tuple,
    set: _copy_set,
    frozenset: _copy_frozenset,
    bytearray: _copy_bytearray,
    deque: _copy_deque,
    defaultdict: _copy_defaultdict,
    OrderedDict: _copy_ordered_dict,
    Row: _copy_row,
}
_copiers: dict[type, Copier] = dict(_BUILT_IN)
_MAX_COPIERS = 1_000
_flat_copiers: dict[type, Callable[[Any], Any]] = {}
"""For classes, once an object of theirs was copied: copy it if its members are immutable, or return None."""
_NOT_COPYABLE = (TypeError, copy.Error, pickle.PicklingError)
"""What Python raises for an object that stands for something outside of the program."""


def _find_copier(kind: type) -> Copier:
    if len(_copiers) >= _MAX_COPIERS:
        # classes of jobs that have ended are not kept for ever
        _copiers.clear()
        _flat_copiers.clear()
        _copiers.update(_BUILT_IN)
    copier = _copiers[kind] = _make_copier(kind)
    return copier


def _make_copier(kind: type) -> Copier:
    if issubclass(kind, (enum.Enum, type)) or _is_numpy_scalar(kind):
        return _copy_not
    if kind.__bases__ == (tuple,) and hasattr(kind, "_fields") and not _has_dict(kind):
        # a named tuple
        _flat_copiers[kind] = _flat_named_tuple
        return partial(_copy_tuple_as, kind)
    if kind.__new__ is not object.__new__ or _has_protocol(kind) or not _is_written_in_python(kind):
        return _copy_by_protocol
    slots = tuple(copyreg._slotnames(kind))  # type: ignore[attr-defined]
    is_frozen = _is_frozen_dataclass(kind)
    if not slots:
        _flat_copiers[kind] = _flat_frozen if is_frozen else _copy_flat_object
    return partial(_copy_frozen if is_frozen else _copy_object, slots)


def _copy_by_protocol(value: Any, memo: Memo) -> Any:
    try:
        return copy.deepcopy(value, memo)
    except _NOT_COPYABLE:
        return value
    except Exception:
        if hasattr(type(value), "__deepcopy__"):
            raise
        return value  # what cannot be made again from its parts is passed on; if it is sent, an error is raised then


def _has_protocol(kind: type) -> bool:
    """Whether a class defines how its objects are copied or pickled."""
    if kind in copyreg.dispatch_table or any(
        hasattr(kind, name) for name in ("__deepcopy__", "__getnewargs__", "__getnewargs_ex__")
    ):
        return True
    if any(getattr(kind, name) is not getattr(object, name) for name in ("__reduce__", "__reduce_ex__")):
        return True
    # a frozen dataclass with slots has got both of these, which do what is done here
    own = [getattr(kind, name, None) for name in ("__getstate__", "__setstate__")]
    if own[0] is getattr(object, "__getstate__", None):
        own[0] = None
    return any(method is not None and method.__module__ != "dataclasses" for method in own)


def _is_written_in_python(kind: type) -> bool:
    if hasattr(kind, "__del__"):
        return False  # copied as Python does, not made for a try
    try:
        _new(kind)
    except TypeError:
        return False
    return True


def _is_frozen_dataclass(kind: type) -> bool:
    parameters = kind.__dict__.get("__dataclass_params__")
    return parameters is not None and bool(parameters.frozen)


def _has_dict(kind: type) -> bool:
    return bool(kind.__dictoffset__)


def _is_numpy_scalar(kind: type) -> bool:
    numpy = sys.modules.get("numpy")
    return numpy is not None and issubclass(kind, (numpy.number, numpy.bool_, numpy.datetime64, numpy.timedelta64))
