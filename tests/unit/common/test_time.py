from __future__ import annotations

import pickle
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firesteel.common import Duration, Instant, Time
from firesteel.common.time import to_millis

SECOND = 10**9


@pytest.mark.parametrize(
    ("text", "nanos", "iso", "formatted"),
    [
        ("200", SECOND // 5, "PT0.2S", "200 ms"),
        ("200 ms", SECOND // 5, "PT0.2S", "200 ms"),
        ("5min", 300 * SECOND, "PT5M", "5 min"),
        ("5 m", 300 * SECOND, "PT5M", "5 min"),
        ("1 d", 86400 * SECOND, "PT24H", "1 d"),
        ("2 days", 172800 * SECOND, "PT48H", "2 d"),
        ("3H", 10800 * SECOND, "PT3H", "3 h"),
        ("10 µs", 10_000, "PT0.00001S", "10 µs"),
        ("1 micros", 1000, "PT0.000001S", "1 µs"),
        ("7 ns", 7, "PT0.000000007S", "7 ns"),
        (" 5 Seconds ", 5 * SECOND, "PT5S", "5 s"),
        ("PT0.2S", SECOND // 5, "PT0.2S", "200 ms"),
        ("P1D", 86400 * SECOND, "PT24H", "1 d"),
        ("pt5m", 300 * SECOND, "PT5M", "5 min"),
        ("PT25H1M1.001S", 90061001 * 10**6, "PT25H1M1.001S", "90061001 ms"),
        ("PT-1.5S", -3 * SECOND // 2, "PT-1.5S", "-1500 ms"),
        ("-PT1.5S", -3 * SECOND // 2, "PT-1.5S", "-1500 ms"),
        ("0", 0, "PT0S", "0 ms"),
    ],
)
def test_durations_are_read_and_written_as_flink_does(text, nanos, iso, formatted):
    duration = Duration.parse(text)
    assert duration.to_nanos() == nanos
    assert str(duration) == iso
    assert duration.format() == formatted


@pytest.mark.parametrize("text", ["", " ", "abc", "-5 ms", "1.5 s", "5 weeks", "P", "PT", "P1DT", "5 5 s"])
def test_what_is_no_duration(text):
    with pytest.raises(ValueError, match="is not a duration"):
        Duration.parse(text)


@given(st.integers(min_value=0, max_value=10**24))
def test_durations_round_trip(nanos):
    duration = Duration.of_nanos(nanos)
    assert Duration.parse(duration.format()) == duration
    assert Duration.parse(str(duration)) == duration


def test_units():
    assert Duration.of_days(1) == Duration.of_hours(24) == Duration.of_minutes(1440)
    assert Duration.of_seconds(1) == Duration.of_millis(1000) == Duration.of_nanos(SECOND)
    assert Duration.of_timedelta(timedelta(seconds=1, microseconds=5)) == Duration.of_nanos(SECOND + 5000)


def test_conversions():
    duration = Duration.of_nanos(1_999_999)
    assert duration.to_millis() == 1
    assert Duration.of_millis(1500).to_seconds() == 1.5
    assert Duration.of_millis(1500).to_timedelta() == timedelta(seconds=1.5)


def test_durations_compare_hash_and_pickle():
    assert Duration.of_seconds(1) < Duration.of_seconds(2)
    assert Duration.of_seconds(1) >= Duration.of_millis(1000)
    assert len({Duration.of_seconds(1), Duration.of_millis(1000)}) == 1
    assert pickle.loads(pickle.dumps(Duration.of_seconds(1))) == Duration.of_seconds(1)
    assert Duration.of_seconds(1) != 1000
    with pytest.raises(TypeError):
        _ = Duration.of_seconds(1) < 5


@pytest.mark.parametrize("make", [Duration.of_seconds, Duration.of_millis, Time.seconds, Time.milliseconds])
def test_fractions_are_refused(make):
    with pytest.raises(TypeError, match="whole units"):
        make(1.5)


@pytest.mark.parametrize("milli", [0, 1, 999, 1000, 1001, -1, -999, -1000, -1001, 1_600_000_000_123])
def test_instants_round_trip_also_before_1970(milli):
    instant = Instant.of_epoch_milli(milli)
    assert instant.to_epoch_milli() == milli
    assert 0 <= instant.nanos < SECOND


def test_instants():
    assert Instant.of_epoch_milli(-1) == Instant(-1, 999_000_000)
    assert Instant.of_epoch_milli(-1) < Instant(0, 0)
    assert hash(Instant(1, 2)) == hash(Instant(1, 2))
    assert repr(Instant(1, 2)) == "Instant<1, 2>"


def test_time():
    assert Time.days(1) == Time.hours(24) == Time.minutes(1440) == Time.seconds(86400)
    assert Time.seconds(2).to_milliseconds() == 2000
    assert str(Time.seconds(2)) == "2000 ms"
    assert Time.seconds(1) < Time.seconds(2)
    assert len({Time.seconds(1), Time.milliseconds(1000)}) == 1


@pytest.mark.parametrize("amount", [1500, Duration.of_millis(1500), Time(1500), timedelta(seconds=1.5)])
def test_to_millis(amount):
    assert to_millis(amount) == 1500


@pytest.mark.parametrize("amount", [True, 1.5, "5 s", None])
def test_to_millis_refuses(amount):
    with pytest.raises(TypeError):
        to_millis(amount)
