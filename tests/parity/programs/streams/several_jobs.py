"""One environment that executes several jobs, one after the other."""

from pyflink.common import Types
from pyflink.datastream import StreamExecutionEnvironment


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    total = 0
    for step in range(3):
        stream = env.from_collection(list(range(step + 1)), Types.INT()).map(lambda x, step=step: x + step)
        with stream.execute_and_collect() as results:
            total += sum(results)
        print("step", step, "total", total)
    env.from_collection(["end"], Types.STRING()).print()
    result = env.execute("last")
    print(result.get_net_runtime() >= 0, result.get_job_id() is not None)


if __name__ == "__main__":
    main()
