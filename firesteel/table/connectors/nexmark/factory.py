"""The options of the connector ``nexmark``."""

from __future__ import annotations

from collections.abc import Mapping

from firesteel.common.errors import InvalidProgramError
from firesteel.config.memory_size import MemorySize
from firesteel.config.option import ConfigOptions
from firesteel.connectors.generators.nexmark import NexmarkConfig
from firesteel.table.bound.errors import ValidationError
from firesteel.table.connector.factory import DynamicTableFactory, FactoryContext
from firesteel.table.connector.options import option_of
from firesteel.table.connectors.nexmark.columns import ROW_TYPE
from firesteel.table.connectors.nexmark.source import NexmarkTableSource
from firesteel.types.logical import LogicalType, RowType

__all__ = ["FACTORY"]

_key = ConfigOptions.key
EVENTS_NUM = _key("events.num").long_type().default_value(0)
NEXT_EVENT_RATE = _key("next-event.rate").int_type().default_value(10_000).with_fallback_keys("tps")
FIRST_EVENT_RATE = _key("first-event.rate").int_type().no_default_value()
RATE_LIMITED = _key("rate.limited").boolean_type().default_value(False)
MAX_EMIT_SPEED = _key("max-emit-speed").boolean_type().default_value(True)
KEEP_ALIVE = _key("keep-alive").boolean_type().default_value(False)
PERSON_PROPORTION = _key("person.proportion").int_type().default_value(1)
AUCTION_PROPORTION = _key("auction.proportion").int_type().default_value(3)
BID_PROPORTION = _key("bid.proportion").int_type().default_value(46)
HOT_AUCTIONS = _key("bid.hot-ratio.auctions").int_type().default_value(2)
HOT_BIDDERS = _key("bid.hot-ratio.bidders").int_type().default_value(4)
HOT_SELLERS = _key("auction.hot-ratio.sellers").int_type().default_value(4)
PERSON_SIZE = _key("person.avg-size").memory_type().default_value(MemorySize(200))
AUCTION_SIZE = _key("auction.avg-size").memory_type().default_value(MemorySize(500))
BID_SIZE = _key("bid.avg-size").memory_type().default_value(MemorySize(100))
BASE_TIME = _key("base-time").long_type().default_value(NexmarkConfig.start_ms)
SEED = _key("seed").long_type().default_value(0)
GROUP_SIZE = _key("out-of-order.group-size").int_type().default_value(1)
_OPTIONS = (
    EVENTS_NUM,
    NEXT_EVENT_RATE,
    FIRST_EVENT_RATE,
    RATE_LIMITED,
    MAX_EMIT_SPEED,
    KEEP_ALIVE,
    PERSON_PROPORTION,
    AUCTION_PROPORTION,
    BID_PROPORTION,
    HOT_AUCTIONS,
    HOT_BIDDERS,
    HOT_SELLERS,
    PERSON_SIZE,
    AUCTION_SIZE,
    BID_SIZE,
    BASE_TIME,
    SEED,
    GROUP_SIZE,
)


class _Factory(DynamicTableFactory):
    identifier = "nexmark"
    optional_options = (*(option.key for option in _OPTIONS), "tps", "rate.shape", "rate.period")

    def create_source(self, context: FactoryContext) -> NexmarkTableSource:
        row_type = context.physical_type
        _check_columns(row_type)
        options = context.options
        rate = option_of(options, NEXT_EVENT_RATE)
        if option_of(options, FIRST_EVENT_RATE) not in (None, rate):
            raise ValidationError(
                "Connector 'nexmark': a rate that changes is not supported.",
                hint="Give 'first-event.rate' and 'next-event.rate' the same value.",
            )
        if option_of(options, KEEP_ALIVE):
            raise ValidationError("Connector 'nexmark': 'keep-alive' is not supported.")
        is_limited = option_of(options, RATE_LIMITED) or not option_of(options, MAX_EMIT_SPEED)
        paths = tuple((part.name,) for part in row_type.fields)
        return NexmarkTableSource(
            _config(options, rate),
            paths,
            row_type,
            option_of(options, EVENTS_NUM) or None,
            float(rate) if is_limited else None,
        )


def _config(options: Mapping[str, str], rate: int) -> NexmarkConfig:
    try:
        return NexmarkConfig(
            events_per_second=float(rate),
            start_ms=option_of(options, BASE_TIME),
            person_proportion=option_of(options, PERSON_PROPORTION),
            auction_proportion=option_of(options, AUCTION_PROPORTION),
            bid_proportion=option_of(options, BID_PROPORTION),
            hot_auction_ratio=option_of(options, HOT_AUCTIONS),
            hot_bidders_ratio=option_of(options, HOT_BIDDERS),
            hot_sellers_ratio=option_of(options, HOT_SELLERS),
            out_of_order_group_size=option_of(options, GROUP_SIZE),
            seed=option_of(options, SEED),
            has_many_channels=True,
            person_size=option_of(options, PERSON_SIZE).bytes,
            auction_size=option_of(options, AUCTION_SIZE).bytes,
            bid_size=option_of(options, BID_SIZE).bytes,
        )
    except ValidationError:
        raise
    except InvalidProgramError as error:
        raise ValidationError(f"Connector 'nexmark': {error}") from None


def _check_columns(row_type: RowType) -> None:
    """Columns may be left out or come in another order; what there is has to be as NEXMark defines it."""
    expected = {part.name: _plain(part.type) for part in ROW_TYPE.fields}
    for part in row_type.fields:
        if expected.get(part.name) != _plain(part.type):
            raise ValidationError(
                f"Connector 'nexmark' has no column `{part.name}` {part.type.as_summary_string()}.",
                hint=f"The columns are {', '.join(column.as_summary_string() for column in ROW_TYPE.fields)}.",
            )


def _plain(type_: LogicalType) -> LogicalType:
    """The type without what is not compared: whether it takes null."""
    if isinstance(type_, RowType):
        return RowType.of(type_.field_names, [_plain(part) for part in type_.children()])
    return type_.copy(True)


FACTORY = _Factory()
