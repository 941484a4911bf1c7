-- Statements whose plans contain every kind of node. Those with DISTINCT are planned with split distinct aggregates.
CREATE TABLE rates (item STRING, rate INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts,
  PRIMARY KEY (item) NOT ENFORCED) WITH ('connector' = 'upsert-kafka', 'topic' = 't', 'key.format' = 'raw',
  'properties.bootstrap.servers' = 'localhost:1', 'value.format' = 'json');
CREATE TABLE prices (item STRING, price INT) WITH ('connector' = 'jdbc', 'table-name' = 'p',
  'url' = 'jdbc:postgresql://localhost:1/d', 'username' = 'u', 'password' = 'p');
CREATE TABLE keyed (a STRING, b BIGINT, PRIMARY KEY (a) NOT ENFORCED) WITH ('connector' = 'upsert-kafka',
  'topic' = 'o', 'properties.bootstrap.servers' = 'localhost:1', 'key.format' = 'raw', 'value.format' = 'json');
CREATE TABLE out_ (a STRING, b BIGINT) WITH ('connector' = 'blackhole');
CREATE TABLE strict (a STRING NOT NULL, b BIGINT) WITH ('connector' = 'blackhole');
INSERT INTO out_ SELECT item, COUNT(*) FILTER (WHERE price > 2.50) FROM orders WHERE id > 2 GROUP BY item;
INSERT INTO out_ SELECT item, COUNT(DISTINCT id) + COUNT(DISTINCT price) FROM orders GROUP BY item;
INSERT INTO out_ SELECT item, COUNT(id) FROM orders GROUP BY ROLLUP (item);
INSERT INTO out_ SELECT UPPER(item), CASE WHEN k = 1 THEN 1 ELSE CHAR_LENGTH(item) END FROM orders WHERE item IN ('a', 'b');
INSERT INTO out_ SELECT item, MAX(n) FROM (SELECT item, COUNT(*) AS n FROM orders GROUP BY item, k) GROUP BY item;
INSERT INTO out_ SELECT item, COUNT(*) FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '4' SECOND)) GROUP BY item, window_start, window_end;
INSERT INTO out_ SELECT item, COUNT(*) FROM TABLE(HOP(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' SECOND, INTERVAL '4' SECOND)) GROUP BY item, window_start, window_end;
INSERT INTO out_ SELECT item, COUNT(*) FROM TABLE(CUMULATE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' SECOND, INTERVAL '4' SECOND)) GROUP BY item, window_start, window_end;
INSERT INTO out_ SELECT item, COUNT(*) FROM TABLE(SESSION(TABLE orders PARTITION BY item, DESCRIPTOR(ts), INTERVAL '4' SECOND)) GROUP BY item, window_start, window_end;
INSERT INTO out_ SELECT item, CAST(id AS BIGINT) FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '4' SECOND));
INSERT INTO out_ SELECT l.item, CAST(r.id AS BIGINT) FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '4' SECOND)) l JOIN TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '4' SECOND)) r ON l.window_start = r.window_start AND l.window_end = r.window_end AND l.id = r.id;
INSERT INTO out_ SELECT item, n FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY id DESC) AS n FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '4' SECOND))) WHERE n <= 2;
INSERT INTO out_ SELECT item, n FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY item ORDER BY price DESC) AS n FROM orders) WHERE n <= 2;
INSERT INTO out_ SELECT item, CAST(id AS BIGINT) FROM orders ORDER BY ts;
INSERT INTO out_ SELECT item, SUM(id) OVER (PARTITION BY k ORDER BY ts RANGE BETWEEN INTERVAL '3' SECOND PRECEDING AND CURRENT ROW) FROM orders;
INSERT INTO out_ SELECT item, COUNT(*) OVER (ORDER BY pt ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) FROM orders;
INSERT INTO out_ SELECT a.item, CAST(b.id AS BIGINT) FROM orders a LEFT JOIN orders b ON a.id = b.id + 1 AND a.price > b.price;
INSERT INTO out_ SELECT a.item, CAST(b.id AS BIGINT) FROM orders a, orders b WHERE a.id = b.id AND a.ts BETWEEN b.ts AND b.ts + INTERVAL '2' SECOND;
INSERT INTO out_ SELECT o.item, CAST(r.rate AS BIGINT) FROM orders o JOIN rates FOR SYSTEM_TIME AS OF o.ts r ON o.item = r.item;
INSERT INTO out_ SELECT o.item, CAST(p.price AS BIGINT) FROM orders o LEFT JOIN prices FOR SYSTEM_TIME AS OF o.pt p ON o.item = p.item AND p.price > 3;
INSERT INTO out_ SELECT tag, CAST(id AS BIGINT) FROM orders CROSS JOIN UNNEST(tags) AS t(tag);
INSERT INTO out_ SELECT item, CAST(1 AS BIGINT) FROM orders INTERSECT ALL SELECT item, CAST(k AS BIGINT) FROM orders;
INSERT INTO out_ SELECT item, CAST(id AS BIGINT) FROM orders UNION ALL SELECT * FROM (VALUES ('x', CAST(1 AS BIGINT)));
INSERT INTO out_ SELECT part.b, CAST(part.a AS BIGINT) FROM orders;
INSERT INTO out_ SELECT op, n FROM TO_CHANGELOG(input => (SELECT COUNT(*) AS n FROM orders));
INSERT INTO out_ SELECT * FROM FROM_CHANGELOG(input => (SELECT 'INSERT' AS op, item, CAST(id AS BIGINT) AS n FROM orders));
INSERT INTO out_ SELECT /*+ UID('mine') */ item, COUNT(*) FROM orders GROUP BY item;
INSERT INTO out_ SELECT 'all', CAST(SUM(rate) AS BIGINT) FROM rates;
INSERT INTO out_ SELECT DATE_FORMAT(ts, 'HH'), CAST(X'00ff' IS NULL AS BIGINT) FROM orders WHERE price > 1.5e0 OR ts > TIMESTAMP '2024-01-01 00:00:03' OR CAST(item AS TIME) = TIME '10:00:00' OR DATE '2024-01-01' < CAST(ts AS DATE);
INSERT INTO strict SELECT item, CAST(id AS BIGINT) FROM orders;
INSERT INTO keyed SELECT item, CAST(id AS BIGINT) FROM orders ON CONFLICT DO DEDUPLICATE;
INSERT INTO keyed SELECT item, n FROM (SELECT id, item, COUNT(*) AS n FROM orders GROUP BY id, item) ON CONFLICT DO DEDUPLICATE;
INSERT INTO keyed SELECT item, n FROM (SELECT id, item, COUNT(*) AS n FROM orders GROUP BY id, item) ON CONFLICT DO NOTHING;
