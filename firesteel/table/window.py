"""Windows of the Table API."""

from firesteel.table.dsl.windows import (
    GroupWindow,
    Over,
    OverWindow,
    OverWindowPartitioned,
    OverWindowPartitionedOrdered,
    OverWindowPartitionedOrderedPreceding,
    Session,
    SessionWithGap,
    SessionWithGapOnTime,
    Slide,
    SlideWithSize,
    SlideWithSizeAndSlide,
    SlideWithSizeAndSlideOnTime,
    Tumble,
    TumbleWithSize,
    TumbleWithSizeOnTime,
)

__all__ = [
    "GroupWindow",
    "Over",
    "OverWindow",
    "OverWindowPartitioned",
    "OverWindowPartitionedOrdered",
    "OverWindowPartitionedOrderedPreceding",
    "Session",
    "SessionWithGap",
    "SessionWithGapOnTime",
    "Slide",
    "SlideWithSize",
    "SlideWithSizeAndSlide",
    "SlideWithSizeAndSlideOnTime",
    "Tumble",
    "TumbleWithSize",
    "TumbleWithSizeOnTime",
]
