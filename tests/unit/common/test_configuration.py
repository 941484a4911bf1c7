from __future__ import annotations

import copy
import pickle
from datetime import timedelta
from enum import Enum

import pytest

from firesteel.common import ConfigOptions, Configuration, Duration, ExecutionConfig, RestartStrategies
from firesteel.config import checkpointing_options, options, pipeline_options, scheduler_options
from firesteel.config.memory_size import MemorySize
from firesteel.config.option import InvalidConfigurationError

BIG = (1 << 63) - 1


class Color(Enum):
    DARK_RED = "dark-red"
    BLUE = 2


def test_typed_getters_and_setters():
    config = Configuration()
    config.set_string("s", "v").set_integer("i", BIG).set_boolean("b", True).set_float("f", 1)
    config.set_bytearray("y", bytearray([1, 2, 255]))
    assert config.get_string("s", "") == "v"
    assert config.get_integer("i", 0) == BIG
    assert config.get_boolean("b", False) is True
    assert config.get_float("f", 0) == 1.0
    assert isinstance(config.get_float("f", 0), float)
    assert config.get_bytearray("y", bytearray()) == bytearray([1, 2, 255])


def test_defaults_of_getters():
    config = Configuration()
    assert config.get_string("k", "d") == "d"
    assert config.get_integer("k", 0) == 0
    assert config.get_boolean("k", False) is False
    assert config.get_float("k", 0) == 0.0
    assert config.get_bytearray("k", bytearray(b"d")) == bytearray(b"d")
    assert config.get("k") is None
    assert config.get("k", 7) == 7


def test_text_is_read_as_the_type_asked_for():
    config = Configuration.from_dict({"i": "42", "b": "TRUE", "f": "0.5"})
    assert config.get_integer("i", 0) == 42
    assert config.get_boolean("b", False) is True
    assert config.get_float("f", 0) == 0.5


def test_values_are_given_as_text_when_text_is_asked_for():
    config = Configuration().set_integer("i", 5).set_boolean("b", True).set_float("f", 1.0)
    assert [config.get_string(key, "") for key in "ibf"] == ["5", "true", "1.0"]


@pytest.mark.parametrize(
    ("read", "value"),
    [
        (lambda c: c.get_integer("k", 0), "x"),
        (lambda c: c.get_integer("k", 0), "1.5"),
        (lambda c: c.get_integer("k", 0), str(1 << 63)),
        (lambda c: c.get_boolean("k", False), "yes"),
        (lambda c: c.get_float("k", 0), "x"),
        (lambda c: c.get_bytearray("k", bytearray()), "%"),
    ],
)
def test_a_value_of_another_type_names_key_and_value(read, value):
    config = Configuration().set_string("k", value)
    with pytest.raises(InvalidConfigurationError) as caught:
        read(config)
    assert (caught.value.key, caught.value.value) == ("k", value)
    assert "'k'" in str(caught.value)
    assert isinstance(caught.value, ValueError)


def test_configuration_errors_survive_pickling():
    with pytest.raises(InvalidConfigurationError) as caught:
        Configuration().set(pipeline_options.AUTO_WATERMARK_INTERVAL, "soon")
    again = pickle.loads(pickle.dumps(caught.value))
    assert (again.key, again.value, str(again)) == (
        "pipeline.auto-watermark-interval",
        "soon",
        str(caught.value),
    )


def test_keys_containment_and_removal():
    config = Configuration.from_dict({"a": "1", "b": "2"})
    assert config.key_set() == {"a", "b"}
    assert config.contains_key("a")
    assert config.remove_config("a") is True
    assert config.remove_config("a") is False
    assert not config.contains_key("a")


def test_add_all_with_and_without_prefix():
    config = Configuration().set_string("k", "old")
    other = Configuration().set_string("k", "new")
    config.add_all(other).add_all(other, "p.")
    assert config.to_dict() == {"k": "new", "p.k": "new"}


def test_add_all_to_dict_keeps_values_and_to_dict_makes_text():
    config = Configuration().set_string("a", "v").set_integer("b", 1).set_float("c", 1.2).set_boolean("d", True)
    target = {"z": 0}
    config.add_all_to_dict(target)
    assert target == {"z": 0, "a": "v", "b": 1, "c": 1.2, "d": True}
    assert config.to_dict() == {"a": "v", "b": "1", "c": "1.2", "d": "true"}


def test_copies_are_independent():
    config = Configuration().set_string("k", "v")
    for copied in (Configuration(config), copy.copy(config), copy.deepcopy(config)):
        assert copied == config
        copied.set_string("k", "w")
        assert copied != config
    assert pickle.loads(pickle.dumps(config)) == config


def test_equality_tells_types_apart():
    assert Configuration().set_integer("k", 1) == Configuration().set_integer("k", 1)
    assert hash(Configuration().set_integer("k", 1)) == hash(Configuration().set_integer("k", 1))
    assert Configuration().set_integer("k", 1) != Configuration().set_boolean("k", True)
    assert Configuration().set_integer("k", 1) != Configuration().set_string("k", "1")
    assert Configuration() != {}


def test_printing_hides_secrets():
    config = Configuration().set_string("k1", "v1").set_integer("k2", 1)
    assert str(config) == "{k1=v1, k2=1}"
    config.set_string("s3.Secret-key", "hunter2")
    assert "hunter2" not in str(config)
    assert "hunter2" not in repr(config)


def test_none_and_odd_keys_are_refused():
    with pytest.raises(TypeError):
        Configuration().set("k", None)
    with pytest.raises(TypeError):
        Configuration().set("", 1)
    with pytest.raises(TypeError):
        Configuration().set(3, 1)  # type: ignore[arg-type]


def test_option_with_default_and_fallback_keys():
    option = ConfigOptions.key("new").int_type().default_value(3).with_fallback_keys("old", "older")
    config = Configuration()
    assert config.get(option) == 3
    assert config.get(option, 9) == 9
    assert config.get_optional(option) is None
    assert not config.contains(option)
    config.set_string("older", "5")
    assert config.get(option) == 5
    config.set_string("old", "4")
    assert config.get(option) == 4
    config.set(option, "1")
    assert config.get(option) == config.get_optional(option) == 1
    assert config.contains(option)
    assert config.remove_config(option) is True
    assert config.key_set() == set()


def test_a_wrong_value_under_a_fallback_key_names_that_key():
    option = ConfigOptions.key("new").int_type().no_default_value().with_deprecated_keys("old")
    with pytest.raises(InvalidConfigurationError) as caught:
        Configuration().set_string("old", "x").get(option)
    assert caught.value.key == "old"


def test_setting_an_option_checks_at_once():
    with pytest.raises(InvalidConfigurationError):
        Configuration().set(pipeline_options.DEFAULT_PARALLELISM, "many")
    with pytest.raises(InvalidConfigurationError):
        Configuration().set(pipeline_options.DEFAULT_PARALLELISM, 1 << 31)


def test_wrong_default_is_refused():
    with pytest.raises(InvalidConfigurationError):
        ConfigOptions.key("k").int_type().default_value("x")  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["DARK_RED", "dark-red", "Dark_Red", Color.DARK_RED])
def test_enum_options(text):
    option = ConfigOptions.key("color").enum_type(Color).default_value(Color.BLUE)
    config = Configuration()
    assert config.get(option) is Color.BLUE
    config.set(option, text)
    assert config.get(option) is Color.DARK_RED
    assert config.to_dict() == {"color": "DARK_RED"}


def test_choices_fold_case_and_take_enum_members():
    class Mode(Enum):
        BATCH = 1

    config = Configuration().set_string("execution.runtime-mode", "batch")
    assert config.get(pipeline_options.RUNTIME_MODE) == "BATCH"
    config.set(pipeline_options.RUNTIME_MODE, Mode.BATCH)
    assert config.get(pipeline_options.RUNTIME_MODE) == "BATCH"
    with pytest.raises(InvalidConfigurationError, match="STREAMING, BATCH, AUTOMATIC"):
        config.set(pipeline_options.RUNTIME_MODE, "both")


@pytest.mark.parametrize(
    ("text", "items"),
    [
        (None, []),
        ("", []),
        ("a;b ; c", ["a", "b", "c"]),
        ("[a, b]", ["a", "b"]),
        ("['a, b', \"c\", 'it''s']", ["a, b", "c", "it's"]),
        ("- a\n- b", ["a", "b"]),
        ("'a;b';c", ["a;b", "c"]),
        ("it's; that's", ["it's", "that's"]),
        ("http://x:1,y", ["http://x:1,y"]),
    ],
)
def test_lists(text, items):
    assert Configuration.parse_list_value(text) == items


def test_list_options_convert_each_element_and_round_trip():
    option = ConfigOptions.key("k").int_type().as_list().no_default_value()
    config = Configuration().set_string("k", "1;2")
    assert config.get(option) == [1, 2]
    config.set(option, [3, "4"])
    assert Configuration.from_dict(config.to_dict()).get(option) == [3, 4]


@pytest.mark.parametrize(
    ("text", "entries"),
    [
        ("", {}),
        ("a:1,b:2", {"a": "1", "b": "2"}),
        ("{a: 1, b: http://x:80}", {"a": "1", "b": "http://x:80"}),
        ("a:'1,2', 'b:c': ''", {"a": "1,2", "b:c": ""}),
    ],
)
def test_maps(text, entries):
    option = ConfigOptions.key("k").map_type().no_default_value()
    assert Configuration().set_string("k", text).get(option) == entries
    written = Configuration().set(option, entries).to_dict()
    assert Configuration.from_dict(written).get(option) == entries


def test_a_map_without_colon_is_refused():
    option = ConfigOptions.key("k").map_type().no_default_value()
    with pytest.raises(InvalidConfigurationError):
        Configuration().set_string("k", "a").get(option)


@pytest.mark.parametrize(
    ("text", "size", "printed"),
    [
        ("32kb", 32768, "32 kb"),
        ("32 KB", 32768, "32 kb"),
        ("4096", 4096, "4 kb"),
        ("33", 33, "33 bytes"),
        ("0", 0, "0 bytes"),
        ("5 kibibytes", 5120, "5 kb"),
        ("1g", 1 << 30, "1 gb"),
        ("1025 b", 1025, "1025 bytes"),
    ],
)
def test_memory_sizes(text, size, printed):
    assert MemorySize.parse(text).bytes == size
    assert str(MemorySize.parse(text)) == printed
    assert MemorySize.parse(printed) == MemorySize(size)


@pytest.mark.parametrize("text", ["", "kb", "1.5 mb", "-1 kb", "5 buckets"])
def test_what_is_no_memory_size(text):
    with pytest.raises(ValueError, match="not a memory size"):
        MemorySize.parse(text)


@pytest.mark.parametrize("value", ["5 min", 300_000, Duration.of_minutes(5), timedelta(minutes=5)])
def test_duration_options_take_every_way_to_say_one(value):
    config = Configuration().set(scheduler_options.SLOT_REQUEST_TIMEOUT, value)
    assert config.get(scheduler_options.SLOT_REQUEST_TIMEOUT) == Duration.of_minutes(5)
    assert config.to_dict() == {"slot.request.timeout": "5 min"}


def test_catalogue_keys_are_unique_and_described():
    catalogue = options.all_options()
    keys = [key for option in catalogue for key in (option.key, *option.fallback_keys)]
    assert len(set(keys)) == len(keys)
    assert [option.key for option in catalogue] == sorted(option.key for option in catalogue)
    for option in catalogue:
        assert option.description.endswith("."), option.key
        assert option.default is None or option.convert(option.default) == option.default


@pytest.mark.parametrize(
    ("key", "default"),
    [
        ("parallelism.default", 1),
        ("pipeline.max-parallelism", -1),
        ("pipeline.name", None),
        ("pipeline.auto-watermark-interval", Duration.of_millis(200)),
        ("execution.buffer-timeout.interval", Duration.of_millis(100)),
        ("execution.runtime-mode", "STREAMING"),
        ("taskmanager.network.memory.buffers-per-channel", 2),
        ("taskmanager.network.memory.floating-buffers-per-gate", 8),
        ("taskmanager.network.memory.max-buffers-per-channel", 10),
        ("taskmanager.memory.segment-size", MemorySize(32 * 1024)),
        ("slot.request.timeout", Duration.of_minutes(5)),
        ("restart-strategy.type", None),
        ("restart-strategy.fixed-delay.attempts", 1),
        ("restart-strategy.exponential-delay.backoff-multiplier", 1.5),
        ("task.cancellation.timeout", Duration.of_seconds(180)),
        ("heartbeat.interval", Duration.of_seconds(10)),
        ("heartbeat.timeout", Duration.of_seconds(50)),
        ("state.backend.type", "hashmap"),
        ("execution.checkpointing.timeout", Duration.of_minutes(10)),
    ],
)
def test_defaults_are_flinks(key, default):
    assert {option.key: option.default for option in options.all_options()}[key] == default


def test_savepoint_directory_is_found_under_its_old_key():
    config = Configuration().set_string("state.savepoints.dir", "/sp")
    assert config.get(checkpointing_options.SAVEPOINTS_DIRECTORY) == "/sp"


def test_execution_config_and_configuration_are_one_store():
    config = Configuration()
    execution = ExecutionConfig(config)
    assert execution.get_auto_watermark_interval() == 200
    execution.set_auto_watermark_interval(50)
    assert config.get(pipeline_options.AUTO_WATERMARK_INTERVAL) == Duration.of_millis(50)
    config.set_string("pipeline.auto-watermark-interval", "1 s")
    assert execution.get_auto_watermark_interval() == 1000
    assert execution.to_configuration() is config


def test_execution_config_parallelism():
    execution = ExecutionConfig()
    assert execution.get_parallelism() == ExecutionConfig.PARALLELISM_DEFAULT
    assert execution.set_parallelism(4).get_parallelism() == 4
    assert execution.set_parallelism(ExecutionConfig.PARALLELISM_UNKNOWN).get_parallelism() == 4
    assert execution.set_parallelism(ExecutionConfig.PARALLELISM_DEFAULT).get_parallelism() == -1
    assert execution.get_max_parallelism() == -1
    assert execution.set_max_parallelism(8).get_max_parallelism() == 8


@pytest.mark.parametrize(
    "call",
    [
        lambda e: e.set_parallelism(0),
        lambda e: e.set_parallelism(-3),
        lambda e: e.set_max_parallelism(0),
        lambda e: e.set_auto_watermark_interval(-1),
        lambda e: e.set_task_cancellation_timeout(-1),
    ],
)
def test_execution_config_refuses(call):
    with pytest.raises(ValueError):
        call(ExecutionConfig())


def test_execution_config_flags_round_trip():
    execution = ExecutionConfig()
    assert execution.is_closure_cleaner_enabled()
    assert not execution.disable_closure_cleaner().is_closure_cleaner_enabled()
    assert execution.enable_closure_cleaner().is_closure_cleaner_enabled()
    assert not execution.has_generic_types_disabled()
    assert execution.disable_generic_types().has_generic_types_disabled()
    assert execution.has_auto_generated_uids_enabled()
    assert not execution.disable_auto_generated_uids().has_auto_generated_uids_enabled()
    assert not execution.is_object_reuse_enabled()
    assert execution.enable_object_reuse().is_object_reuse_enabled()
    assert execution.enable_force_kryo().is_force_kryo_enabled()
    assert execution.enable_force_avro().is_force_avro_enabled()
    assert execution.set_use_snapshot_compression(True).is_use_snapshot_compression()
    assert execution.get_task_cancellation_interval() == 30_000
    assert execution.get_task_cancellation_timeout() == 180_000
    assert execution.get_latency_tracking_interval() == 0


def test_global_job_parameters_are_text():
    execution = ExecutionConfig()
    assert execution.get_global_job_parameters() == {}
    execution.set_global_job_parameters({"a": 1, "b": True, "c": "x, y: z"})
    assert execution.get_global_job_parameters() == {"a": "1", "b": "True", "c": "x, y: z"}
    again = ExecutionConfig(Configuration.from_dict(execution.to_configuration().to_dict()))
    assert again.get_global_job_parameters() == {"a": "1", "b": "True", "c": "x, y: z"}


def test_execution_config_restart_strategy():
    execution = ExecutionConfig()
    assert execution.get_restart_strategy() == RestartStrategies.fall_back_restart()
    strategy = RestartStrategies.fixed_delay_restart(3, 500)
    assert execution.set_restart_strategy(strategy).get_restart_strategy() == strategy
