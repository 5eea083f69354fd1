"""GB/s of the course's softmax kernels beside torch and torch.compile, over the number of columns.

    python benchmarks/softmax.py --dtype bfloat16

Every call moves about 1 GiB and is checked; OutOfResources and refusals are recorded as notes.
"""

import torch
from answers import load
from record import options, write

from workshop import DEVICE, compare, matches

COLUMNS = (256, 512, 781, 1024, 2048, 4096, 8192, 12672, 16384, 32768, 65536, 131072)
TRAFFIC = 1 << 30  # bytes read and written by one call


def main() -> None:
    parser = options(__doc__.splitlines()[0])
    parser.add_argument("--dtype", choices=("float32", "float16", "bfloat16"), default="float32")
    chosen = parser.parse_args()
    dtype = getattr(torch, chosen.dtype)

    def make_inputs(columns: int) -> tuple:
        rows = -(-TRAFFIC // (2 * columns * dtype.itemsize))
        return (torch.randn(rows, columns, device=DEVICE, dtype=dtype),)

    def rowwise(x):
        return torch.softmax(x, dim=1)

    providers = {"torch": rowwise, "torch.compile": torch.compile(rowwise, dynamic=False)}
    for name in ("naive_softmax", "online_softmax", "fused_softmax", "wide_softmax"):
        providers[name] = getattr(load(name), name)
    torch._dynamo.config.recompile_limit = 2 * len(COLUMNS)  # one compilation for each shape
    results = compare(
        providers,
        make_inputs,
        COLUMNS,
        lambda x: 2 * x.nbytes,
        check=matches(rowwise, relative=2e-2),
        title=f"Softmax, {chosen.dtype}",
    )
    write(results, f"course_softmax_{chosen.dtype}", chosen.out)


if __name__ == "__main__":
    main()
