# select, where, distinct, with
SELECT 1
SELECT * FROM orders
SELECT o.* FROM orders AS o
SELECT o.*, c.name FROM orders o, customers c
SELECT amount, amount * 2 AS twice FROM orders
SELECT amount twice FROM orders
SELECT ALL amount FROM orders
SELECT DISTINCT region, product FROM orders
SELECT amount FROM shop.sales.orders WHERE region = 'EU'
SELECT `order`, `from` FROM `my table` WHERE `select` IS NULL
SELECT amount FROM orders WHERE amount > 10 AND (region = 'EU' OR region = 'US') AND NOT cancelled
SELECT pretty_print(product) FROM orders WHERE is_valid(product, 3)
SELECT price FROM (VALUES (1, 2.5), (2, 3.5)) AS t (id, price)
SELECT price FROM (VALUES (1, 2.5), (2, 3.5)) t
SELECT (SELECT MAX(amount) FROM orders) AS top
SELECT orders.amount, shop.orders.region FROM shop.orders
SELECT -amount, +amount, - - amount FROM orders
WITH big AS (SELECT * FROM orders WHERE amount > 100) SELECT COUNT(*) FROM big
WITH a AS (SELECT 1 AS x), b (y) AS (SELECT x FROM a) SELECT y FROM b
WITH a AS (SELECT 1 AS x) SELECT x FROM a UNION ALL SELECT x + 1 FROM a
WITH RECURSIVE n AS (SELECT 1 AS x) SELECT x FROM n
WITH a AS (VALUES (1), (2)) SELECT * FROM a
WITH a AS (WITH b AS (SELECT 1 AS x) SELECT x FROM b) SELECT x FROM a
SELECT x FROM (WITH b AS (SELECT 1 AS x) SELECT x FROM b) AS t
SELECT region, SUM(amount) FROM orders GROUP BY region
SELECT region, SUM(amount) AS total FROM orders GROUP BY region HAVING SUM(amount) > 50
SELECT COUNT(*) FROM orders HAVING COUNT(*) > 1
SELECT COUNT(DISTINCT region), COUNT(amount), SUM(DISTINCT amount) FROM orders
SELECT supplier, rating, COUNT(*) FROM products GROUP BY GROUPING SETS ((supplier, rating), (supplier), ())
SELECT supplier, rating, COUNT(*) FROM products GROUP BY ROLLUP (supplier, rating)
SELECT supplier, rating, COUNT(*) FROM products GROUP BY CUBE (supplier, rating)
SELECT supplier, COUNT(*) FROM products GROUP BY supplier, ROLLUP (rating), CUBE (id)
SELECT supplier, GROUPING(supplier), GROUPING_ID(supplier) FROM products GROUP BY GROUPING SETS (supplier, ROLLUP (rating))
SELECT supplier, COUNT(*) FROM products GROUP BY DISTINCT supplier
SELECT COUNT(*) FROM products GROUP BY ()
SELECT supplier, COUNT(*) FILTER (WHERE rating > 3) AS good FROM products GROUP BY supplier
SELECT day, COUNT(*) FROM t GROUP BY day
SELECT `day`, COUNT(*) FROM t GROUP BY `day`
SELECT user_id, TUMBLE_START(ts, INTERVAL '1' HOUR) FROM clicks GROUP BY user_id, TUMBLE(ts, INTERVAL '1' HOUR)
SELECT HOP_END(ts, INTERVAL '5' MINUTE, INTERVAL '1' HOUR) FROM clicks GROUP BY HOP(ts, INTERVAL '5' MINUTE, INTERVAL '1' HOUR)
SELECT SESSION_ROWTIME(ts, INTERVAL '30' MINUTE) FROM clicks GROUP BY SESSION(ts, INTERVAL '30' MINUTE)
SELECT TUMBLE_PROCTIME(ts, INTERVAL '1' DAY) FROM clicks GROUP BY TUMBLE(ts, INTERVAL '1' DAY)
# window table-valued functions
SELECT * FROM TABLE(TUMBLE(TABLE bids, DESCRIPTOR(bidtime), INTERVAL '10' MINUTES))
SELECT * FROM TABLE(TUMBLE(DATA => TABLE bids, TIMECOL => DESCRIPTOR(bidtime), SIZE => INTERVAL '10' MINUTES))
SELECT * FROM TUMBLE(TABLE bids, DESCRIPTOR(bidtime), INTERVAL '10' MINUTES, INTERVAL '1' MINUTE)
SELECT * FROM TABLE(HOP(TABLE bids, DESCRIPTOR(bidtime), INTERVAL '5' MINUTES, INTERVAL '10' MINUTES))
SELECT * FROM HOP(DATA => TABLE bids, TIMECOL => DESCRIPTOR(bidtime), SLIDE => INTERVAL '5' MINUTE, SIZE => INTERVAL '1' HOUR)
SELECT * FROM TABLE(CUMULATE(TABLE bids, DESCRIPTOR(bidtime), INTERVAL '2' MINUTES, INTERVAL '10' MINUTES))
SELECT * FROM CUMULATE(DATA => TABLE bids, TIMECOL => DESCRIPTOR(bidtime), STEP => INTERVAL '2' MINUTE, SIZE => INTERVAL '10' MINUTE)
SELECT * FROM TABLE(SESSION(TABLE bids PARTITION BY item, DESCRIPTOR(bidtime), INTERVAL '5' MINUTES))
SELECT * FROM SESSION(DATA => TABLE bids PARTITION BY (item, seller), TIMECOL => DESCRIPTOR(bidtime), GAP => INTERVAL '5' MINUTES)
SELECT window_start, window_end, SUM(price) FROM TABLE(TUMBLE(TABLE bids, DESCRIPTOR(bidtime), INTERVAL '10' MINUTES)) GROUP BY window_start, window_end
SELECT window_start, supplier, SUM(price) FROM TUMBLE(TABLE bids, DESCRIPTOR(bidtime), INTERVAL '1' HOUR) GROUP BY window_start, window_end, GROUPING SETS ((supplier), ())
SELECT window_start, ROLLUP_X FROM TUMBLE(TABLE bids, DESCRIPTOR(bidtime), INTERVAL '1' HOUR) GROUP BY window_start, window_end, CUBE (supplier, item)
SELECT w.price FROM TABLE(TUMBLE(TABLE bids, DESCRIPTOR(bidtime), INTERVAL '10' MINUTES)) AS w
SELECT * FROM TUMBLE((SELECT * FROM bids WHERE price > 1), DESCRIPTOR(bidtime), INTERVAL '1' HOUR)
SELECT L.num, R.num FROM (SELECT * FROM TUMBLE(TABLE lefts, DESCRIPTOR(ts), INTERVAL '5' MINUTES)) L FULL JOIN (SELECT * FROM TUMBLE(TABLE rights, DESCRIPTOR(ts), INTERVAL '5' MINUTES)) R ON L.num = R.num AND L.window_start = R.window_start
SELECT * FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY price DESC) AS rn FROM TUMBLE(TABLE bids, DESCRIPTOR(bidtime), INTERVAL '10' MINUTES)) WHERE rn <= 3
SELECT * FROM lefts L WHERE EXISTS (SELECT * FROM rights R WHERE L.num = R.num)
SELECT * FROM lefts L WHERE L.num NOT IN (SELECT num FROM rights R WHERE L.w = R.w)
# joins
SELECT * FROM a JOIN b ON a.id = b.id
SELECT * FROM a INNER JOIN b ON a.id = b.id
SELECT * FROM a LEFT JOIN b ON a.id = b.id
SELECT * FROM a LEFT OUTER JOIN b ON a.id = b.id
SELECT * FROM a RIGHT JOIN b ON a.id = b.id
SELECT * FROM a RIGHT OUTER JOIN b ON a.id = b.id
SELECT * FROM a FULL JOIN b ON a.id = b.id
SELECT * FROM a FULL OUTER JOIN b ON a.id = b.id
SELECT * FROM a CROSS JOIN b
SELECT * FROM a NATURAL JOIN b
SELECT * FROM a NATURAL LEFT JOIN b
SELECT * FROM a JOIN b USING (id)
SELECT * FROM a JOIN b USING (id, kind)
SELECT * FROM a, b WHERE a.id = b.id
SELECT * FROM a, b, c JOIN d ON c.x = d.x
SELECT * FROM a JOIN b ON a.id = b.id JOIN c ON b.id = c.id LEFT JOIN d ON c.id = d.id
SELECT * FROM (a JOIN b ON a.id = b.id) JOIN c ON b.id = c.id
SELECT * FROM a JOIN (b JOIN c ON b.id = c.id) ON a.id = b.id
SELECT * FROM orders o, shipments s WHERE o.id = s.order_id AND o.ts BETWEEN s.ts - INTERVAL '4' HOUR AND s.ts
SELECT o.id, r.rate FROM orders AS o LEFT JOIN rates FOR SYSTEM_TIME AS OF o.ts AS r ON o.currency = r.currency
SELECT o.id FROM orders o JOIN rates FOR SYSTEM_TIME AS OF o.proc_time ON o.currency = rates.currency
SELECT o.id FROM orders o JOIN rates FOR SYSTEM_TIME AS OF TIMESTAMP '2024-01-01 00:00:00' AS r ON o.c = r.c
SELECT * FROM rates FOR SYSTEM_TIME AS OF TIMESTAMP '2024-01-01 00:00:00'
SELECT o.id, c.country FROM orders AS o JOIN customers FOR SYSTEM_TIME AS OF o.proc_time AS c ON o.cid = c.id
SELECT id, tag FROM orders CROSS JOIN UNNEST(tags) AS t (tag)
SELECT id, tag FROM orders, UNNEST(tags) AS t (tag)
SELECT id, tag, n FROM orders CROSS JOIN UNNEST(tags) WITH ORDINALITY AS t (tag, n)
SELECT id, k, v FROM orders LEFT JOIN UNNEST(attributes) AS t (k, v) ON TRUE
SELECT * FROM UNNEST(ARRAY[1, 2, 3]) AS t (x)
SELECT * FROM UNNEST(ARRAY[ROW(1, 'a'), ROW(2, 'b')]) AS t (x, y)
SELECT id, res FROM orders, LATERAL TABLE(split_words(line)) AS t (res)
SELECT id, res FROM orders LEFT JOIN LATERAL TABLE(split_words(line)) AS t (res) ON TRUE
SELECT id, res FROM orders LEFT OUTER JOIN LATERAL TABLE(split_words(line)) t ON TRUE
SELECT id, res FROM orders CROSS JOIN LATERAL TABLE(shop.split_words(line, ',')) AS t (res, len)
SELECT state, name FROM (SELECT DISTINCT state FROM cities) states, LATERAL (SELECT name FROM cities WHERE state = states.state ORDER BY pop DESC LIMIT 3)
SELECT * FROM orders o JOIN LATERAL (SELECT * FROM items i WHERE i.oid = o.id) AS x ON TRUE
SELECT * FROM TABLE(split_words('a b'))
SELECT * FROM split_words('a b') AS t (w)
SELECT o_amount FROM orders, LATERAL TABLE(rates(o_proctime)) WHERE r_currency = o_currency
# set operations
SELECT s FROM t1 UNION SELECT s FROM t2
SELECT s FROM t1 UNION ALL SELECT s FROM t2
SELECT s FROM t1 UNION DISTINCT SELECT s FROM t2
(SELECT s FROM t1) UNION ALL (SELECT s FROM t2)
(SELECT s FROM t1) INTERSECT (SELECT s FROM t2)
(SELECT s FROM t1) INTERSECT ALL (SELECT s FROM t2)
(SELECT s FROM t1) EXCEPT (SELECT s FROM t2)
(SELECT s FROM t1) EXCEPT ALL (SELECT s FROM t2)
SELECT s FROM t1 UNION SELECT s FROM t2 INTERSECT SELECT s FROM t3 EXCEPT SELECT s FROM t4
SELECT * FROM ((SELECT a FROM x) UNION ALL (SELECT a FROM y)) AS u
SELECT * FROM (SELECT a FROM x UNION ALL SELECT a FROM y) AS u
SELECT user_id FROM orders WHERE product IN (SELECT product FROM new_products)
SELECT user_id FROM orders WHERE product NOT IN ('a', 'b')
SELECT user_id FROM orders WHERE (product, region) IN (SELECT product, region FROM new_products)
SELECT user_id FROM orders WHERE NOT EXISTS (SELECT 1 FROM new_products WHERE price > 1)
SELECT s FROM t1 UNION ALL SELECT s FROM t2 ORDER BY s LIMIT 5
VALUES (1, 'a'), (2, 'b')
VALUES 1, 2, 3
VALUES ROW(1, 'a'), ROW(2, 'b')
(VALUES (1), (2)) ORDER BY 1
TABLE orders
TABLE shop.orders ORDER BY id
# order by, limit
SELECT * FROM orders ORDER BY ts
SELECT * FROM orders ORDER BY ts ASC, id DESC
SELECT * FROM orders ORDER BY ts NULLS FIRST, id DESC NULLS LAST
SELECT * FROM orders ORDER BY 1, amount + 1
SELECT * FROM orders ORDER BY ts LIMIT 3
SELECT * FROM orders LIMIT 3 OFFSET 10
SELECT * FROM orders LIMIT ALL
SELECT * FROM orders OFFSET 10 ROWS
SELECT * FROM orders OFFSET 10 ROWS FETCH NEXT 5 ROWS ONLY
SELECT * FROM orders FETCH FIRST 5 ROWS ONLY
SELECT * FROM orders FETCH FIRST ROW ONLY
SELECT * FROM orders FETCH NEXT 1 ROW ONLY
SELECT * FROM orders ORDER BY ts OFFSET 2 FETCH FIRST 3 ROWS ONLY
SELECT * FROM orders LIMIT ?
SELECT * FROM (SELECT * FROM orders ORDER BY ts LIMIT 3) ORDER BY id
# over
SELECT id, SUM(amount) OVER (PARTITION BY product ORDER BY ts RANGE BETWEEN INTERVAL '1' HOUR PRECEDING AND CURRENT ROW) AS s FROM orders
SELECT id, SUM(amount) OVER (PARTITION BY product ORDER BY ts ROWS BETWEEN 10 PRECEDING AND CURRENT ROW) AS s FROM orders
SELECT id, COUNT(*) OVER (ORDER BY ts ROWS UNBOUNDED PRECEDING) FROM orders
SELECT id, COUNT(*) OVER (ORDER BY ts ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) FROM orders
SELECT id, COUNT(*) OVER (ORDER BY ts ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) FROM orders
SELECT id, COUNT(*) OVER (ORDER BY ts RANGE CURRENT ROW) FROM orders
SELECT id, SUM(amount) OVER w, AVG(amount) OVER w FROM orders WINDOW w AS (PARTITION BY product ORDER BY ts)
SELECT id, SUM(amount) OVER w1 FROM orders WINDOW w1 AS (PARTITION BY product), w2 AS (w1 ORDER BY ts)
SELECT RANK() OVER (PARTITION BY a ORDER BY b), DENSE_RANK() OVER (ORDER BY b), NTILE(4) OVER (ORDER BY b) FROM t
SELECT LAG(a, 1) OVER (ORDER BY ts), LEAD(a, 2, 0) OVER (ORDER BY ts), FIRST_VALUE(a) OVER (ORDER BY ts), LAST_VALUE(a) OVER (ORDER BY ts) FROM t
SELECT FIRST_VALUE(a) IGNORE NULLS OVER (ORDER BY ts), LAST_VALUE(a) RESPECT NULLS OVER (ORDER BY ts) FROM t
SELECT PERCENT_RANK() OVER (ORDER BY b), CUME_DIST() OVER (ORDER BY b) FROM t
SELECT COUNT(DISTINCT a) OVER (PARTITION BY b ORDER BY ts) FROM t
SELECT SUM(a) FILTER (WHERE a > 0) OVER (PARTITION BY b ORDER BY ts) FROM t
SELECT SUM(SUM(a)) OVER (ORDER BY b) FROM t GROUP BY b
# top-n, deduplication, qualify
SELECT * FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY category ORDER BY sales DESC) AS n FROM shop_sales) WHERE n <= 5
SELECT * FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY user_id ORDER BY proctime ASC) AS n FROM clicks) WHERE n = 1
SELECT user_id, amount FROM orders QUALIFY ROW_NUMBER() OVER (PARTITION BY user_id ORDER BY amount DESC) = 1
SELECT user_id, SUM(amount) AS s FROM orders GROUP BY user_id HAVING SUM(amount) > 1 QUALIFY RANK() OVER (ORDER BY s) < 3
# hints
SELECT * FROM orders /*+ OPTIONS('scan.startup.mode'='earliest-offset') */
SELECT * FROM orders /*+ OPTIONS('a'='b', 'c.d'='e') */ AS o
SELECT /*+ BROADCAST(a) */ a.id FROM a JOIN b ON a.id = b.id
SELECT /*+ SHUFFLE_HASH(a), SHUFFLE_MERGE(b) */ a.id FROM a JOIN b ON a.id = b.id
SELECT /*+ NEST_LOOP(a, b) */ a.id FROM a JOIN b ON a.id = b.id
SELECT /*+ LOOKUP('table'='customers', 'async'='true', 'output-mode'='allow_unordered', 'capacity'='100') */ o.id FROM orders o JOIN customers FOR SYSTEM_TIME AS OF o.pt AS c ON o.cid = c.id
SELECT /*+ STATE_TTL('o'='1d', 'l'='6h') */ * FROM orders o LEFT JOIN lineitems l ON o.id = l.oid
SELECT /*+ STATE_TTL('o' = '1 d') */ o.id, SUM(x) FROM orders AS o GROUP BY o.id
SELECT /*+ MULTI_JOIN(a, b, c) */ * FROM a JOIN b ON a.x = b.x JOIN c ON b.x = c.x
SELECT /*+ EARLY_FIRE('time_mode'='PROCTIME', 'delay'='1s') */ a.id FROM a JOIN b ON a.id = b.id
SELECT /*+ HINT_WITHOUT_ARGUMENTS */ 1
SELECT /*+ H(1, 2) */ 1
SELECT /*+ H('a', 'b') */ 1
SELECT * FROM a /*+ OPTIONS('x'='y') */ JOIN b /*+ OPTIONS('x'='y') */ ON a.id = b.id
SELECT * FROM t /* a comment */ WHERE a = 1 -- the end
# process table functions and models
SELECT * FROM my_ptf(input => TABLE orders PARTITION BY id, uid => 'a')
SELECT * FROM my_ptf(TABLE orders PARTITION BY (id, region) ORDER BY ts, on_time => DESCRIPTOR(ts))
SELECT * FROM my_ptf(input => TABLE orders, n => 1, flag => TRUE)
SELECT * FROM my_ptf(a => TABLE x PARTITION BY k, b => TABLE y PARTITION BY k)
SELECT * FROM my_ptf(r => 42, c => DEFAULT)
SELECT * FROM TABLE(my_ptf(TABLE t ORDER BY (a DESC, b ASC)))
SELECT * FROM ML_PREDICT(TABLE inputs, MODEL my_model, DESCRIPTOR(f1, f2))
SELECT * FROM ML_PREDICT(INPUT => TABLE inputs, MODEL => MODEL cat.db.my_model, ARGS => DESCRIPTOR(f1), CONFIG => MAP['async', 'true'])
SELECT id, label FROM inputs, LATERAL TABLE(ML_PREDICT(TABLE inputs, MODEL m, DESCRIPTOR(text)))
SELECT * FROM TO_CHANGELOG(input => TABLE t)
SELECT * FROM FROM_CHANGELOG(input => TABLE t PARTITION BY id, op => DESCRIPTOR(op))
SELECT * FROM VECTOR_SEARCH(TABLE docs, DESCRIPTOR(vec), ARRAY[1.0, 2.0], 10)
SELECT q.id, r.score FROM queries q, LATERAL TABLE(VECTOR_SEARCH(TABLE docs, DESCRIPTOR(vec), q.vec, 5)) AS r
# match_recognize
SELECT T.aid, T.bid FROM my_table MATCH_RECOGNIZE (PARTITION BY userid ORDER BY proctime MEASURES A.id AS aid, B.id AS bid PATTERN (A B) DEFINE A AS name = 'a', B AS name = 'b') AS T
SELECT * FROM ticker MATCH_RECOGNIZE (PARTITION BY symbol ORDER BY rowtime MEASURES START_ROW.rowtime AS start_ts, LAST(DOWN.rowtime) AS bottom_ts ONE ROW PER MATCH AFTER MATCH SKIP TO LAST UP PATTERN (START_ROW DOWN+ UP) DEFINE DOWN AS (LAST(DOWN.price, 1) IS NULL AND DOWN.price < START_ROW.price) OR DOWN.price < LAST(DOWN.price, 1), UP AS UP.price > LAST(DOWN.price, 1)) MR
SELECT * FROM ticker MATCH_RECOGNIZE (ORDER BY ts MEASURES FIRST(A.ts) AS s, AVG(A.price) AS p PATTERN (A+ B) WITHIN INTERVAL '1' HOUR DEFINE A AS AVG(A.price) < 15) AS M
SELECT * FROM ticker MATCH_RECOGNIZE (ORDER BY ts MEASURES C.price AS p AFTER MATCH SKIP PAST LAST ROW PATTERN (A B* C) DEFINE A AS A.price > 10, B AS B.price < 15, C AS C.price > 12)
SELECT * FROM ticker MATCH_RECOGNIZE (ORDER BY ts MEASURES A.x AS x AFTER MATCH SKIP TO NEXT ROW PATTERN (A{2} B{1,3} C{2,} D{,4} E? F*? G+?) DEFINE A AS A.x > 1)
SELECT * FROM ticker MATCH_RECOGNIZE (ORDER BY ts MEASURES A.x AS x AFTER MATCH SKIP TO FIRST A PATTERN (A | B) DEFINE A AS TRUE)
SELECT * FROM ticker MATCH_RECOGNIZE (ORDER BY ts MEASURES A.x AS x AFTER MATCH SKIP TO A PATTERN ((A B | C){2} D) DEFINE A AS TRUE)
SELECT * FROM ticker MATCH_RECOGNIZE (ORDER BY ts ALL ROWS PER MATCH PATTERN (A {- B -} C) DEFINE B AS B.x > PREV(B.x))
SELECT * FROM ticker MATCH_RECOGNIZE (ORDER BY ts PATTERN (PERMUTE(A, B)) SUBSET U = (A, B) DEFINE A AS A.x > 1)
SELECT * FROM ticker MATCH_RECOGNIZE (ORDER BY ts PATTERN (^ A B $) DEFINE A AS FINAL LAST(A.x) > RUNNING FIRST(A.x))
SELECT * FROM ticker MATCH_RECOGNIZE (ORDER BY ts MEASURES MATCH_ROWTIME() AS mr, MATCH_PROCTIME() AS mp, CLASSIFIER() AS c, MATCH_NUMBER() AS n PATTERN (A) DEFINE A AS NEXT(A.x, 1) > PREV(A.x, 2))
SELECT * FROM (SELECT * FROM ticker WHERE price > 0) MATCH_RECOGNIZE (ORDER BY ts PATTERN (A B) DEFINE B AS B.price > A.price)
SELECT * FROM ticker AS t MATCH_RECOGNIZE (ORDER BY ts PATTERN (A) DEFINE A AS TRUE)
# samples and pivots
SELECT * FROM orders TABLESAMPLE BERNOULLI(10)
SELECT * FROM orders TABLESAMPLE SYSTEM(10) REPEATABLE(5)
SELECT * FROM emp PIVOT (SUM(sal) AS ss, COUNT(*) FOR job IN ('CLERK' AS c, 'MANAGER' AS m))
SELECT * FROM emp UNPIVOT (sal FOR job IN (clerk AS 'CLERK', boss))
SELECT * FROM emp UNPIVOT INCLUDE NULLS ((a, b) FOR (x, y) IN ((c, d) AS ('C', 'D')))
