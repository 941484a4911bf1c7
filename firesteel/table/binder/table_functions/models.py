"""ML_PREDICT in FROM: the rows of a table beside what a model returns for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from sqlglot import exp

from firesteel.config.option_values import to_duration
from firesteel.table.bound.errors import ValidationError
from firesteel.table.bound.nodes import Cast, InputRef
from firesteel.table.casts.implicit import supports_implicit_cast
from firesteel.table.connector.model import BoundModel
from firesteel.table.parser import nodes
from firesteel.table.plan.correlates import MLPredict, PredictOptions
from firesteel.table.plan.nodes import LogicalNode, Project

__all__ = ["MODEL_FUNCTIONS", "ResolveModel", "bind_ml_predict", "no_models"]

MODEL_FUNCTIONS = ("ML_PREDICT",)
_PARAMETERS = ("INPUT", "MODEL", "ARGS", "CONFIG")
_SIGNATURE = "ML_PREDICT(TABLE table_name, MODEL model_name, DESCRIPTOR(columns), MAP['async', 'true', …])"
BindTable = Callable[[exp.Expression], LogicalNode]
ResolveModel = Callable[[Sequence[str]], BoundModel]


def no_models(path: Sequence[str]) -> BoundModel:
    """Finds no model."""
    raise ValidationError(f"Object '{'.'.join(path)}' not found")


def bind_ml_predict(call: nodes.Call, bind_table: BindTable, resolve_model: ResolveModel) -> LogicalNode:
    """The relation of a call."""
    arguments = _arguments(call)
    missing = [name for name in _PARAMETERS[:3] if name not in arguments]
    if missing:
        raise ValidationError(
            f"No match found for function signature ML_PREDICT: the argument {missing[0]} is missing.",
            hint=f"Write {_SIGNATURE}.",
        )
    node = _input(arguments["INPUT"], bind_table)
    model = _model(arguments["MODEL"], resolve_model)
    columns = _columns(arguments["ARGS"], node, model)
    options = _options(arguments.get("CONFIG"))
    return _over_arguments(node, columns, model, options)


def _arguments(call: nodes.Call) -> dict[str, exp.Expression]:
    """The arguments by parameter; those without a name come first."""
    found: dict[str, exp.Expression] = {}
    if len(call.expressions) > len(_PARAMETERS):
        raise ValidationError(f"ML_PREDICT takes at most {len(_PARAMETERS)} arguments.", hint=f"Write {_SIGNATURE}.")
    for parameter, argument in zip(_PARAMETERS, call.expressions, strict=False):
        is_named = isinstance(argument, exp.Kwarg)
        key = argument.this.name if is_named else parameter
        if key not in _PARAMETERS:
            near = f"; did you mean '{key.upper()}'?" if key.upper() in _PARAMETERS else ""
            raise ValidationError(
                f"Param '{key}' not found in function 'ML_PREDICT'{near}",
                hint=f"The parameters are {', '.join(_PARAMETERS)}.",
            )
        if key in found:
            raise ValidationError(f"ML_PREDICT has two arguments for the parameter '{key}'.")
        found[key] = argument.expression if is_named else argument
    return found


def _input(table: exp.Expression, bind_table: BindTable) -> LogicalNode:
    if isinstance(table, nodes.TableArgument):
        for clause, what in (("partition_by", "PARTITION BY"), ("order", "ORDER BY")):
            if table.args.get(clause):
                raise ValidationError(
                    "Only tables with set semantics may be partitioned or ordered. The input of 'ML_PREDICT' has row "
                    "semantics.",
                    hint=f"Remove {what}.",
                )
        return bind_table(table.this)
    if not isinstance(table, (exp.Subquery, exp.Query)):
        raise ValidationError("The first argument of ML_PREDICT has to be a table.", hint=f"Write {_SIGNATURE}.")
    return bind_table(table)


def _model(argument: exp.Expression, resolve_model: ResolveModel) -> BoundModel:
    if not isinstance(argument, nodes.ModelArgument):
        raise ValidationError("Second operand must be a model identifier.", hint=f"Write {_SIGNATURE}.")
    return resolve_model([part.name for part in argument.this.parts])


def _columns(descriptor: exp.Expression, node: LogicalNode, model: BoundModel) -> tuple[int, ...]:
    if not isinstance(descriptor, nodes.Call) or descriptor.function_name != "DESCRIPTOR":
        raise ValidationError("The third argument of ML_PREDICT has to be a descriptor.", hint=f"Write {_SIGNATURE}.")
    fields, wanted = node.row_type.fields, model.input_type.fields
    names = [(nodes.column_path(column) or ("",))[-1] for column in descriptor.expressions]
    if len(names) != len(wanted):
        raise ValidationError(
            f"Number of descriptor columns ({len(names)}) does not match model input size ({len(wanted)})."
        )
    known = [part.name for part in fields]
    places = []
    for position, (name, target) in enumerate(zip(names, wanted, strict=True)):
        if name not in known:
            raise ValidationError(
                f"Descriptor column '{name}' not found in table columns. Available columns: {', '.join(known)}."
            )
        place = known.index(str(name))
        source = fields[place].type
        if not supports_implicit_cast(source, target.type):
            raise ValidationError(
                f"Descriptor column '{name}' type {source.as_summary_string()} cannot be assigned to model input type "
                f"{target.type.as_summary_string()} at position {position}.",
                hint="CAST the column in a query: ML_PREDICT(TABLE (SELECT …), …).",
            )
        places.append(place)
    return tuple(places)


def _options(argument: exp.Expression | None) -> PredictOptions:
    if argument is None or isinstance(argument, nodes.DefaultValue):
        return PredictOptions()
    if not isinstance(argument, nodes.MapConstructor):
        raise ValidationError("Config param should be a MAP.", hint=f"Write {_SIGNATURE}.")
    texts = []
    for part in argument.expressions:
        while isinstance(part, exp.Cast):
            part = part.this
        if not isinstance(part, exp.Literal) or not part.is_string:
            raise ValidationError("Config parameter should be a MAP data type consisting of String literals.")
        texts.append(part.name)
    return _parsed(dict(zip(texts[::2], texts[1::2], strict=True)))


def _parsed(config: Mapping[str, str]) -> PredictOptions:
    """The options of a call; those that ML_PREDICT does not know have no effect, as in Flink."""

    def failed(key: str, hint: str) -> ValidationError:
        return ValidationError(f"Failed to parse the config: '{key}' is '{config[key]}'.", hint=hint)

    mode = config.get("async", "").lower()
    if mode not in ("", "true", "false"):
        raise failed("async", "Use 'true' or 'false'.")
    order = config.get("output-mode", "").upper()
    if order not in ("", "ORDERED", "ALLOW_UNORDERED"):
        raise failed("output-mode", "Use 'ORDERED' or 'ALLOW_UNORDERED'.")
    count, timeout_ms = None, None
    if "max-concurrent-operations" in config:
        try:
            count = int(config["max-concurrent-operations"])
        except ValueError:
            raise failed("max-concurrent-operations", "It is a number.") from None
        if count <= 0:
            raise ValidationError(
                f"Invalid runtime config option 'max-concurrent-operations'. Its value should be positive integer but "
                f"was {count}."
            )
    if "timeout" in config:
        try:
            timeout_ms = to_duration(config["timeout"]).to_millis()
        except ValueError:
            raise failed("timeout", "It is a time, such as '30 s'.") from None
    return PredictOptions(
        None if not mode else mode == "true", None if not order else order == "ORDERED", count, timeout_ms
    )


def _over_arguments(
    node: LogicalNode, columns: tuple[int, ...], model: BoundModel, options: PredictOptions
) -> LogicalNode:
    """The call, over a projection with the arguments as the model takes them if they have other types."""
    fields, wanted = node.row_type.fields, model.input_type.fields
    plain = MLPredict(node, model, columns, options)
    if all(fields[place].type.copy() == target.type.copy() for place, target in zip(columns, wanted, strict=True)):
        return plain
    own = [InputRef(part.type, index, part.name) for index, part in enumerate(fields)]
    added = [
        Cast(target.type.copy(fields[place].type.nullable), own[place], False)
        for place, target in zip(columns, wanted, strict=True)
    ]
    names = (*node.row_type.field_names, *(f"$argument{index}" for index in range(len(added))))
    below = Project(node, (*own, *added), names)
    predicted = MLPredict(below, model, tuple(range(len(own), len(names))), options)
    kept = [*range(len(own)), *range(len(names), len(predicted.row_type.fields))]
    results = plain.row_type.field_names
    references = tuple(
        InputRef(predicted.row_type.fields[index].type, index, name) for index, name in zip(kept, results, strict=True)
    )
    return Project(predicted, references, tuple(results))
