"""Type information as values: text, equality, parts."""

from pyflink.common import Types


def main():
    for type_info in (
        Types.STRING(),
        Types.BYTE(),
        Types.BOOLEAN(),
        Types.SHORT(),
        Types.INT(),
        Types.LONG(),
        Types.FLOAT(),
        Types.DOUBLE(),
        Types.CHAR(),
        Types.BIG_INT(),
        Types.BIG_DEC(),
        Types.INSTANT(),
        Types.SQL_DATE(),
        Types.SQL_TIME(),
        Types.SQL_TIMESTAMP(),
        Types.PICKLED_BYTE_ARRAY(),
        Types.LIST(Types.INT()),
        Types.MAP(Types.STRING(), Types.INT()),
        Types.BASIC_ARRAY(Types.LONG()),
        Types.OBJECT_ARRAY(Types.ROW([Types.INT()])),
        Types.PRIMITIVE_ARRAY(Types.BYTE()),
        Types.TUPLE([Types.STRING(), Types.INT()]),
        Types.ROW([Types.STRING(), Types.INT()]),
        Types.ROW_NAMED(["a", "b"], [Types.STRING(), Types.INT()]),
    ):
        print(type_info)
    print(Types.INT() == Types.INT(), Types.INT() == Types.LONG(), Types.LIST(Types.INT()) == Types.LIST(Types.INT()))
    row = Types.ROW_NAMED(["a", "b"], [Types.STRING(), Types.INT()])
    print(row.get_field_names(), row.get_field_types(), row == Types.ROW([Types.STRING(), Types.INT()]))
    print(Types.TUPLE([Types.STRING()]).get_field_types())


if __name__ == "__main__":
    main()
