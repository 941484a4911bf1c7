"""Row as a value: fields, names, kinds, equality, text."""

from pyflink.common import Row, RowKind


def main():
    row = Row(name="Ada", age=36)
    print(row, row.name, row["age"], row[0], len(row), list(row), row.as_dict())
    print(Row("Ada", 36), Row(), Row(None), Row("a")[0])
    person = Row("name", "age")
    print(person, person("Bob", 5), "name" in row)
    row["age"] = 37
    row[0] = "Eve"
    print(row, row == Row(name="Eve", age=37), row == Row("Eve", 37), Row(1) == Row(1), Row(1) != Row(2))
    changed = Row(1, 2)
    changed.set_row_kind(RowKind.DELETE)
    print(changed, changed.get_row_kind(), Row.of_kind(RowKind.UPDATE_AFTER, 1, 2).get_row_kind())
    changed.set_field_names(["x", "y"])
    print(changed, changed.x, changed.get_fields_by_names(["y", "x"]))
    print([str(kind) for kind in RowKind], RowKind.INSERT.name, RowKind(3))
    print(Row(Row(1, "a"), [Row(2)]), Row(a=Row(b=1)).as_dict(True))


if __name__ == "__main__":
    main()
