"""SQL on a stream: payments in euros, above a limit, from a stream of payments in cents."""

from __future__ import annotations

import argparse

from firesteel.table import DataTypes, EnvironmentSettings, TableEnvironment

PAYMENTS = [(1, "Ada", 1250), (2, "Grace", 8000), (3, "Ada", 30), (4, "Edsger", 99_900)]
PAYMENT = DataTypes.ROW(
    [
        DataTypes.FIELD("id", DataTypes.INT()),
        DataTypes.FIELD("customer", DataTypes.STRING()),
        DataTypes.FIELD("cents", DataTypes.BIGINT()),
    ]
)


def main() -> None:
    """Prints the result of a query over a view."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--limit", type=int, default=10, metavar="EUROS", help="smallest payment (default: 10)")
    options = parser.parse_args()
    table_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    table_env.create_temporary_view("payments", table_env.from_elements(PAYMENTS, PAYMENT))
    table_env.execute_sql(
        "CREATE TEMPORARY VIEW euros AS "
        "SELECT id, customer, CAST(cents * 0.01 AS DECIMAL(10, 2)) AS euros FROM payments"
    )
    table_env.execute_sql(f"SELECT customer, euros FROM euros WHERE euros >= {options.limit}").print()  # noqa: S608


if __name__ == "__main__":
    main()
