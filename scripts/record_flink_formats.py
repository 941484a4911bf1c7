"""Records what Flink's formats make of messages and of values: ``python scripts/record_flink_formats.py``.

Runs with the Python of an installation of PyFlink 2.3. Reads the cases of tests/unit/table/formats/recorded.json
and writes their results into it: for "decode" the row of each message as text, "ERROR" for one that fails, "SKIPPED"
for one that makes no row; for "encode" the text of each value. Schemas of the formats run without a job.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pyflink.java_gateway import get_gateway
from pyflink.table import EnvironmentSettings, TableEnvironment

HERE = Path(__file__).parents[1] / "tests" / "unit" / "table" / "formats"
FLINK = "org.apache.flink"


class Recorder:
    """Formats of Flink, driven through Py4J."""

    def __init__(self) -> None:
        self.env = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
        self.env.get_config().set("parallelism.default", "1")
        self.env.get_config().set("table.local-time-zone", "UTC")
        self.gateway = get_gateway()
        self.jvm = self.gateway.jvm

    def data_type(self, type_: str) -> Any:
        table = self.env.sql_query(f"SELECT CAST(NULL AS {type_}) AS a, CAST(NULL AS INT) AS n")
        return table._j_table.getResolvedSchema().toPhysicalRowDataType()

    def converter(self, data_type: Any) -> Any:
        jvm = self.jvm.org.apache.flink.table
        converter = jvm.data.conversion.DataStructureConverters.getConverter(data_type)
        converter.open(self.jvm.java.lang.Thread.currentThread().getContextClassLoader())
        return converter

    def timestamps(self, options: dict[str, str]) -> Any:
        formats = self.jvm.org.apache.flink.formats.common.TimestampFormat
        return formats.ISO_8601 if options.get("json.timestamp-format.standard") == "ISO-8601" else formats.SQL

    def deserializer(self, data_type: Any, options: dict[str, str]) -> Any:
        row_type = data_type.getLogicalType()
        info = self.jvm.org.apache.flink.table.runtime.typeutils.InternalTypeInfo.of(row_type)
        formats = self.jvm.org.apache.flink.formats
        if options["format"] == "json":
            schema = formats.json.JsonParserRowDataDeserializationSchema(
                row_type,
                info,
                options.get("json.fail-on-missing-field") == "true",
                options.get("json.ignore-parse-errors") == "true",
                self.timestamps(options),
            )
        else:
            builder = formats.csv.CsvRowDataDeserializationSchema.Builder(row_type, info)
            builder.setIgnoreParseErrors(options.get("csv.ignore-parse-errors") == "true")
            builder.setAllowComments(options.get("csv.allow-comments") == "true")
            self.set_csv(builder, options)
            schema = builder.build()
        schema.open(None)
        return schema

    def set_csv(self, builder: Any, options: dict[str, str]) -> None:
        for key, method in (
            ("field-delimiter", builder.setFieldDelimiter),
            ("quote-character", builder.setQuoteCharacter),
            ("escape-character", builder.setEscapeCharacter),
        ):
            if f"csv.{key}" in options:
                method(options[f"csv.{key}"])
        if options.get("csv.disable-quote-character") == "true":
            builder.disableQuoteCharacter()
        if "csv.array-element-delimiter" in options:
            builder.setArrayElementDelimiter(options["csv.array-element-delimiter"])
        if "csv.null-literal" in options:
            builder.setNullLiteral(options["csv.null-literal"])

    def decode(self, type_: str, messages: list[str], options: dict[str, str]) -> list[str]:
        data_type = self.data_type(type_)
        schema, converter = self.deserializer(data_type, options), self.converter(data_type)
        results = []
        for message in messages:
            try:
                row = schema.deserialize(message.encode())
                results.append("SKIPPED" if row is None else converter.toExternalOrNull(row).toString())
            except Exception as error:
                if "py4j.Py4JException" in str(error) and "does not exist" in str(error):
                    raise
                results.append("ERROR")
        return results

    def serializer(self, data_type: Any, options: dict[str, str]) -> Any:
        row_type = data_type.getLogicalType()
        formats = self.jvm.org.apache.flink.formats
        if options["format"] == "json":
            modes = formats.json.JsonFormatOptions.MapNullKeyMode
            schema = formats.json.JsonRowDataSerializationSchema(
                row_type,
                self.timestamps(options),
                modes.valueOf(options.get("json.map-null-key.mode", "FAIL")),
                options.get("json.map-null-key.literal", "null"),
                options.get("json.encode.decimal-as-plain-number") == "true",
                options.get("json.encode.ignore-null-fields") == "true",
            )
        else:
            builder = formats.csv.CsvRowDataSerializationSchema.Builder(row_type)
            self.set_csv(builder, options)
            builder.setWriteBigDecimalInScientificNotation(
                options.get("csv.write-bigdecimal-in-scientific-notation") != "false"
            )
            schema = builder.build()
        schema.open(None)
        return schema

    def encode(self, type_: str, values: list[str], options: dict[str, str]) -> list[str]:
        data_type = self.data_type(type_)
        schema, converter = self.serializer(data_type, options), self.converter(data_type)
        # one query for all values of a type
        texts = ", ".join(f"ROW(CAST({value} AS {type_}), 1)" for value in values)
        found = self.env.execute_sql(f"SELECT {texts}")._j_table_result.collect().next()
        results = []
        for index in range(len(values)):
            try:
                results.append(bytes(schema.serialize(converter.toInternal(found.getField(index)))).decode())
            except Exception as error:  # noqa: BLE001 - any error of Flink
                print(type_, values[index], str(error)[:300])  # noqa: T201
                results.append("ERROR")
        return results


def main() -> None:
    recorder = Recorder()
    recorded = []
    for case in json.loads((HERE / "recorded.json").read_text()):
        how = recorder.decode if case["do"] == "decode" else recorder.encode
        results = how(case["type"], case["inputs"], case["options"])
        recorded.append({**case, "results": results})
        print(case["do"], case["type"], case["options"], results, flush=True)  # noqa: T201
    (HERE / "recorded.json").write_text(json.dumps(recorded, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
