SELECT item, price, window_start, window_end, window_time FROM TABLE(TUMBLE(TABLE bids, DESCRIPTOR(ts), INTERVAL '10' SECOND))
SELECT * FROM TABLE(TUMBLE(TABLE asks, DESCRIPTOR(ts), INTERVAL '10' SECOND))
SELECT item, price, window_start, window_end FROM TABLE(HOP(TABLE bids, DESCRIPTOR(ts), INTERVAL '5' SECOND, INTERVAL '10' SECOND))
SELECT item, price, window_start, window_end FROM TABLE(CUMULATE(TABLE bids, DESCRIPTOR(ts), INTERVAL '5' SECOND, INTERVAL '15' SECOND))
SELECT price, window_start, window_end FROM TABLE(TUMBLE(DATA => TABLE bids, TIMECOL => DESCRIPTOR(ts), SIZE => INTERVAL '10' SECOND, `OFFSET` => INTERVAL '3' SECOND))
SELECT price, window_start, window_end FROM TABLE(HOP(DATA => TABLE bids, TIMECOL => DESCRIPTOR(ts), SLIDE => INTERVAL '5' SECOND, SIZE => INTERVAL '10' SECOND))
SELECT window_start, window_end, COUNT(*) AS c, SUM(price) AS s FROM TABLE(TUMBLE(TABLE bids, DESCRIPTOR(ts), INTERVAL '10' SECOND)) GROUP BY window_start, window_end
SELECT item, window_start, window_end, COUNT(*) AS c, SUM(price) AS s FROM TABLE(TUMBLE(TABLE bids, DESCRIPTOR(ts), INTERVAL '10' SECOND)) GROUP BY item, window_start, window_end
SELECT window_start, item, window_end, window_time, MAX(price) AS m FROM TABLE(TUMBLE(TABLE bids, DESCRIPTOR(ts), INTERVAL '10' SECOND)) GROUP BY window_start, window_end, window_time, item
SELECT item, bidder, window_end, COUNT(price) AS c, MIN(price) AS a, MAX(price) AS b, AVG(price) AS v FROM TABLE(TUMBLE(TABLE bids, DESCRIPTOR(ts), INTERVAL '10' SECOND)) GROUP BY item, bidder, window_start, window_end
SELECT item, window_start, SUM(amount) AS a, SUM(cost) AS s, AVG(cost) AS v, MAX(cost) AS m FROM TABLE(TUMBLE(TABLE bids, DESCRIPTOR(ts), INTERVAL '20' SECOND)) GROUP BY item, window_start, window_end
SELECT window_start, window_end, COUNT(DISTINCT item) AS d, COUNT(DISTINCT bidder) FILTER (WHERE price > 10) AS f, SUM(DISTINCT price) AS s FROM TABLE(TUMBLE(TABLE bids, DESCRIPTOR(ts), INTERVAL '10' SECOND)) GROUP BY window_start, window_end
SELECT item, window_start, COUNT(*) FILTER (WHERE price > 10) AS f, SUM(price) FILTER (WHERE bidder = 1) AS g FROM TABLE(TUMBLE(TABLE bids, DESCRIPTOR(ts), INTERVAL '10' SECOND)) GROUP BY item, window_start, window_end
SELECT window_start, window_end, COUNT(*) AS c FROM TABLE(TUMBLE(TABLE bids, DESCRIPTOR(ts), INTERVAL '10' SECOND, INTERVAL '4' SECOND)) GROUP BY window_start, window_end
SELECT window_start, window_end, COUNT(*) AS c FROM TABLE(TUMBLE(TABLE bids, DESCRIPTOR(ts), INTERVAL '10' SECOND, INTERVAL -'3' SECOND)) GROUP BY window_start, window_end
SELECT window_start, window_end, COUNT(*) AS c, SUM(price) AS s FROM TABLE(HOP(TABLE bids, DESCRIPTOR(ts), INTERVAL '5' SECOND, INTERVAL '10' SECOND)) GROUP BY window_start, window_end
SELECT item, window_start, window_end, COUNT(*) AS c, SUM(price) AS s, MAX(price) AS m FROM TABLE(HOP(TABLE bids, DESCRIPTOR(ts), INTERVAL '5' SECOND, INTERVAL '15' SECOND)) GROUP BY item, window_start, window_end
SELECT item, window_start, window_end, COUNT(DISTINCT bidder) AS c, AVG(amount) AS s FROM TABLE(HOP(TABLE bids, DESCRIPTOR(ts), INTERVAL '5' SECOND, INTERVAL '20' SECOND, INTERVAL '2' SECOND)) GROUP BY item, window_start, window_end
SELECT item, window_start, window_end, COUNT(*) AS c, SUM(price) AS s FROM TABLE(CUMULATE(TABLE bids, DESCRIPTOR(ts), INTERVAL '5' SECOND, INTERVAL '20' SECOND)) GROUP BY item, window_start, window_end
SELECT window_start, window_end, window_time, COUNT(*) AS c, MIN(item) AS s FROM TABLE(CUMULATE(TABLE bids, DESCRIPTOR(ts), INTERVAL '10' SECOND, INTERVAL '30' SECOND, INTERVAL '1' SECOND)) GROUP BY window_start, window_end, window_time
SELECT item, window_start, SUM(price * 2) AS s FROM TABLE(TUMBLE(TABLE bids, DESCRIPTOR(ts), INTERVAL '10' SECOND)) WHERE price > 5 GROUP BY item, window_start, window_end
SELECT item, window_start, window_end, SUM(price) AS s FROM TABLE(TUMBLE(TABLE bids, DESCRIPTOR(ts), INTERVAL '10' SECOND)) WHERE window_start > TIMESTAMP '2024-01-01 00:00:05' GROUP BY item, window_start, window_end
SELECT item, window_start, window_end, SUM(price) AS s FROM TABLE(HOP(TABLE bids, DESCRIPTOR(ts), INTERVAL '5' SECOND, INTERVAL '10' SECOND)) WHERE window_end <= TIMESTAMP '2024-01-01 00:00:25' GROUP BY item, window_start, window_end
SELECT UPPER(item) AS u, window_start, COUNT(*) AS c FROM TABLE(TUMBLE(TABLE bids, DESCRIPTOR(ts), INTERVAL '10' SECOND)) GROUP BY UPPER(item), window_start, window_end HAVING COUNT(*) > 1
WITH b AS (SELECT item, price + 1 AS p, ts FROM bids) SELECT item, window_start, SUM(p) AS s FROM TABLE(TUMBLE(TABLE b, DESCRIPTOR(ts), INTERVAL '10' SECOND)) GROUP BY item, window_start, window_end
WITH w AS (SELECT window_start AS a, window_end AS b, window_time AS rt, item, SUM(price) AS p FROM TABLE(TUMBLE(TABLE bids, DESCRIPTOR(ts), INTERVAL '5' SECOND)) GROUP BY item, window_start, window_end, window_time) SELECT window_start, window_end, SUM(p) AS s, COUNT(*) AS c FROM TABLE(TUMBLE(TABLE w, DESCRIPTOR(rt), INTERVAL '20' SECOND)) GROUP BY window_start, window_end
SELECT window_start, window_end, MAX(s) AS m, COUNT(*) AS c FROM (SELECT item, window_start, window_end, SUM(price) AS s FROM TABLE(TUMBLE(TABLE bids, DESCRIPTOR(ts), INTERVAL '10' SECOND)) GROUP BY item, window_start, window_end) GROUP BY window_start, window_end
SELECT window_start, window_end, SUM(c) AS m FROM (SELECT item, bidder, window_start, window_end, COUNT(*) AS c FROM TABLE(HOP(TABLE bids, DESCRIPTOR(ts), INTERVAL '5' SECOND, INTERVAL '15' SECOND)) GROUP BY item, bidder, window_start, window_end) WHERE c > 0 GROUP BY window_start, window_end
SELECT DISTINCT item, window_start, window_end FROM TABLE(TUMBLE(TABLE bids, DESCRIPTOR(ts), INTERVAL '10' SECOND))
SELECT L.window_start, L.c, R.d FROM (SELECT window_start, window_end, COUNT(*) AS c FROM TABLE(TUMBLE(TABLE bids, DESCRIPTOR(ts), INTERVAL '10' SECOND)) GROUP BY window_start, window_end) L JOIN (SELECT window_start, window_end, SUM(qty) AS d FROM TABLE(TUMBLE(TABLE asks, DESCRIPTOR(ts), INTERVAL '10' SECOND)) GROUP BY window_start, window_end) R ON L.window_start = R.window_start AND L.window_end = R.window_end
SELECT item, TUMBLE_START(ts, INTERVAL '10' SECOND) AS a, TUMBLE_END(ts, INTERVAL '10' SECOND) AS b, TUMBLE_ROWTIME(ts, INTERVAL '10' SECOND) AS r, COUNT(*) AS c, SUM(price) AS s FROM bids GROUP BY item, TUMBLE(ts, INTERVAL '10' SECOND)
SELECT TUMBLE_START(ts, INTERVAL '10' SECOND) AS a, COUNT(*) AS c FROM bids WHERE price > 5 GROUP BY TUMBLE(ts, INTERVAL '10' SECOND) HAVING COUNT(*) > 1
SELECT item, HOP_START(ts, INTERVAL '5' SECOND, INTERVAL '10' SECOND) AS a, HOP_END(ts, INTERVAL '5' SECOND, INTERVAL '10' SECOND) AS b, SUM(price) AS s FROM bids GROUP BY item, HOP(ts, INTERVAL '5' SECOND, INTERVAL '10' SECOND)
SELECT HOP_START(ts, INTERVAL '4' SECOND, INTERVAL '10' SECOND) AS a, COUNT(*) AS s FROM bids GROUP BY HOP(ts, INTERVAL '4' SECOND, INTERVAL '10' SECOND)
SELECT TUMBLE_START(r, INTERVAL '20' SECOND) AS a, SUM(s) AS t FROM (SELECT TUMBLE_ROWTIME(ts, INTERVAL '5' SECOND) AS r, SUM(price) AS s FROM bids GROUP BY item, TUMBLE(ts, INTERVAL '5' SECOND)) GROUP BY TUMBLE(r, INTERVAL '20' SECOND)
SELECT window_start, window_end, CAST(window_time AS TIMESTAMP(3)) AS wt, SUM(v) AS s FROM TABLE(TUMBLE(TABLE zoned, DESCRIPTOR(tl), INTERVAL '1' DAY)) GROUP BY window_start, window_end, window_time
SELECT k, window_start, window_end, SUM(v) AS s FROM TABLE(HOP(TABLE zoned, DESCRIPTOR(tl), INTERVAL '1' HOUR, INTERVAL '2' HOUR)) GROUP BY k, window_start, window_end
SELECT k, window_start, window_end, SUM(v) AS s FROM TABLE(CUMULATE(TABLE zoned, DESCRIPTOR(tl), INTERVAL '6' HOUR, INTERVAL '1' DAY)) GROUP BY k, window_start, window_end
SELECT TUMBLE_START(tl, INTERVAL '1' DAY) AS a, CAST(TUMBLE_ROWTIME(tl, INTERVAL '1' DAY) AS TIMESTAMP(3)) AS r, SUM(v) AS s FROM zoned GROUP BY TUMBLE(tl, INTERVAL '1' DAY)
SELECT k, v, window_start, window_end, CAST(window_time AS TIMESTAMP(3)) AS wt FROM TABLE(TUMBLE(TABLE zoned, DESCRIPTOR(tl), INTERVAL '1' HOUR))
SELECT item, window_start, FIRST_VALUE(price) AS f, LAST_VALUE(price) AS l, LISTAGG(CAST(price AS STRING)) AS x FROM TABLE(TUMBLE(TABLE bids, DESCRIPTOR(ts), INTERVAL '10' SECOND)) GROUP BY item, window_start, window_end
SELECT MAX(ts) AS m, MIN(ts) AS n FROM TABLE(TUMBLE(TABLE bids, DESCRIPTOR(ts), INTERVAL '10' SECOND)) GROUP BY window_start, window_end
SELECT COUNT(*) FROM TABLE(TUMBLE(TABLE bids, DESCRIPTOR(price), INTERVAL '10' SECOND)) GROUP BY window_start, window_end
SELECT COUNT(*) FROM TABLE(TUMBLE(TABLE bids, DESCRIPTOR(nope), INTERVAL '10' SECOND)) GROUP BY window_start, window_end
SELECT COUNT(*) FROM TABLE(TUMBLE(TABLE bids, DESCRIPTOR(ts))) GROUP BY window_start, window_end
SELECT COUNT(*) FROM TABLE(TUMBLE(TABLE bids, ts, INTERVAL '10' SECOND)) GROUP BY window_start, window_end
SELECT COUNT(*) FROM TABLE(TUMBLE(TABLE bids, DESCRIPTOR(ts, price), INTERVAL '10' SECOND)) GROUP BY window_start, window_end
SELECT COUNT(*) FROM TABLE(TUMBLE(TABLE bids, DESCRIPTOR(ts), INTERVAL '1' MONTH)) GROUP BY window_start, window_end
SELECT COUNT(*) FROM TABLE(TUMBLE(TABLE bids, DESCRIPTOR(ts), 10)) GROUP BY window_start, window_end
SELECT COUNT(*) FROM TABLE(TUMBLE(TABLE bids, DESCRIPTOR(ts), INTERVAL '0' SECOND)) GROUP BY window_start, window_end
SELECT COUNT(*) FROM TABLE(HOP(TABLE bids, DESCRIPTOR(ts), INTERVAL '3' SECOND, INTERVAL '10' SECOND)) GROUP BY window_start, window_end
SELECT COUNT(*) FROM TABLE(HOP(TABLE bids, DESCRIPTOR(ts), INTERVAL '20' SECOND, INTERVAL '10' SECOND)) GROUP BY window_start, window_end
SELECT COUNT(*) FROM TABLE(CUMULATE(TABLE bids, DESCRIPTOR(ts), INTERVAL '3' SECOND, INTERVAL '10' SECOND)) GROUP BY window_start, window_end
SELECT COUNT(*) FROM TABLE(CUMULATE(TABLE bids, DESCRIPTOR(ts), INTERVAL '20' SECOND, INTERVAL '10' SECOND)) GROUP BY window_start, window_end
SELECT COUNT(*) FROM TABLE(SESSION(TABLE bids PARTITION BY nope, DESCRIPTOR(ts), INTERVAL '10' SECOND)) GROUP BY window_start, window_end
SELECT COUNT(*) FROM TABLE(TUMBLE(TABLE asksplain, DESCRIPTOR(ts), INTERVAL '10' SECOND)) GROUP BY window_start, window_end
SELECT COUNT(*) FROM TABLE(TUMBLE(DATA => TABLE bids, TIMECOL => DESCRIPTOR(ts), SIZ => INTERVAL '10' SECOND)) GROUP BY window_start, window_end
SELECT L.item FROM (SELECT * FROM TABLE(TUMBLE(TABLE bids, DESCRIPTOR(ts), INTERVAL '10' SECOND))) L JOIN (SELECT * FROM TABLE(TUMBLE(TABLE asks, DESCRIPTOR(ts), INTERVAL '20' SECOND))) R ON L.item = R.item AND L.window_start = R.window_start AND L.window_end = R.window_end
SELECT L.item FROM (SELECT * FROM TABLE(TUMBLE(TABLE bids, DESCRIPTOR(ts), INTERVAL '10' SECOND))) L JOIN (SELECT * FROM TABLE(TUMBLE(TABLE asks, DESCRIPTOR(ts), INTERVAL '10' SECOND))) R ON L.item = R.item AND L.window_start = R.window_start
SELECT TUMBLE_START(ts, INTERVAL '20' SECOND) FROM bids GROUP BY TUMBLE(ts, INTERVAL '10' SECOND)
SELECT TUMBLE_START(ts, INTERVAL '20' SECOND) FROM bids GROUP BY item
SELECT COUNT(*) FROM bids GROUP BY TUMBLE(price, INTERVAL '10' SECOND)
SELECT COUNT(*) FROM asksplain GROUP BY TUMBLE(ts, INTERVAL '10' SECOND)
