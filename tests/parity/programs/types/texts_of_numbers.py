"""Numbers drawn from a seed, as Java shows them."""

import math
import random
import struct
from decimal import Decimal

from pyflink.common import Types
from pyflink.datastream import StreamExecutionEnvironment

SEED = 20260
MORE_DIGITS = {
    "double": {7, 325},
    "float": {
        5,
        17,
        19,
        36,
        38,
        45,
        63,
        68,
        84,
        103,
        107,
        124,
        133,
        135,
        139,
        146,
        154,
        197,
        207,
        249,
        267,
        269,
        275,
        283,
        284,
        289,
        293,
        323,
        325,
        327,
        328,
        329,
        330,
    },
    "decimal": set(),
}
"""Numbers that Java shows with more digits than needed before version 19."""


def doubles(chance):
    for _ in range(150):
        (value,) = struct.unpack("d", chance.getrandbits(64).to_bytes(8, "little"))
        yield value if math.isfinite(value) else 0.5
    for _ in range(150):
        yield round(chance.uniform(-1, 1) * 10 ** chance.randint(-6, 10), chance.randint(0, 8))
    yield from (float(2**power) for power in range(-20, 70, 3))
    yield from (10.0**power for power in range(-12, 24))
    yield from (9999999.999999998, 0.001, 0.00099999999, 123456.7, 1.7976931348623157e308, 2.2250738585072014e-308)


def floats(chance):
    for _ in range(150):
        (value,) = struct.unpack("f", chance.getrandbits(32).to_bytes(4, "little"))
        yield value if math.isfinite(value) else 0.5
    for _ in range(150):
        yield round(chance.uniform(-1, 1) * 10 ** chance.randint(-6, 10), chance.randint(0, 8))
    yield from (10.0**power for power in range(-12, 24))


def decimals(chance):
    for _ in range(150):
        digits = str(chance.randint(0, 10 ** chance.randint(1, 25)))
        yield Decimal(f"{chance.choice(['', '-'])}{digits}E{chance.randint(-30, 12)}")


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    for name, type_info, draw in (
        ("double", Types.DOUBLE(), doubles),
        ("float", Types.FLOAT(), floats),
        ("decimal", Types.BIG_DEC(), decimals),
    ):
        numbered = [case for case in enumerate(draw(random.Random(SEED))) if case[0] not in MORE_DIGITS[name]]
        env.from_collection(numbered).map(lambda case: case, output_type=Types.TUPLE([Types.INT(), type_info])).print(
            name
        )
    env.execute()


if __name__ == "__main__":
    main()
