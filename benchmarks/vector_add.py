"""GB/s of the course's vector addition beside torch, over the number of elements and over the block size.

python benchmarks/vector_add.py
"""

import torch
from answers import load
from record import options, write

from workshop import DEVICE, compare, matches

SIZES = (98_432, 2**20, 2**22, 2**24, 2**26, 2**28)
BLOCKS = (4, 256, 4096)


def main() -> None:
    folder = options(__doc__.splitlines()[0]).parse_args().out
    kernel = load("vector_add").add_kernel

    def with_block(block_size: int):
        def add(x, y):
            output = torch.empty_like(x)
            n = x.numel()
            kernel[(-(-n // block_size),)](x, y, output, n, BLOCK_SIZE=block_size)
            return output

        return add

    providers = {
        "torch": torch.add,
        "add": load("vector_add").add,
        "add_autotuned": load("vector_add_autotuned").add_autotuned,
    }
    providers |= {f"BLOCK_SIZE={block_size}": with_block(block_size) for block_size in BLOCKS}
    results = compare(
        providers,
        lambda n: (torch.rand(n, device=DEVICE), torch.rand(n, device=DEVICE)),
        SIZES,
        lambda x, y: 3 * x.nbytes,
        check=matches(torch.add),
        title="Vector addition, float32",
        x_label="elements",
    )
    write(results, "vector_add_float32", folder)


if __name__ == "__main__":
    main()
