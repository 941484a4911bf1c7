"""State descriptors and time-to-live."""

import pickle

import pytest

from firesteel.common.errors import InvalidProgramError
from firesteel.common.time import Duration, Time
from firesteel.common.typeinfo import Types
from firesteel.datastream.functions import AggregateFunction, ReduceFunction
from firesteel.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)

Strategies = StateTtlConfig.CleanupStrategies


class Longest(ReduceFunction):
    def reduce(self, value1, value2):
        return max(value1, value2, key=len)


class Count(AggregateFunction):
    def create_accumulator(self):
        return 0

    def add(self, value, accumulator):
        return accumulator + 1

    def get_result(self, accumulator):
        return accumulator

    def merge(self, acc_a, acc_b):
        return acc_a + acc_b


@pytest.mark.parametrize(
    ("descriptor", "kind", "type_info"),
    [
        (ValueStateDescriptor("s", Types.INT()), "value", Types.INT()),
        (ListStateDescriptor("s", Types.INT()), "list", Types.LIST(Types.INT())),
        (MapStateDescriptor("s", Types.STRING(), Types.INT()), "map", Types.MAP(Types.STRING(), Types.INT())),
        (ReducingStateDescriptor("s", max, Types.INT()), "reducing", Types.INT()),
        (AggregatingStateDescriptor("s", Count(), Types.INT()), "aggregating", Types.INT()),
        (ValueStateDescriptor("s"), "value", None),
        (ListStateDescriptor("s"), "list", None),
    ],
)
def test_descriptors(descriptor, kind, type_info):
    assert (descriptor.get_name(), descriptor.kind, descriptor.type_info) == ("s", kind, type_info)
    assert descriptor.ttl_config is None
    assert pickle.loads(pickle.dumps(descriptor)).get_name() == "s"


def test_reduce_functions_and_callables_look_the_same():
    assert ReducingStateDescriptor("s", Longest()).get_reduce_function().reduce("a", "bb") == "bb"
    assert ReducingStateDescriptor("s", lambda a, b: a + b).get_reduce_function().reduce(1, 2) == 3


@pytest.mark.parametrize(
    "make",
    [
        lambda: ReducingStateDescriptor("s", 7),
        lambda: AggregatingStateDescriptor("s", Longest()),
        lambda: AggregatingStateDescriptor("s", max),
    ],
)
def test_wrong_functions_are_refused(make):
    with pytest.raises(TypeError, match="state 's'"):
        make()


def test_a_state_needs_a_name():
    with pytest.raises(ValueError, match="non-empty"):
        ValueStateDescriptor("", Types.INT())


def test_ttl_defaults_are_flinks():
    config = StateTtlConfig.new_builder(Time.seconds(1)).build()
    assert config.get_update_type() is StateTtlConfig.UpdateType.OnCreateAndWrite
    assert config.get_state_visibility() is StateTtlConfig.StateVisibility.NeverReturnExpired
    assert config.get_ttl_time_characteristic() is StateTtlConfig.TtlTimeCharacteristic.ProcessingTime
    assert config.get_ttl() == Time.seconds(1)
    assert config.is_enabled()
    cleanup = config.get_cleanup_strategies()
    assert cleanup.is_cleanup_in_background()
    assert not cleanup.in_full_snapshot()
    assert cleanup.get_incremental_cleanup_strategy().get_cleanup_size() == 5
    assert not cleanup.get_incremental_cleanup_strategy().run_cleanup_for_every_record()
    compaction = cleanup.get_rocksdb_compact_filter_cleanup_strategy()
    assert compaction.get_query_time_after_num_entries() == 1000
    assert compaction.get_periodic_compaction_time() == Duration.of_days(30)


def test_ttl_builder_sets_everything():
    config = (
        StateTtlConfig.new_builder(Time.seconds(1))
        .set_ttl(Duration.of_minutes(2))
        .update_ttl_on_read_and_write()
        .return_expired_if_not_cleaned_up()
        .use_processing_time()
        .cleanup_full_snapshot()
        .cleanup_incrementally(10, True)
        .cleanup_in_rocksdb_compact_filter(500, Duration.of_days(1))
        .disable_cleanup_in_background()
        .build()
    )
    assert config.ttl_millis == 120_000
    assert config.get_update_type() is StateTtlConfig.UpdateType.OnReadAndWrite
    assert config.get_state_visibility() is StateTtlConfig.StateVisibility.ReturnExpiredIfNotCleanedUp
    cleanup = pickle.loads(pickle.dumps(config)).get_cleanup_strategies()
    assert cleanup.in_full_snapshot()
    assert not cleanup.is_cleanup_in_background()
    assert cleanup.get_incremental_cleanup_strategy().get_cleanup_size() == 10
    assert cleanup.get_incremental_cleanup_strategy().run_cleanup_for_every_record()
    assert cleanup.get_rocksdb_compact_filter_cleanup_strategy().get_periodic_compaction_time() == Duration.of_days(1)


def test_without_background_cleanup_there_is_none_by_default():
    cleanup = StateTtlConfig.new_builder(Time.seconds(1)).disable_cleanup_in_background().build()
    assert cleanup.get_cleanup_strategies().get_incremental_cleanup_strategy() is None
    assert cleanup.get_cleanup_strategies().get_rocksdb_compact_filter_cleanup_strategy() is None


def test_a_builder_can_be_used_again_without_changing_what_it_built():
    builder = StateTtlConfig.new_builder(Time.seconds(1))
    first = builder.build()
    builder.cleanup_full_snapshot()
    assert not first.get_cleanup_strategies().in_full_snapshot()


def test_enabling_time_to_live():
    descriptor = ValueStateDescriptor("s", Types.INT())
    config = StateTtlConfig.new_builder(Time.seconds(1)).build()
    descriptor.enable_time_to_live(config)
    assert descriptor.ttl_config is config
    disabled = StateTtlConfig.new_builder(Time.seconds(1)).set_update_type(StateTtlConfig.UpdateType.Disabled).build()
    descriptor.enable_time_to_live(disabled)
    assert descriptor.ttl_config is None


@pytest.mark.parametrize(
    "make",
    [
        lambda: StateTtlConfig.new_builder(Time.seconds(0)).build(),
        lambda: StateTtlConfig.new_builder(Duration.of_seconds(-1)).build(),
        lambda: StateTtlConfig.new_builder(Time.seconds(1)).cleanup_incrementally(0, False),
    ],
)
def test_impossible_time_to_live_is_refused(make):
    with pytest.raises(InvalidProgramError, match="must be positive"):
        make()
