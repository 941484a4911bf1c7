"""Documents as JSON: parsed, changed, selected, grouped by a nested field, written as JSON lines."""

import json
import logging
import sys
import tempfile
from pathlib import Path

from pyflink.common import Encoder, Row, Types
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.datastream.connectors.file_system import FileSink

DOCUMENTS = [
    (1, '{"title": "Rivers", "pages": 120, "place": {"country": "France", "city": "Lyon"}}'),
    (2, '{"title": "Bridges", "pages": 80, "place": {"country": "Italy", "city": "Rome"}}'),
    (3, '{"title": "Towers", "pages": 200, "place": {"country": "Italy", "city": "Pisa"}}'),
    (4, '{"title": "Gärten", "pages": 0, "place": {"country": "Austria", "city": "Wien"}}'),
]


def parsed(document):
    content = json.loads(document.content)
    content["pages"] += 1
    return document.id, content


def main():
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(message)s")
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    named = Types.ROW_NAMED(["id", "content"], [Types.INT(), Types.STRING()])
    documents = env.from_collection(collection=DOCUMENTS, type_info=named)
    documents.map(parsed).print("parsed")
    documents.map(parsed).filter(lambda pair: "Italy" in pair[1]["place"]["country"]).print("from Italy")
    pages = documents.map(
        lambda document: (json.loads(document.content)["place"]["country"], json.loads(document.content)["pages"])
    )
    pages.key_by(lambda pair: pair[0]).sum(1).print("pages")
    documents.map(
        lambda document: Row(document.id, json.loads(document.content)["place"]),
        Types.ROW([Types.INT(), Types.MAP(Types.STRING(), Types.STRING())]),
    ).filter(lambda row: row[1]["city"] != "Rome").map(lambda row: f"{row[0]} {row[1]['city']}", Types.STRING()).print(
        "cities"
    )
    with tempfile.TemporaryDirectory() as directory:
        lines = documents.map(lambda document: json.dumps(parsed(document)[1], ensure_ascii=False), Types.STRING())
        lines.sink_to(FileSink.for_row_format(directory, Encoder.simple_string_encoder("UTF-8")).build())
        env.execute()
        for path in Path(directory).rglob("*part-*"):
            print(path.read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
