"""Programs of a shop, as users write them: tables in files, views, queries and inserts. They run here and in Flink.

This module imports nothing but the standard library, as Flink's Python reads it too.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

__all__ = ["PROGRAMS", "TABLES", "statements", "write_files"]

_START = datetime(2024, 5, 1, 12)  # noqa: DTZ001

TABLES = """
CREATE TABLE orders (
  order_id BIGINT, customer STRING, product_id INT, amount INT, price DECIMAL(10, 2), order_time TIMESTAMP(3),
  total AS price * amount,
  WATERMARK FOR order_time AS order_time - INTERVAL '5' SECOND
) WITH ('connector' = 'filesystem', 'path' = '{path}/orders.json', 'format' = 'json');
CREATE TABLE payments (
  order_id BIGINT, pay_way STRING, paid DECIMAL(10, 2), pay_time TIMESTAMP(3),
  WATERMARK FOR pay_time AS pay_time - INTERVAL '5' SECOND
) WITH ('connector' = 'filesystem', 'path' = '{path}/payments.json', 'format' = 'json');
CREATE TABLE products (
  product_id INT, name STRING, category STRING, stock INT, PRIMARY KEY (product_id) NOT ENFORCED
) WITH ('connector' = 'filesystem', 'path' = '{path}/products.json', 'format' = 'debezium-json');
CREATE TABLE prices (
  product_id INT, list_price DECIMAL(10, 2), valid_from TIMESTAMP(3),
  WATERMARK FOR valid_from AS valid_from - INTERVAL '5' SECOND
) WITH ('connector' = 'filesystem', 'path' = '{path}/prices.json', 'format' = 'json');
CREATE TABLE clicks (
  who STRING, page STRING, click_time TIMESTAMP_LTZ(3),
  WATERMARK FOR click_time AS click_time - INTERVAL '5' SECOND
) WITH ('connector' = 'filesystem', 'path' = '{path}/clicks.json', 'format' = 'json')
"""

PROGRAMS = {
    "best sellers with names and payments": """
CREATE VIEW sold AS SELECT product_id, COUNT(*) AS orders_, SUM(amount) AS pieces, SUM(total) AS revenue
  FROM orders WHERE product_id IS NOT NULL GROUP BY product_id;
CREATE VIEW best AS SELECT * FROM (
  SELECT *, ROW_NUMBER() OVER (ORDER BY revenue DESC, product_id) AS place FROM sold) WHERE place <= 5;
SELECT p.category, COUNT(DISTINCT b.product_id) AS products, MIN(b.place) AS best_place, SUM(b.revenue) AS revenue,
  MAX(l.list_price) AS dearest
FROM best b
LEFT JOIN products p ON b.product_id = p.product_id
LEFT JOIN (SELECT product_id, MAX(list_price) AS list_price FROM prices GROUP BY product_id) l
  ON b.product_id = l.product_id
GROUP BY p.category HAVING SUM(b.pieces) > 3""",
    "orders at the price of their time": """
CREATE VIEW versions AS SELECT product_id, list_price, valid_from FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY product_id ORDER BY valid_from DESC) AS n FROM prices) WHERE n = 1;
SELECT o.order_id, o.product_id, o.price, v.list_price, o.price - v.list_price AS difference
FROM orders AS o LEFT JOIN versions FOR SYSTEM_TIME AS OF o.order_time AS v ON o.product_id = v.product_id
WHERE o.amount > 1""",
    "sessions of visitors": """
SELECT who, CAST(window_start AS STRING) AS began, CAST(window_end AS STRING) AS ended, COUNT(*) AS clicks,
  COUNT(DISTINCT page) AS pages, COUNT(*) FILTER (WHERE page = '/cart') AS carts
FROM TABLE(SESSION(TABLE clicks PARTITION BY who, DESCRIPTOR(click_time), INTERVAL '8' SECOND))
GROUP BY who, window_start, window_end""",
    "the best customers of each half minute": """
WITH spent AS (
  SELECT customer, window_start, window_end, SUM(total) AS spent, COUNT(*) AS orders_
  FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(order_time), INTERVAL '30' SECOND))
  GROUP BY customer, window_start, window_end)
SELECT window_start, window_end, customer, spent, place FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY spent DESC, customer) AS place FROM spent)
WHERE place <= 2""",
    "payments within twenty seconds": """
SELECT o.order_id, o.customer, p.pay_way, p.paid, TIMESTAMPDIFF(SECOND, o.order_time, p.pay_time) AS waited
FROM orders o LEFT JOIN payments p ON o.order_id = p.order_id
  AND p.pay_time BETWEEN o.order_time AND o.order_time + INTERVAL '20' SECOND""",
    "unpaid orders": """
SELECT o.order_id, o.customer, o.total FROM orders o
WHERE NOT EXISTS (SELECT 1 FROM payments p WHERE p.order_id = o.order_id AND p.paid >= o.total)
  AND o.order_id IS NOT NULL""",
    "moving averages": """
SELECT order_id, customer, price,
  AVG(price) OVER w AS average, SUM(amount) OVER w AS pieces, COUNT(*) OVER w AS n
FROM orders WINDOW w AS (PARTITION BY customer ORDER BY order_time
  RANGE BETWEEN INTERVAL '30' SECOND PRECEDING AND CURRENT ROW)""",
    "the last order of each customer": """
CREATE VIEW latest AS SELECT customer, order_id, total, order_time FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY customer ORDER BY order_time DESC, order_id DESC) AS n FROM orders)
  WHERE n = 1;
SELECT l.customer, l.order_id, l.total, c.pages FROM latest l
LEFT JOIN (SELECT who, COUNT(DISTINCT page) AS pages FROM clicks GROUP BY who) c ON l.customer = c.who""",
    "stock by category": """
SELECT COALESCE(category, 'none') AS category, COUNT(*) AS products, SUM(stock) AS stock, MIN(name) AS first_name,
  MAX(stock) - MIN(stock) AS spread
FROM products GROUP BY category HAVING COUNT(*) > 1""",
    "levels of detail": """
SELECT category, pay_way, COUNT(*) AS n, SUM(paid) AS paid
FROM orders o JOIN payments p ON o.order_id = p.order_id JOIN products d ON o.product_id = d.product_id
GROUP BY CUBE (category, pay_way)""",
    "dear orders": """
SELECT order_id, customer, total,
  CASE WHEN total > 2 * (SELECT AVG(total) FROM orders) THEN 'very' ELSE 'rather' END AS how_dear
FROM orders WHERE total > (SELECT AVG(total) FROM orders)
  AND product_id IN (SELECT product_id FROM products WHERE stock > 20)""",
    "everything that happened": """
CREATE VIEW events AS
  SELECT customer AS who, 'order' AS what, CAST(order_id AS STRING) AS detail FROM orders
  UNION ALL SELECT who, 'click', page FROM clicks
  UNION ALL SELECT pay_way, 'payment', CAST(paid AS STRING) FROM payments;
SELECT who, COUNT(*) AS n, COUNT(DISTINCT what) AS kinds, MIN(detail) AS least,
  SUM(CASE WHEN what = 'click' THEN 1 ELSE 0 END) AS clicks
FROM events WHERE who IS NOT NULL GROUP BY who""",
    "growing counts of the minute": """
SELECT window_start, window_end, COUNT(*) AS n, COUNT(DISTINCT customer) AS customers, SUM(amount) AS pieces
FROM TABLE(CUMULATE(TABLE orders, DESCRIPTOR(order_time), INTERVAL '10' SECOND, INTERVAL '1' MINUTE))
GROUP BY window_start, window_end""",
    "orders and clicks of the same ten seconds": """
SELECT COALESCE(o.customer, c.who) AS who, o.n, c.pages, COALESCE(o.ws, c.ws) AS ws FROM (
  SELECT customer, COUNT(*) AS n, window_start AS ws, window_end AS we
  FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(order_time), INTERVAL '10' SECOND))
  GROUP BY customer, window_start, window_end) o
FULL JOIN (
  SELECT who, COUNT(*) AS pages, window_start AS ws, window_end AS we FROM TABLE(TUMBLE((
    SELECT order_id, pay_way AS who, pay_time FROM payments), DESCRIPTOR(pay_time), INTERVAL '10' SECOND))
  GROUP BY who, window_start, window_end) c
ON o.customer = c.who AND o.ws = c.ws AND o.we = c.we""",
    "hops of a filtered view": """
CREATE VIEW bulk AS SELECT customer, total, order_time FROM orders WHERE amount >= 2 AND customer IS NOT NULL;
SELECT customer, window_start, SUM(total) AS total, MAX(total) AS dearest
FROM TABLE(HOP(TABLE bulk, DESCRIPTOR(order_time), INTERVAL '10' SECOND, INTERVAL '30' SECOND))
GROUP BY customer, window_start, window_end HAVING SUM(total) > 100""",
    "windows of windows": """
CREATE VIEW tens AS SELECT customer, window_time AS rowtime, COUNT(*) AS n
  FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(order_time), INTERVAL '10' SECOND))
  GROUP BY customer, window_start, window_end, window_time;
SELECT window_start, window_end, MAX(n) AS most, SUM(n) AS n, COUNT(*) AS customers
FROM TABLE(TUMBLE(TABLE tens, DESCRIPTOR(rowtime), INTERVAL '1' MINUTE)) GROUP BY window_start, window_end""",
    "words of pages": """
SELECT word, COUNT(*) AS n, COUNT(DISTINCT who) AS visitors FROM clicks
CROSS JOIN UNNEST(SPLIT(SUBSTRING(page, 2), '/')) AS T (word) WHERE who IS NOT NULL GROUP BY word""",
    "as JSON": """
SELECT customer, JSON_OBJECT('orders' VALUE COUNT(*), 'total' VALUE CAST(SUM(total) AS STRING)) AS summary
FROM orders GROUP BY customer""",
    "copies into two files": """
CREATE TABLE large_orders (order_id BIGINT, who STRING, total DECIMAL(20, 2), at_ STRING)
  WITH ('connector' = 'filesystem', 'path' = '{out}/large', 'format' = 'json');
CREATE TABLE minutes (began TIMESTAMP(3), n BIGINT)
  WITH ('connector' = 'filesystem', 'path' = '{out}/minutes', 'format' = 'json');
EXECUTE STATEMENT SET BEGIN
  INSERT INTO large_orders SELECT order_id, UPPER(customer), total, DATE_FORMAT(order_time, 'HH:mm:ss') FROM orders
    WHERE total > 200;
  INSERT INTO minutes SELECT window_start, COUNT(*) FROM
    TABLE(TUMBLE(TABLE orders, DESCRIPTOR(order_time), INTERVAL '1' MINUTE)) GROUP BY window_start, window_end;
END""",
}


def statements(text: str) -> list[str]:
    """The statements of a script; a statement set is one of them."""
    head, begin, body = text.partition("EXECUTE STATEMENT SET")
    return [part.strip() for part in head.split(";") if part.strip()] + ([begin + body] if begin else [])


def _times(draw: random.Random, count: int, span_s: int) -> Iterator[datetime]:
    """Times that ascend but for a few seconds; a few are late."""
    for number in range(count):
        back = draw.choice([0, 0, 0, 1.5, 4, 4]) if number % 40 != 39 else 0
        yield _START + timedelta(milliseconds=int(number * span_s * 1000 / count - back * 1000))


def _maybe(draw: random.Random, value: Any) -> Any:
    return None if draw.random() < 0.06 else value


def _orders() -> list[dict[str, Any]]:
    draw = random.Random("orders of the shop")
    return [
        {
            "order_id": number,
            "customer": _maybe(draw, draw.choice(["ann", "bob", "cid", "dan", "eve", "flo"])),
            "product_id": _maybe(draw, draw.randrange(12)),
            "amount": draw.randrange(1, 6),
            "price": float(draw.randrange(100, 9000)) / 100,
            "order_time": str(at)[:23] if at.microsecond else f"{at}.000",
        }
        for number, at in enumerate(_times(draw, 240, 170))
    ]


def _payments(orders: list[dict[str, Any]]) -> list[dict[str, Any]]:
    draw = random.Random("payments of the shop")
    rows = []
    for order in orders:
        for _ in range(draw.choice([0, 1, 1, 1, 2])):
            at = datetime.fromisoformat(order["order_time"]) + timedelta(seconds=draw.randrange(30))
            rows.append((at, _maybe(draw, order["order_id"]), draw.choice(["card", "cash", "ann"]), order))
    # payments come in the order of their times, but for a few seconds
    rows.sort(key=lambda row: row[0] - timedelta(seconds=draw.choice([0, 0, 3])))
    return [
        {
            "order_id": order_id,
            "pay_way": pay_way,
            "paid": round(order["price"] * draw.randrange(1, 6), 2),
            "pay_time": str(at)[:23] if at.microsecond else f"{at}.000",
        }
        for at, order_id, pay_way, order in rows
    ]


def _products() -> list[dict[str, Any]]:
    draw = random.Random("products of the shop")
    now: dict[int, dict[str, Any]] = {}
    changes: list[dict[str, Any]] = []
    for _ in range(80):
        key = draw.randrange(14)
        row = {
            "product_id": key,
            "name": _maybe(draw, f"thing {key}"),
            "category": _maybe(draw, draw.choice(["toys", "food", "tools"])),
            "stock": draw.randrange(60),
        }
        if key not in now:
            changes.append({"op": "c", "before": None, "after": row})
        elif draw.random() < 0.15:
            changes.append({"op": "d", "before": now.pop(key), "after": None})
            continue
        else:
            changes.append({"op": "u", "before": now[key], "after": row})
        now[key] = row
    return changes


def _prices() -> list[dict[str, Any]]:
    draw = random.Random("prices of the shop")
    rows = []
    for number in range(60):
        at = _START + timedelta(milliseconds=number * 2900 - 9000)
        rows.append(
            {
                "product_id": draw.randrange(12),
                "list_price": float(draw.randrange(100, 9000)) / 100,
                "valid_from": f"{at}.000" if not at.microsecond else str(at)[:23],
            }
        )
    return rows


def _clicks() -> list[dict[str, Any]]:
    draw = random.Random("clicks of the shop")
    pages = ["/", "/cart", "/toys/lego", "/food/rice", "/toys", "/about/us"]
    return [
        {
            "who": _maybe(draw, draw.choice(["ann", "bob", "cid", "gus"])),
            "page": draw.choice(pages),
            "click_time": (f"{at}.000" if not at.microsecond else str(at)[:23]) + "Z",
        }
        for at in _times(draw, 120, 170)
    ]


def write_files(directory: Path) -> None:
    """Writes the files that the tables read."""
    orders = _orders()
    tables = {
        "orders": orders,
        "payments": _payments(orders),
        "products": _products(),
        "prices": _prices(),
        "clicks": _clicks(),
    }
    for name, rows in tables.items():
        (directory / f"{name}.json").write_text("\n".join(map(json.dumps, rows)) + "\n", "utf-8")
