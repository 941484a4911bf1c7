-- One query, over payments that end and over payments that do not.
--
-- Once, as a batch:       firesteel sql -D execution.runtime-mode=batch -f examples/kappa.sql
-- As a stream that ends:  firesteel sql -f examples/kappa.sql
-- As a live table:        firesteel sql -i examples/kappa.sql
--   and in the shell:     SELECT customer, COUNT(*) AS payments, SUM(amount) AS total FROM payments GROUP BY customer;

CREATE TABLE past_payments (
  amount INT,
  customer AS MOD(amount, 3)
) WITH (
  'connector' = 'datagen',
  'number-of-rows' = '100',
  'fields.amount.kind' = 'sequence',
  'fields.amount.start' = '1',
  'fields.amount.end' = '100'
);

CREATE TABLE payments WITH (
  'connector' = 'datagen',
  'rows-per-second' = '20',
  'fields.amount.min' = '1',
  'fields.amount.max' = '100'
) LIKE past_payments (EXCLUDING OPTIONS);

CREATE VIEW spending AS
SELECT customer, COUNT(*) AS payments, SUM(amount) AS total FROM past_payments GROUP BY customer;

SET 'sql-client.display.print-time-cost' = 'false';

SELECT * FROM spending;
