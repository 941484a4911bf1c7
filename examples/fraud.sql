-- Card fraud as a pattern over payments: a small payment that tries the card, then payments that grow, the last of them
-- abroad, all within an hour. Generated payments: every fifth card is tried out now and then.
--
-- As a stream: firesteel sql -f examples/fraud.sql
-- As a batch:  firesteel sql -D execution.runtime-mode=batch -f examples/fraud.sql

CREATE TABLE numbers (
  n BIGINT,
  card AS MOD(n * 7919, 20),
  amount AS CASE WHEN MOD(n, 11) = 0 THEN 1.00 ELSE MOD(n * 104729, 900) / 1.00 END,
  country AS CASE WHEN MOD(n * 31, 13) = 0 THEN 'BR' ELSE 'DE' END,
  paid AS TO_TIMESTAMP_LTZ(1700000000000 + n * 60000, 3),
  WATERMARK FOR paid AS paid - INTERVAL '10' SECOND
) WITH (
  'connector' = 'datagen',
  'rows-per-second' = '1000000',
  'number-of-rows' = '2000',
  'fields.n.kind' = 'sequence',
  'fields.n.start' = '1',
  'fields.n.end' = '2000'
);

SELECT card, tried, payments, total, country, lasted AS minutes
FROM numbers MATCH_RECOGNIZE (
  PARTITION BY card
  ORDER BY paid
  MEASURES
    probe.n AS tried,
    COUNT(rising.n) AS payments,
    SUM(rising.amount) + abroad.amount AS total,
    abroad.country AS country,
    TIMESTAMPDIFF(MINUTE, probe.paid, abroad.paid) AS lasted
  ONE ROW PER MATCH
  AFTER MATCH SKIP PAST LAST ROW
  PATTERN (probe rising{2,} abroad) WITHIN INTERVAL '3' HOUR
  DEFINE
    probe AS probe.amount < 5,
    rising AS rising.country = 'DE' AND rising.amount > COALESCE(LAST(rising.amount, 1), probe.amount),
    abroad AS abroad.country <> 'DE' AND abroad.amount > LAST(rising.amount)
) AS fraud;
