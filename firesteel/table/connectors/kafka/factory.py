"""The options of the connectors ``kafka`` and ``upsert-kafka``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from firesteel.config.option import ConfigOptions
from firesteel.connectors.kafka.source.offsets import KafkaOffsetResetStrategy, KafkaOffsetsInitializer
from firesteel.connectors.kafka.topics import KafkaTopicPartition
from firesteel.spi.sink import DeliveryGuarantee
from firesteel.table.bound.errors import ValidationError
from firesteel.table.catalog.resolved_schema import ResolvedSchema
from firesteel.table.connector.factory import DynamicTableFactory, FactoryContext, check_options
from firesteel.table.connector.format import BUILT_IN_FORMATS, FormatFactory, find_format
from firesteel.table.connector.options import option_of, required_option
from firesteel.table.connectors.kafka.sink import KafkaTableSink
from firesteel.table.connectors.kafka.source import KafkaTableSource, Subscription
from firesteel.table.connectors.sinks import PARALLELISM
from firesteel.types.logical import LogicalType

__all__ = ["FACTORY", "UPSERT_FACTORY"]

_key = ConfigOptions.key
SERVERS = _key("properties.bootstrap.servers").string_type().no_default_value()
TOPIC = _key("topic").string_type().as_list().no_default_value()
PATTERN = _key("topic-pattern").string_type().no_default_value()
START = _key("scan.startup.mode").string_type().default_value("group-offsets")
START_OFFSETS = _key("scan.startup.specific-offsets").string_type().no_default_value()
START_TIMESTAMP = _key("scan.startup.timestamp-millis").long_type().no_default_value()
STOP = _key("scan.bounded.mode").string_type().default_value("unbounded")
STOP_OFFSETS = _key("scan.bounded.specific-offsets").string_type().no_default_value()
STOP_TIMESTAMP = _key("scan.bounded.timestamp-millis").long_type().no_default_value()
DISCOVERY = _key("scan.topic-partition-discovery.interval").duration_type().no_default_value()
KEY_FIELDS = _key("key.fields").string_type().as_list().no_default_value()
KEY_PREFIX = _key("key.fields-prefix").string_type().default_value("")
INCLUDE = _key("value.fields-include").string_type().default_value("ALL")
GUARANTEE = _key("sink.delivery-guarantee").string_type().default_value("at-least-once")
ID_PREFIX = _key("sink.transactional-id-prefix").string_type().no_default_value()
_GUARANTEES = {
    "none": DeliveryGuarantee.NONE,
    "at-least-once": DeliveryGuarantee.AT_LEAST_ONCE,
    "exactly-once": DeliveryGuarantee.EXACTLY_ONCE,
}
_OWN = (
    SERVERS,
    TOPIC,
    PATTERN,
    START,
    START_OFFSETS,
    START_TIMESTAMP,
    STOP,
    STOP_OFFSETS,
    STOP_TIMESTAMP,
    DISCOVERY,
    KEY_FIELDS,
    KEY_PREFIX,
    INCLUDE,
    GUARANTEE,
    ID_PREFIX,
    PARALLELISM,
)
_FORMATS = tuple(f"{name}." for name in BUILT_IN_FORMATS)
"""Options of formats, which are checked when the format is found."""
Found = tuple[FormatFactory, dict[str, str]]


class _Factory(DynamicTableFactory):
    identifier = "kafka"
    required_options: tuple[str, ...] = (SERVERS.key,)
    optional_options = (*(option.key for option in _OWN), "properties.", "format", "key.", "value.", *_FORMATS)
    is_upsert = False

    def create_source(self, context: FactoryContext) -> KafkaTableSource:
        value, key = self._formats(context)
        key_columns = _key_columns(context, self.is_upsert)
        is_except = option_of(context.options, INCLUDE) == "EXCEPT_KEY"
        values, keys = _parts(context, key_columns, is_except)
        decoding = value[0].create_decoding_format(values, value[1])
        # as in Flink, a column that key and value both have is read from the value
        from_key = key_columns if is_except or self.is_upsert else ()
        return KafkaTableSource(
            _subscription(context, self.is_upsert),
            context.physical_type,
            decoding,
            None if key is None else key[0].create_decoding_format(keys, key[1]),
            from_key,
            is_upsert=self.is_upsert,
        )

    def create_sink(self, context: FactoryContext) -> KafkaTableSink:
        options = context.options
        value, key = self._formats(context)
        topics = option_of(options, TOPIC)
        if topics is None or len(topics) != 1:
            raise ValidationError("A Kafka sink needs exactly one topic: use the option 'topic'.")
        guarantee = option_of(options, GUARANTEE)
        if guarantee not in _GUARANTEES:
            raise ValidationError(
                f"Invalid value for option '{GUARANTEE.key}'.\n\nCould not parse value '{guarantee}' for key "
                f"'{GUARANTEE.key}'.",
                hint=f"Known: {', '.join(_GUARANTEES)}.",
            )
        prefix = option_of(options, ID_PREFIX)
        if guarantee == "exactly-once" and prefix is None:
            raise ValidationError(f"{ID_PREFIX.key} must be specified when using DeliveryGuarantee.EXACTLY_ONCE.")
        key_columns = _key_columns(context, self.is_upsert)
        values, keys = _parts(context, key_columns, option_of(options, INCLUDE) == "EXCEPT_KEY")
        return KafkaTableSink(
            topics[0],
            _properties(options),
            value[0].create_encoding_format(values, value[1]),
            None if key is None else key[0].create_encoding_format(keys, key[1]),
            key_columns,
            values.physical_type.field_names,
            _GUARANTEES[guarantee],
            prefix,
            option_of(options, PARALLELISM),
            self.is_upsert,
        )

    def _formats(self, context: FactoryContext) -> tuple[Found, Found | None]:
        key = find_format(context, "key.format")
        if {"format", "value.format"} <= context.options.keys():
            raise ValidationError("Options 'format' and 'value.format' are given both: use one of them.")
        value = find_format(context, "value.format") or find_format(context, "format")
        if value is None:
            raise ValidationError("A format is missing: use the option 'format' or 'value.format'.")
        known = {*(option.key for option in _OWN), "properties.", *value[2], *(() if key is None else key[2])}
        check_options(self.identifier, context.options, self.required_options, known)
        include = option_of(context.options, INCLUDE)
        if include not in ("ALL", "EXCEPT_KEY"):
            raise ValidationError(
                f"Invalid value for option '{INCLUDE.key}'.\n\nCould not parse value '{include}' for key "
                f"'{INCLUDE.key}'.",
                hint="Known: ALL, EXCEPT_KEY.",
            )
        self._check_key(context, key is not None)
        return value[:2], None if key is None else key[:2]

    def _check_key(self, context: FactoryContext, has_format: bool) -> None:
        has_fields = option_of(context.options, KEY_FIELDS) is not None
        if context.schema.primary_key is not None:
            name = context.options.get("value.format", context.options.get("format"))
            if name in ("json", "csv", "raw", "avro"):
                raise ValidationError(
                    f"The Kafka table '{context.identifier.as_summary_string()}' with '{name}' format doesn't support "
                    "defining PRIMARY KEY constraint on the table, because it can't guarantee the semantic of primary "
                    "key.",
                    hint="Use the connector 'upsert-kafka'.",
                )
        if has_fields != has_format:
            missing = "key.format" if has_fields else "key.fields"
            raise ValidationError(
                f"The options 'key.fields' and 'key.format' are used together: '{missing}' is missing."
            )


class _UpsertFactory(_Factory):
    identifier = "upsert-kafka"
    required_options = (SERVERS.key, TOPIC.key, "key.format", "value.format")
    is_upsert = True

    def _check_key(self, context: FactoryContext, has_format: bool) -> None:
        if context.schema.primary_key is None:
            raise ValidationError(
                "'upsert-kafka' tables require to define a PRIMARY KEY constraint. The PRIMARY KEY specifies which "
                "columns should be read from or write to the Kafka message key. The PRIMARY KEY also defines records "
                "in the 'upsert-kafka' table should update or delete on which keys."
            )
        for option in (START, KEY_FIELDS, PATTERN):
            if option.key in context.options:
                raise ValidationError(
                    f"Unsupported options found for 'upsert-kafka'.\n\nUnsupported options:\n\n{option.key}"
                )


def _key_columns(context: FactoryContext, is_upsert: bool) -> tuple[tuple[str, str], ...]:
    """The columns of the key, each with its name in the key."""
    prefix = option_of(context.options, KEY_PREFIX)
    if is_upsert:
        assert context.schema.primary_key is not None
        fields: list[str] = list(context.schema.primary_key.columns)
    else:
        found: list[str] | None = option_of(context.options, KEY_FIELDS)
        fields = found or []
    names = [part.name for part in context.physical_type.fields]
    for field in fields:
        if field not in names:
            raise ValidationError(
                f"Could not find the field '{field}' in the table schema for usage in the key format. A key field must "
                f"be a regular, physical column. The following columns can be selected in the 'key.fields' option: "
                f"{names}"
            )
        if not field.startswith(prefix):
            raise ValidationError(
                f"All fields in 'key.fields' must be prefixed with '{prefix}' when option 'key.fields-prefix' is set "
                f"but field '{field}' is not prefixed."
            )
    return tuple((field, field.removeprefix(prefix)) for field in fields)


def _parts(
    context: FactoryContext, key_columns: Sequence[tuple[str, str]], is_except: bool
) -> tuple[FactoryContext, FactoryContext]:
    """The table as the formats of values and of keys see it."""
    types = {part.name: part.type for part in context.physical_type.fields}
    left_out = {name for name, _ in key_columns} if is_except else set()
    values = {name: type_ for name, type_ in types.items() if name not in left_out}
    keys = {inner: types[name] for name, inner in key_columns}
    return _of_columns(context, values), _of_columns(context, keys)


def _of_columns(context: FactoryContext, columns: Mapping[str, LogicalType]) -> FactoryContext:
    return replace(context, schema=ResolvedSchema.physical(list(columns), list(columns.values())))


def _properties(options: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    prefix = "properties."
    return tuple((key.removeprefix(prefix), value) for key, value in sorted(options.items()) if key.startswith(prefix))


def _subscription(context: FactoryContext, is_upsert: bool) -> Subscription:
    options = context.options
    topics, pattern = option_of(options, TOPIC), option_of(options, PATTERN)
    if (topics is None) == (pattern is None):
        raise ValidationError("Either 'topic' or 'topic-pattern' must be set, and not both.")
    properties = dict(_properties(options))
    discovery = option_of(options, DISCOVERY)
    if discovery is not None:
        properties["partition.discovery.interval.ms"] = str(discovery.to_millis())
    described = ", ".join(f"{key}={value}" for key, value in sorted(options.items()) if key.startswith("scan."))
    return Subscription(
        tuple(topics or ()),
        pattern,
        tuple(sorted(properties.items())),
        KafkaOffsetsInitializer.earliest() if is_upsert else _start(options, topics),
        _stop(options, topics),
        described,
    )


def _start(options: Mapping[str, str], topics: list[str] | None) -> KafkaOffsetsInitializer:
    def committed() -> KafkaOffsetsInitializer:
        strategy = options.get("properties.auto.offset.reset", "none").upper()
        return KafkaOffsetsInitializer.committed_offsets(KafkaOffsetResetStrategy[strategy])

    return _offsets(
        options,
        "scan.startup",
        {
            "earliest-offset": KafkaOffsetsInitializer.earliest,
            "latest-offset": KafkaOffsetsInitializer.latest,
            "group-offsets": committed,
            "timestamp": lambda: KafkaOffsetsInitializer.timestamp(required_option(options, START_TIMESTAMP)),
            "specific-offsets": lambda: _specific(required_option(options, START_OFFSETS), topics),
        },
        option_of(options, START),
    )


def _stop(options: Mapping[str, str], topics: list[str] | None) -> KafkaOffsetsInitializer | None:
    mode = option_of(options, STOP)
    if mode == "unbounded":
        return None
    return _offsets(
        options,
        "scan.bounded",
        {
            "latest-offset": KafkaOffsetsInitializer.latest,
            "group-offsets": KafkaOffsetsInitializer.committed_offsets,
            "timestamp": lambda: KafkaOffsetsInitializer.timestamp(required_option(options, STOP_TIMESTAMP)),
            "specific-offsets": lambda: _specific(required_option(options, STOP_OFFSETS), topics),
        },
        mode,
    )


def _offsets(
    options: Mapping[str, str], prefix: str, modes: Mapping[str, Callable[[], KafkaOffsetsInitializer]], mode: str
) -> KafkaOffsetsInitializer:
    if mode not in modes:
        raise ValidationError(
            f"Invalid value for option '{prefix}.mode'.\n\nCould not parse value '{mode}' for key '{prefix}.mode'.",
            hint=f"Known: {', '.join(modes)}.",
        )
    if mode == "group-offsets" and "properties.group.id" not in options:
        raise ValidationError(f"'properties.group.id' is required for '{prefix}.mode' = 'group-offsets'.")
    return modes[mode]()


def _specific(text: str, topics: list[str] | None) -> KafkaOffsetsInitializer:
    """Offsets as ``partition:0,offset:42;partition:1,offset:300``."""
    offsets = {}
    try:
        for part in filter(None, text.split(";")):
            entries = dict(one.split(":", 1) for one in part.split(","))
            for topic in topics or ():
                offsets[KafkaTopicPartition(topic, int(entries["partition"]))] = int(entries["offset"])
    except (KeyError, ValueError):
        raise ValidationError(
            "Invalid properties 'specific-offsets' should follow the format "
            f"'partition:0,offset:42;partition:1,offset:300', but is '{text}'."
        ) from None
    return KafkaOffsetsInitializer.offsets(offsets)


FACTORY = _Factory()
UPSERT_FACTORY = _UpsertFactory()
