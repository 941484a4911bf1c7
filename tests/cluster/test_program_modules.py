"""A PyFlink program with modules beside it, run on a standalone cluster whose executors lack them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.services.standalone_cluster import StandaloneCluster

pytestmark = pytest.mark.cluster
ROOT = Path(__file__).parents[2]

PROGRAM = """
import sys
import firesteel.pyflink
from beside.orders import Order
import single_beside
from pyflink.common import Configuration
from pyflink.datastream import StreamExecutionEnvironment

config = Configuration().set_string("spark.master", sys.argv[1]).set_string("execution.runtime-mode", sys.argv[2])
config.set_string("spark.driver.host", "127.0.0.1").set_string("spark.driver.bindAddress", "127.0.0.1")
config.set_string("spark.cores.max", "2").set_string("spark.executor.memory", "512m")
config.set_string("pipeline.operator-chaining.enabled", "false")
env = StreamExecutionEnvironment.get_execution_environment(config).set_parallelism(2)
orders = env.from_collection([1, 2, 3, 4]).map(Order).key_by(lambda order: order.amount % 2)
totals = orders.reduce(lambda a, b: Order(a.amount + b.amount)).map(single_beside.text)
with totals.execute_and_collect() as results:
    print(max(results))
"""


@pytest.mark.parametrize("mode", ["STREAMING", "BATCH"])
def test_modules_beside_the_program_reach_the_executors(
    cluster_of_two: StandaloneCluster, tmp_path: Path, mode: str
) -> None:
    package = tmp_path / "beside"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "orders.py").write_text(
        "class Order:\n    def __init__(self, amount):\n        self.amount = amount\n\n"
        "    def tell(self):\n        from beside import later\n        return later.prefix() + str(self.amount)\n"
    )
    (package / "later.py").write_text(
        "from pyflink.common import Row\n\n\ndef prefix():\n    return Row('total ')[0]\n"
    )
    (tmp_path / "single_beside.py").write_text("def text(order):\n    return order.tell()\n")
    (tmp_path / "program.py").write_text(PROGRAM)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable}
    done = subprocess.run(
        [sys.executable, str(tmp_path / "program.py"), cluster_of_two.url, mode],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        cwd=tmp_path,
    )
    assert done.stdout == "total 6\n", done.stderr
