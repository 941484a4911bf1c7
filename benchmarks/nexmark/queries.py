"""The tables, views and queries of NEXMark in Flink SQL, q0 to q23 without q6, which Flink cannot run either.

q13 looks a side table up; q14's user-defined count of a character is written with built-in functions. q12 depends on
the clock.
"""

# ruff: noqa: E501 - statements
from __future__ import annotations

__all__ = ["COLUMNS", "QUERIES", "SOURCE", "VIEWS", "events_table"]

COLUMNS = """
    event_type INT,
    person ROW<id BIGINT, name VARCHAR, emailAddress VARCHAR, creditCard VARCHAR, city VARCHAR, state VARCHAR,
        `dateTime` TIMESTAMP(3), extra VARCHAR>,
    auction ROW<id BIGINT, itemName VARCHAR, description VARCHAR, initialBid BIGINT, reserve BIGINT,
        `dateTime` TIMESTAMP(3), expires TIMESTAMP(3), seller BIGINT, category BIGINT, extra VARCHAR>,
    bid ROW<auction BIGINT, bidder BIGINT, price BIGINT, channel VARCHAR, url VARCHAR, `dateTime` TIMESTAMP(3),
        extra VARCHAR>,
    `dateTime` AS CASE event_type WHEN 0 THEN person.`dateTime` WHEN 1 THEN auction.`dateTime` ELSE bid.`dateTime` END,
    WATERMARK FOR `dateTime` AS `dateTime` - INTERVAL '4' SECOND
"""


def events_table(options: dict[str, str]) -> str:
    """The statement that creates the table of all events."""
    settings = ", ".join(f"'{key}' = '{value}'" for key, value in options.items())
    return f"CREATE TEMPORARY TABLE events ({COLUMNS}) WITH ({settings})"


VIEWS = [
    """CREATE TEMPORARY VIEW person AS
    SELECT person.id, person.name, person.emailAddress, person.creditCard, person.city, person.state, `dateTime`,
        person.extra FROM events WHERE event_type = 0""",
    """CREATE TEMPORARY VIEW auction AS
    SELECT auction.id, auction.itemName, auction.description, auction.initialBid, auction.reserve, `dateTime`,
        auction.expires, auction.seller, auction.category, auction.extra FROM events WHERE event_type = 1""",
    """CREATE TEMPORARY VIEW bid AS
    SELECT bid.auction, bid.bidder, bid.price, bid.channel, bid.url, `dateTime`, bid.extra
    FROM events WHERE event_type = 2""",
    "CREATE TEMPORARY VIEW timed_bid AS SELECT *, PROCTIME() AS p_time FROM bid",
]

SOURCE = "SELECT event_type, person, auction, bid FROM events"
"""All events with all their columns."""

_RANKS = ("price < 10000", "price >= 10000 AND price < 1000000", "price >= 1000000")


def _statistics() -> str:
    """Counts of bids, bidders and auctions: of all, and of those with three ranges of prices."""
    calls = [("bids", "COUNT(*)"), ("bidders", "COUNT(DISTINCT bidder)"), ("auctions", "COUNT(DISTINCT auction)")]
    parts = []
    for name, call in calls:
        parts.append(f"{call} AS total_{name}")
        parts += [f"{call} FILTER (WHERE {test}) AS rank{rank}_{name}" for rank, test in enumerate(_RANKS, 1)]
    return ",\n        ".join(parts)


_HOPS = """TABLE(HOP(TABLE bid, DESCRIPTOR(`dateTime`), INTERVAL '2' SECOND, INTERVAL '10' SECOND))"""

QUERIES: dict[str, str] = {
    "q0": "SELECT auction, bidder, price, `dateTime`, extra FROM bid",
    "q1": "SELECT auction, bidder, 0.908 * price AS price, `dateTime`, extra FROM bid",
    "q2": "SELECT auction, price FROM bid WHERE MOD(auction, 123) = 0",
    "q3": """SELECT P.name, P.city, P.state, A.id FROM auction AS A INNER JOIN person AS P ON A.seller = P.id
    WHERE A.category = 1000 AND (P.state = 'OR' OR P.state = 'ID' OR P.state = 'CA')""",
    "q4": """SELECT Q.category, AVG(Q.final) AS average FROM (
        SELECT MAX(B.price) AS final, A.category FROM auction A, bid B
        WHERE A.id = B.auction AND B.`dateTime` BETWEEN A.`dateTime` AND A.expires GROUP BY A.id, A.category
    ) Q GROUP BY Q.category""",
    "q5": f"""SELECT AuctionBids.auction, AuctionBids.num FROM (
        SELECT auction, COUNT(*) AS num, window_start AS starttime, window_end AS endtime FROM {_HOPS}
        GROUP BY auction, window_start, window_end
    ) AS AuctionBids JOIN (
        SELECT MAX(CountBids.num) AS maxn, CountBids.starttime, CountBids.endtime FROM (
            SELECT COUNT(*) AS num, window_start AS starttime, window_end AS endtime FROM {_HOPS}
            GROUP BY auction, window_start, window_end
        ) AS CountBids GROUP BY CountBids.starttime, CountBids.endtime
    ) AS MaxBids ON AuctionBids.starttime = MaxBids.starttime AND AuctionBids.endtime = MaxBids.endtime
        AND AuctionBids.num >= MaxBids.maxn""",
    "q7": """SELECT B.auction, B.price, B.bidder, B.`dateTime`, B.extra FROM bid B JOIN (
        SELECT MAX(price) AS maxprice, window_end AS `dateTime`
        FROM TABLE(TUMBLE(TABLE bid, DESCRIPTOR(`dateTime`), INTERVAL '10' SECOND)) GROUP BY window_start, window_end
    ) B1 ON B.price = B1.maxprice
    WHERE B.`dateTime` BETWEEN B1.`dateTime` - INTERVAL '10' SECOND AND B1.`dateTime`""",
    "q8": """SELECT P.id, P.name, P.starttime FROM (
        SELECT id, name, window_start AS starttime, window_end AS endtime
        FROM TABLE(TUMBLE(TABLE person, DESCRIPTOR(`dateTime`), INTERVAL '10' SECOND))
        GROUP BY id, name, window_start, window_end
    ) P JOIN (
        SELECT seller, window_start AS starttime, window_end AS endtime
        FROM TABLE(TUMBLE(TABLE auction, DESCRIPTOR(`dateTime`), INTERVAL '10' SECOND))
        GROUP BY seller, window_start, window_end
    ) A ON P.id = A.seller AND P.starttime = A.starttime AND P.endtime = A.endtime""",
    "q9": """SELECT id, itemName, description, initialBid, reserve, `dateTime`, expires, seller, category, extra,
        auction, bidder, price, bid_dateTime, bid_extra FROM (
        SELECT A.*, B.auction, B.bidder, B.price, B.`dateTime` AS bid_dateTime, B.extra AS bid_extra,
            ROW_NUMBER() OVER (PARTITION BY A.id ORDER BY B.price DESC, B.`dateTime` ASC) AS rownum
        FROM auction A, bid B WHERE A.id = B.auction AND B.`dateTime` BETWEEN A.`dateTime` AND A.expires
    ) WHERE rownum <= 1""",
    "q10": """SELECT auction, bidder, price, `dateTime`, extra, DATE_FORMAT(`dateTime`, 'yyyy-MM-dd') AS dt,
        DATE_FORMAT(`dateTime`, 'HH:mm') AS hm FROM bid""",
    "q11": """SELECT B.bidder, COUNT(*) AS bid_count, SESSION_START(B.`dateTime`, INTERVAL '10' SECOND) AS starttime,
        SESSION_END(B.`dateTime`, INTERVAL '10' SECOND) AS endtime
    FROM bid B GROUP BY B.bidder, SESSION(B.`dateTime`, INTERVAL '10' SECOND)""",
    "q12": """SELECT bidder, COUNT(*) AS bid_count, window_start AS starttime, window_end AS endtime
    FROM TABLE(TUMBLE(TABLE timed_bid, DESCRIPTOR(p_time), INTERVAL '10' SECOND))
    GROUP BY bidder, window_start, window_end""",
    "q13": """SELECT B.auction, B.bidder, B.price, B.`dateTime`, S.`value` FROM timed_bid B
    JOIN side_input FOR SYSTEM_TIME AS OF B.p_time AS S ON MOD(B.auction, 10000) = S.key""",
    "q14": """SELECT auction, bidder, 0.908 * price AS price,
        CASE WHEN HOUR(`dateTime`) >= 8 AND HOUR(`dateTime`) <= 18 THEN 'dayTime'
            WHEN HOUR(`dateTime`) <= 6 OR HOUR(`dateTime`) >= 20 THEN 'nightTime' ELSE 'otherTime' END AS bidTimeType,
        `dateTime`, extra, CHAR_LENGTH(extra) - CHAR_LENGTH(REPLACE(extra, 'c', '')) AS c_counts
    FROM bid WHERE 0.908 * price > 1000000 AND 0.908 * price < 50000000""",
    "q15": f"""SELECT DATE_FORMAT(`dateTime`, 'yyyy-MM-dd') AS `day`,
        {_statistics()}
    FROM bid GROUP BY DATE_FORMAT(`dateTime`, 'yyyy-MM-dd')""",
    "q16": f"""SELECT channel, DATE_FORMAT(`dateTime`, 'yyyy-MM-dd') AS `day`,
        MAX(DATE_FORMAT(`dateTime`, 'HH:mm')) AS `minute`,
        {_statistics()}
    FROM bid GROUP BY channel, DATE_FORMAT(`dateTime`, 'yyyy-MM-dd')""",
    "q17": f"""SELECT auction, DATE_FORMAT(`dateTime`, 'yyyy-MM-dd') AS `day`, COUNT(*) AS total_bids,
        {", ".join(f"COUNT(*) FILTER (WHERE {test}) AS rank{rank}_bids" for rank, test in enumerate(_RANKS, 1))},
        MIN(price) AS min_price, MAX(price) AS max_price, AVG(price) AS avg_price, SUM(price) AS sum_price
    FROM bid GROUP BY auction, DATE_FORMAT(`dateTime`, 'yyyy-MM-dd')""",
    "q18": """SELECT auction, bidder, price, channel, url, `dateTime`, extra FROM (
        SELECT *, ROW_NUMBER() OVER (PARTITION BY bidder, auction ORDER BY `dateTime` DESC) AS rank_number FROM bid
    ) WHERE rank_number <= 1""",
    "q19": """SELECT * FROM (
        SELECT *, ROW_NUMBER() OVER (PARTITION BY auction ORDER BY price DESC) AS rank_number FROM bid
    ) WHERE rank_number <= 10""",
    "q20": """SELECT auction, bidder, price, channel, url, B.`dateTime` AS bid_dateTime, B.extra AS bid_extra, itemName,
        description, initialBid, reserve, A.`dateTime` AS auction_dateTime, expires, seller, category,
        A.extra AS auction_extra
    FROM bid AS B INNER JOIN auction AS A ON B.auction = A.id WHERE A.category = 1000""",
    "q21": """SELECT auction, bidder, price, channel,
        CASE LOWER(channel) WHEN 'apple' THEN '0' WHEN 'google' THEN '1' WHEN 'facebook' THEN '2' WHEN 'baidu' THEN '3'
            ELSE REGEXP_EXTRACT(url, '(&|^)channel_id=([^&]*)', 2) END AS channel_id
    FROM bid WHERE REGEXP_EXTRACT(url, '(&|^)channel_id=([^&]*)', 2) IS NOT NULL
        OR LOWER(channel) IN ('apple', 'google', 'facebook', 'baidu')""",
    "q22": """SELECT auction, bidder, price, channel, SPLIT_INDEX(url, '/', 3) AS dir1, SPLIT_INDEX(url, '/', 4) AS dir2,
        SPLIT_INDEX(url, '/', 5) AS dir3 FROM bid""",
    "q23": """SELECT bidder, price, channel, url, B.extra AS bid_extra, P.id AS person_id, name, emailAddress,
        creditCard, city, state, P.extra AS person_extra, itemName, description, initialBid, reserve,
        A.`dateTime` AS auction_dateTime, expires, seller, category, A.extra AS auction_extra
    FROM bid B JOIN person P ON P.id = B.bidder JOIN auction A ON A.seller = B.bidder""",
}
