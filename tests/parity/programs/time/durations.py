"""Time, Duration and Instant as values."""

from pyflink.common import Duration, Instant, Time


def main():
    print(Time.seconds(5).to_milliseconds(), Time.days(1).to_milliseconds(), Time.hours(2).to_milliseconds())
    print(Time.minutes(1) == Time.seconds(60), Time.milliseconds(1) == Time.milliseconds(2))
    print(Duration.of_seconds(90) == Duration.of_millis(90000), Duration.of_days(1) == Duration.of_hours(24))
    print(Instant.of_epoch_milli(1500), Instant.of_epoch_milli(1500).to_epoch_milli(), Instant(1, 5))
    print(Instant.of_epoch_milli(-1), Instant(0, 0) == Instant.of_epoch_milli(0))


if __name__ == "__main__":
    main()
