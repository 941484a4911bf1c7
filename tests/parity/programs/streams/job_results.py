"""What execute and execute_async return."""

from pyflink.common import JobStatus, Types
from pyflink.datastream import StreamExecutionEnvironment


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    env.from_collection([1, 2], Types.INT()).map(lambda x: x + 1, Types.INT()).print("first")
    result = env.execute("first job")
    print(result.get_net_runtime() > 0, result.get_all_accumulator_results())
    print(len(str(result.get_job_id())))
    env.from_collection([3], Types.INT()).print("second")
    client = env.execute_async("second job")
    result = client.get_job_execution_result().result()
    print(str(result.get_job_id()) == str(client.get_job_id()), result.get_net_runtime() >= 0)
    print(JobStatus.FINISHED.is_globally_terminal_state(), JobStatus.RUNNING.is_terminal_state())


if __name__ == "__main__":
    main()
