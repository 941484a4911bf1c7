-- NEXMark's auctions over Kafka, in the SQL shell: the hottest auctions, as a table that changes while one looks at it.
--
-- A broker for this machine, if there is none:
--   python -m firesteel.testing.services.kafka_broker start --port 9092
-- The tables, then the shell:
--   firesteel sql -i examples/auctions.sql
-- In the shell, the first statement writes events to Kafka, as a job in the background; the second one reads them:
--   INSERT INTO bids SELECT bid.auction, bid.bidder, bid.price, bid.`dateTime` FROM events WHERE event_type = 2;
--   SELECT * FROM hottest_auctions;
-- Q ends the query, SHOW JOBS; shows the job that writes, QUIT; ends it.

CREATE TABLE events (
  event_type INT,
  bid ROW<auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING, `dateTime` TIMESTAMP(3), extra STRING>
) WITH (
  'connector' = 'nexmark',
  'next-event.rate' = '200'
);

CREATE TABLE bids (
  auction BIGINT,
  bidder BIGINT,
  price BIGINT,
  ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '1' SECOND
) WITH (
  'connector' = 'kafka',
  'topic' = 'bids',
  'properties.bootstrap.servers' = 'localhost:9092',
  'scan.startup.mode' = 'earliest-offset',
  'format' = 'json'
);

CREATE VIEW hottest_auctions AS
SELECT auction, bids, highest, place
FROM (
  SELECT *, ROW_NUMBER() OVER (ORDER BY bids DESC) AS place
  FROM (SELECT auction, COUNT(*) AS bids, MAX(price) AS highest FROM bids GROUP BY auction)
)
WHERE place <= 10;
