"""Rows with names: iterated over, compared, changed, as classes, nested, and through functions."""

from pyflink.common import Row, RowKind, Types
from pyflink.datastream import StreamExecutionEnvironment

PERSON = Types.ROW_NAMED(
    ["name", "age", "address"],
    [Types.STRING(), Types.INT(), Types.ROW_NAMED(["city", "zip"], [Types.STRING(), Types.INT()])],
)


def fields(row):
    parts = [f"{name}={value}" for name, value in zip(row.as_dict(), row)]
    return f"{len(row)} {parts} {row.address.city} {row['age']} {row[0]} {'name' in row.as_dict()}"


def older(row):
    row["age"] = row["age"] + 1
    row["name"] = row["name"].upper()
    row[2] = Row(city=row[2].city, zip=row[2].zip + 1)
    return row


def renamed(row):
    values = row.as_dict(True)
    other = Row(*values)
    other.set_field_names(["first", "years", "where"])
    return repr(other)


def main():
    ada = Row(name="ada", age=36, address=Row(city="london", zip=1))
    print(ada, repr(ada), ada == Row("ada", 36, Row("london", 1)), list(ada), list(ada.as_dict()))
    Point = Row("x", "y")
    point = Point(1, 2)
    print(point, point.x, point.y, point.as_dict(), hash(point) == hash(Point(1, 2)))
    point.set_row_kind(RowKind.DELETE)
    print(point, point.get_row_kind(), Row.of_kind(RowKind.UPDATE_AFTER, 1, None))
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    people = env.from_collection([ada, Row("bob", 5, Row("rome", None))], PERSON)
    people.print("people")
    people.map(fields, Types.STRING()).print("fields")
    people.filter(lambda row: row.address.zip is not None).map(older, PERSON).print("older")
    people.map(renamed, Types.STRING()).print("renamed")
    people.map(lambda row: Row(row.address, row.name), Types.ROW([PERSON.get_field_types()[2], Types.STRING()])).map(
        lambda row: f"{row[0].city} {row[1]} {len(row)}", Types.STRING()
    ).print("unnamed")
    people.key_by(lambda row: row.name, Types.STRING()).reduce(lambda a, b: b).map(
        lambda row: row.address.city, Types.STRING()
    ).print("keyed")
    people.key_by(lambda row: row.address, PERSON.get_field_types()[2]).map(lambda row: row.age, Types.INT()).print(
        "keyed by a row"
    )
    people.map(lambda row: row).map(lambda row: f"{type(row).__name__} {row.name}").print("untyped")
    env.execute()


if __name__ == "__main__":
    main()
