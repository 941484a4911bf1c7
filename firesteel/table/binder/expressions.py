"""Binds expressions: parsed nodes become typed ones, with explicit casts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from sqlglot import exp

from firesteel.table.binder import literals
from firesteel.table.binder.calls import call, case_of, cast_to
from firesteel.table.binder.conditional import CONDITIONAL, overlaps
from firesteel.table.binder.places import place_of
from firesteel.table.binder.scope import Scope, field_of, item_of
from firesteel.table.binder.user_functions import user_function
from firesteel.table.bound.errors import Position, ValidationError
from firesteel.table.bound.nodes import Call, Cast, Expression, Literal
from firesteel.table.bound.session import Session
from firesteel.table.casts.rules import supports_cast
from firesteel.table.functions.definition import FunctionKind
from firesteel.table.functions.json_functions import is_json
from firesteel.table.functions.registry import OPERATORS as OPERATOR_FUNCTIONS
from firesteel.table.functions.registry import find_function, unknown_function
from firesteel.table.inference.families import is_boolean, is_character, is_integer, is_interval, is_null, is_variant
from firesteel.table.parser import nodes
from firesteel.table.parser.types import to_logical_type
from firesteel.types import logical as t

__all__ = ["OPERATORS", "ExpressionBinder"]

OPERATORS: dict[type[exp.Expression], str] = {
    exp.Add: "PLUS",
    exp.Sub: "MINUS",
    exp.Mul: "TIMES",
    exp.Div: "DIVIDE",
    exp.Mod: "MOD",
    exp.EQ: "EQUALS",
    exp.NEQ: "NOT_EQUALS",
    exp.LT: "LESS_THAN",
    exp.LTE: "LESS_THAN_OR_EQUAL",
    exp.GT: "GREATER_THAN",
    exp.GTE: "GREATER_THAN_OR_EQUAL",
    exp.NullSafeEQ: "IS_NOT_DISTINCT_FROM",
    exp.NullSafeNEQ: "IS_DISTINCT_FROM",
    exp.And: "AND",
    exp.Or: "OR",
    exp.DPipe: "||",
}

_UNKNOWN_PREDICATES = ("CONTAINS", "EQUALS", "PRECEDES", "SUCCEEDS", "IMMEDIATELY PRECEDES", "IMMEDIATELY SUCCEEDS")
"""Predicates of periods that parse but do not exist; Flink has OVERLAPS only."""


_PLACES = {
    FunctionKind.AGGREGATE: "Call it in a SELECT with groups, or over a window.",
    FunctionKind.TABLE: "Call it in FROM: LATERAL TABLE(f(x)) AS T(a, b), or in join_lateral or flat_map.",
    FunctionKind.PROCESS_TABLE: "Call it in FROM: f(input => TABLE t PARTITION BY k).",
    FunctionKind.TABLE_AGGREGATE: "Call it in flat_aggregate.",
}


class ExpressionBinder:
    """Binds the expressions of one scope; ``sql`` is the text from which they were parsed, for places in errors."""

    def __init__(self, scope: Scope, sql: str = "", session: Session | None = None) -> None:
        self._scope = scope
        self._sql = sql
        self._session = session or Session()
        self._binders: dict[type[exp.Expression], Callable[..., Expression]] = {
            exp.Column: self._column,
            exp.Dot: self._dot,
            exp.Literal: self._literal,
            exp.HexString: self._hex_string,
            exp.Boolean: lambda node: Literal(t.BooleanType(nullable=False), bool(node.this)),
            exp.Null: lambda _: Literal(t.NullType(), None),
            nodes.Unknown: lambda _: Literal(t.BooleanType(), None),
            nodes.TemporalLiteral: self._temporal_literal,
            exp.Interval: self._interval,
            nodes.Call: self._call,
            nodes.Plus: self._plus,
            exp.Cast: self._cast,
            exp.TryCast: self._cast,
            exp.Case: self._case,
            exp.Not: self._not,
            exp.Is: self._is,
            exp.In: self._in,
            exp.Between: self._between,
            exp.Neg: self._negate,
            exp.Paren: lambda node: self.bind(node.this),
            exp.Like: lambda node: self._pattern("LIKE", node),
            exp.SimilarTo: lambda node: self._pattern("SIMILAR", node),
            exp.Escape: self._escape,
            exp.Tuple: lambda node: call("ROW", self._all(node.expressions)),
            exp.Array: lambda node: call("ARRAY", self._all(node.expressions)),
            nodes.MapConstructor: lambda node: call("MAP", self._all(node.expressions)),
            exp.Bracket: self._bracket,
        }

    def bind(self, node: exp.Expression) -> Expression:
        """The typed expression; ValidationError with its place if there is none."""
        try:
            bound = self._bind(node)
        except ValidationError as error:
            raise error.at(self._position(node)) from None
        if self._sql and bound.place is None and isinstance(bound, (Call, Cast)):
            return replace(bound, place=self._position(node))
        return bound

    def bind_condition(self, node: exp.Expression, clause: str) -> Expression:
        """An expression that has to be a BOOLEAN."""
        bound = self.bind(node)
        if is_null(bound.type):
            return Literal(t.BooleanType(), None)
        if not is_boolean(bound.type):
            message = f"{clause} must be a condition, but its type is {bound.type.as_summary_string()}."
            raise ValidationError(message, position=self._position(node))
        return bound

    def _position(self, node: exp.Expression) -> Position | None:
        return place_of(node, self._sql)

    def _bind(self, node: exp.Expression) -> Expression:
        operator = OPERATORS.get(type(node))
        if operator is not None:
            return call(operator, [self.bind(node.this), self.bind(node.expression)])
        binder = self._binders.get(type(node))
        if binder is None:
            raise ValidationError(f"{type(node).__name__} is not supported in an expression.")
        return binder(node)

    def _all(self, found: Sequence[exp.Expression]) -> list[Expression]:
        return [self.bind(node) for node in found]

    # names and literals

    def _column(self, node: exp.Column) -> Expression:
        path = nodes.column_path(node)
        assert path is not None
        if path == ("PI",) and not any(column.name == "PI" for column in self._scope.columns):
            return call("PI", [])
        return self._scope.resolve(path)

    def _dot(self, node: exp.Dot) -> Expression:
        path = nodes.column_path(node)
        if path is not None:
            return self._scope.resolve(path)
        return field_of(self.bind(node.this), node.expression.name)

    def _literal(self, node: exp.Literal) -> Expression:
        return literals.string_literal(node.this) if node.is_string else literals.number_literal(node.this)

    def _hex_string(self, node: exp.HexString) -> Expression:
        value = bytes.fromhex(node.this)
        return Literal(t.BinaryType(len(value), nullable=False), value)

    def _temporal_literal(self, node: nodes.TemporalLiteral) -> Expression:
        text = node.this if isinstance(node.this, str) else node.this.this
        return literals.temporal_literal(str(node.args["kind"]), text, self._session.local_time_zone)

    def _interval(self, node: exp.Interval) -> Expression:
        unit = node.args["unit"]
        parts = {name: unit.args.get(name) for name in ("start", "end")}
        text = node.this.this if isinstance(node.this, exp.Expression) else node.this
        return literals.interval_literal(text, **parts)

    def _negate(self, node: exp.Neg) -> Expression:
        operand = node.this
        if isinstance(operand, exp.Literal) and not operand.is_string:
            return literals.number_literal(f"-{operand.this}")
        bound = self.bind(operand)
        if isinstance(operand, exp.Interval) and isinstance(bound, Literal):
            return Literal(bound.type, -bound.value)
        return call("NEGATE", [bound])

    # functions

    def _call(self, node: nodes.Call) -> Expression:
        name = node.function_name
        user = user_function(node, self._session)
        if user is not None:
            if user.kind is not FunctionKind.SCALAR:
                raise ValidationError(
                    f"The {user.kind.value} function '{user.name}' cannot be called here.", hint=_PLACES[user.kind]
                )
            return call(user.name, self._all(node.expressions), user=user)
        arguments = [part for part in node.expressions if not isinstance(part, exp.Var)]
        symbols = tuple(part.name.upper() for part in node.expressions if isinstance(part, exp.Var))
        if name.startswith("JSON"):
            return self._json_call(node, name)
        if name in _UNKNOWN_PREDICATES or name in OPERATOR_FUNCTIONS:
            raise unknown_function(name)
        if node.args.get("niladic") and find_function(name) is None:
            return self._scope.resolve((str(node.this),))
        if name == "OVERLAPS":
            return overlaps([self._period(node) for node in arguments])
        bound = self._all(arguments)
        conditional = CONDITIONAL.get(name)
        if conditional is not None:
            return conditional(bound)
        if find_function(name) is None:
            others = self._session.find_function.names() if self._session.find_function is not None else ()
            raise unknown_function(name, others)
        return call(name, bound, symbols)

    def bind_table_call(self, node: nodes.Call) -> Expression:
        """The call of a table function of the user; its type is an array of rows."""
        try:
            user = user_function(node, self._session)
            return replace(call(user.name, self._all(node.expressions), user=user), place=self._position(node))
        except ValidationError as error:
            raise error.at(self._position(node)) from None

    def _plus(self, node: nodes.Plus) -> Expression:
        operands = self._all([node.this, node.expression])
        if is_character(operands[0].type):
            return call("||", [cast_to(operand, t.VarCharType()) for operand in operands])
        return call("PLUS", operands)

    def _period(self, node: exp.Expression) -> tuple[Expression, ...]:
        return tuple(self._all(node.expressions)) if isinstance(node, exp.Tuple) else (self.bind(node),)

    def _json_call(self, node: nodes.Call, name: str) -> Expression:
        """The clauses become symbols; default values, and the keys of an object, arguments."""
        arguments: list[exp.Expression] = []
        for part in node.expressions:
            arguments.extend([part.this, part.expression] if isinstance(part, exp.JSONKeyValue) else [part])
        symbols: list[str] = []
        if returning := node.args.get("returning"):
            symbols.append(f"RETURNING {self._type(returning).as_summary_string()}")
        if wrapper := node.args.get("wrapper"):
            symbols.append(f"WRAPPER {wrapper}")
        for clause in ("on_empty", "on_error"):
            if behavior := node.args.get(clause):
                symbols.append(f"{clause.replace('_', ' ').upper()} {behavior.this}")
                if behavior.args.get("value") is not None:
                    arguments.append(behavior.args["value"])
        if on_null := node.args.get("on_null"):
            symbols.append(str(on_null))
        bound = self._all(arguments)
        nested = [index for index, argument in enumerate(bound) if is_json(argument)]
        if nested:
            symbols.append(f"JSON {' '.join(map(str, nested))}")
        return call(name, bound, tuple(symbols))

    def _type(self, node: nodes.TypeName) -> t.LogicalType:
        """A type as written, or one that the Table API has given."""
        named = node.this
        return named if isinstance(named, t.LogicalType) else to_logical_type(named, self._sql)

    def _cast(self, node: exp.Cast) -> Expression:
        operand = self.bind(node.this)
        type_ = self._type(node.args["to"])
        safe = isinstance(node, exp.TryCast)
        if not supports_cast(operand.type, type_):
            raise ValidationError(
                f"Cast function cannot convert value of type {operand.type.as_summary_string()} to type "
                f"{type_.as_summary_string()}."
            )
        if isinstance(operand, Literal) and operand.value is None:
            return Literal(type_.copy(), None)
        if is_interval(type_):
            if isinstance(operand, Literal) and is_integer(operand.type) and not safe:
                return literals.interval_of_number(operand.value, type_)
            type_ = literals.stored_interval(type_)
        return Cast(type_.copy(safe or operand.type.nullable), operand, safe)

    # conditions

    def _case(self, node: exp.Case) -> Expression:
        value = node.this and self.bind(node.this)
        conditions, results = [], []
        for branch in node.args["ifs"]:
            conditions.append(self._branch(value, branch.this))
            results.append(self.bind(branch.args["true"]))
        default = node.args.get("default")
        results.append(self.bind(default) if default is not None else Literal(t.NullType(), None))
        return case_of(conditions, results)

    def _branch(self, value: Expression | None, node: exp.Expression) -> Expression:
        if value is None:
            return self._condition(self.bind(node), node)
        if not isinstance(node, exp.Tuple):
            return call("EQUALS", [value, self.bind(node)])
        first, *rest = (call("EQUALS", [value, test]) for test in self._all(node.expressions))
        for test in rest:
            first = call("OR", [first, test])
        return first

    def _condition(self, bound: Expression, node: exp.Expression) -> Expression:
        if not is_boolean(bound.type):
            raise ValidationError("Expected a boolean type.", position=self._position(node))
        return bound

    def _not(self, node: exp.Not) -> Expression:
        operand = node.this
        if isinstance(operand, exp.Is):
            return self._is(operand, negated=True)
        return call("NOT", [self.bind(operand)])

    def _is(self, node: exp.Is, negated: bool = False) -> Expression:
        operand = self.bind(node.this)
        test = node.expression
        if isinstance(test, (exp.Null, nodes.Unknown)):
            return call("IS_NOT_NULL" if negated else "IS_NULL", [operand])
        if isinstance(test, exp.Boolean):
            word = "TRUE" if test.this else "FALSE"
            return call(f"IS_NOT_{word}" if negated else f"IS_{word}", [operand])
        kind = test.name.upper().removeprefix("JSON").strip() or "VALUE"
        found = call("IS_JSON", [operand], (kind,))
        return call("NOT", [found]) if negated else found

    def _in(self, node: exp.In) -> Expression:
        if node.args.get("query") is not None or not node.expressions:
            raise ValidationError("IN with a query is not an expression of one row.")
        return call("IN", [self.bind(node.this), *self._all(node.expressions)])

    def _between(self, node: exp.Between) -> Expression:
        value, low, high = (self.bind(node.args[name]) for name in ("this", "low", "high"))

        def between(first: Expression, last: Expression) -> Expression:
            lower = call("GREATER_THAN_OR_EQUAL", [value, first])
            return call("AND", [lower, call("LESS_THAN_OR_EQUAL", [value, last])])

        if node.args.get("symmetric"):
            return call("OR", [between(low, high), between(high, low)])
        return between(low, high)

    def _pattern(self, name: str, node: exp.Binary, escape: exp.Expression | None = None) -> Expression:
        arguments = [self.bind(node.this), self.bind(node.expression)]
        if escape is not None:
            arguments.append(self.bind(escape))
        return call(name, arguments)

    def _escape(self, node: exp.Escape) -> Expression:
        name = "SIMILAR" if isinstance(node.this, exp.SimilarTo) else "LIKE"
        return self._pattern(name, node.this, node.expression)

    def _bracket(self, node: exp.Bracket) -> Expression:
        container, *keys = self.bind(node.this), *self._all(node.expressions)
        if isinstance(container.type, t.RowType) and len(keys) == 1:
            return item_of(container, keys[0])
        return call("VARIANT_AT" if is_variant(container.type) else "AT", [container, *keys])
