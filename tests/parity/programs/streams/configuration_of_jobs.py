"""Configuration, checkpoint and execution settings: what they return, in the environment and on their own."""

from pyflink.common import Configuration, Types
from pyflink.datastream import CheckpointingMode, ExternalizedCheckpointRetention, StreamExecutionEnvironment


def main():
    config = Configuration()
    config.set_string("a.name", "named").set_integer("a.number", 1).set_boolean("a.flag", True)
    config.set_float("a.float", 0.5).set_string("a.text", "x y")
    print(
        config.get_string("a.text", ""),
        config.get_integer("a.number", 9),
        config.get_boolean("a.flag", False),
    )
    print(config.get_float("a.float", 0.0), config.get_string("absent", "default"), config.contains_key("a.flag"))
    other = Configuration(config)
    other.remove_config("a.flag")
    print(other.contains_key("a.flag"), sorted(other.to_dict()))
    settings = Configuration().set_string("pipeline.name", "named").set_integer("parallelism.default", 1)
    env = StreamExecutionEnvironment.get_execution_environment(settings)
    print(env.get_parallelism(), env.get_max_parallelism(), env.get_buffer_timeout(), env.is_chaining_enabled())
    env.enable_checkpointing(60000, CheckpointingMode.AT_LEAST_ONCE)
    checkpoints = env.get_checkpoint_config()
    checkpoints.set_checkpoint_timeout(30000).set_min_pause_between_checkpoints(100)
    checkpoints.set_max_concurrent_checkpoints(2).set_tolerable_checkpoint_failure_number(3)
    checkpoints.set_externalized_checkpoint_retention(ExternalizedCheckpointRetention.RETAIN_ON_CANCELLATION)
    print(env.get_checkpoint_interval(), env.get_checkpointing_mode().name, checkpoints.get_checkpoint_timeout())
    print(checkpoints.get_min_pause_between_checkpoints(), checkpoints.get_max_concurrent_checkpoints())
    print(checkpoints.get_tolerable_checkpoint_failure_number(), checkpoints.is_checkpointing_enabled())
    print(checkpoints.get_externalized_checkpoint_retention().name, checkpoints.is_unaligned_checkpoints_enabled())
    execution = env.get_config()
    execution.set_auto_watermark_interval(50).enable_object_reuse()
    print(execution.get_auto_watermark_interval(), execution.is_object_reuse_enabled(), execution.get_parallelism())
    print(execution.set_global_job_parameters({"a": "1"}).get_global_job_parameters())
    env.set_parallelism(1).set_max_parallelism(16).set_buffer_timeout(5)
    print(env.get_parallelism(), env.get_max_parallelism(), env.get_buffer_timeout())
    env.from_collection([1], Types.INT()).print()
    env.execute()


if __name__ == "__main__":
    main()
