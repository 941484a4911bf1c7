"""Settings of the environment and what they return."""

from pyflink.common import Configuration
from pyflink.datastream import CheckpointingMode, RuntimeExecutionMode, StreamExecutionEnvironment


def main():
    config = Configuration()
    config.set_string("parallelism.default", "3")
    env = StreamExecutionEnvironment.get_execution_environment(config)
    print(env.get_parallelism())
    env.set_parallelism(2).set_max_parallelism(64)
    print(env.get_parallelism(), env.get_max_parallelism())
    print(env.is_chaining_enabled(), env.get_buffer_timeout(), env.get_checkpoint_interval())
    env.disable_operator_chaining()
    env.set_buffer_timeout(10)
    env.enable_checkpointing(5000, CheckpointingMode.AT_LEAST_ONCE)
    print(env.is_chaining_enabled(), env.get_buffer_timeout(), env.get_checkpoint_interval())
    print(env.get_checkpointing_mode(), env.get_checkpoint_config().get_checkpoint_timeout())
    config = env.get_config()
    config.set_auto_watermark_interval(50).enable_object_reuse()
    print(config.get_auto_watermark_interval(), config.is_object_reuse_enabled())
    env.set_runtime_mode(RuntimeExecutionMode.STREAMING)
    print(sorted(env.from_collection([1, 2, 3]).map(lambda x: x + 1).execute_and_collect(limit=3)))


if __name__ == "__main__":
    main()
