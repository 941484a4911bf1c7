"""What the RuntimeContext gives."""

from pyflink.common import Types
from pyflink.datastream import MapFunction, RuntimeContext, StreamExecutionEnvironment


class Describe(MapFunction):
    def open(self, runtime_context: RuntimeContext):
        self.text = " ".join(
            map(
                str,
                (
                    runtime_context.get_task_name(),
                    runtime_context.get_number_of_parallel_subtasks(),
                    runtime_context.get_max_number_of_parallel_subtasks(),
                    runtime_context.get_index_of_this_subtask(),
                    runtime_context.get_attempt_number(),
                    runtime_context.get_task_name_with_subtasks(),
                    runtime_context.get_job_parameter("absent", "default"),
                ),
            )
        )

    def map(self, value):
        return f"{value} {self.text.replace('_stream_key_by_map_operator', 'key')}"


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    env.from_collection(["a"], Types.STRING()).map(Describe(), Types.STRING()).name("describe").print()
    env.execute()


if __name__ == "__main__":
    main()
