-- The highest bid and the number of bids of each ten seconds, over generated auctions.
--
-- As a stream: firesteel sql -f examples/windows.sql
-- As a batch:  firesteel sql -D execution.runtime-mode=batch -f examples/windows.sql

CREATE TABLE events (
  event_type INT,
  bid ROW<auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING, `dateTime` TIMESTAMP(3), extra STRING>,
  ts AS bid.`dateTime`,
  WATERMARK FOR ts AS ts - INTERVAL '1' SECOND
) WITH (
  'connector' = 'nexmark',
  'events.num' = '5000',       -- without this line, or with 0, the stream has no end
  'next-event.rate' = '100'
);

CREATE VIEW bids AS
SELECT bid.auction AS auction, bid.price AS price, ts FROM events WHERE event_type = 2;

SELECT window_start, window_end, COUNT(*) AS bids, MAX(price) AS highest
FROM TABLE(TUMBLE(TABLE bids, DESCRIPTOR(ts), INTERVAL '10' SECOND))
GROUP BY window_start, window_end;
