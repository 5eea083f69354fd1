"""Products of matrices: the order of the tiles, and how fast a card can be by its data sheet."""

from dataclasses import dataclass


def swizzle(pid: int, num_m: int, num_n: int, group: int) -> tuple[int, int]:
    """The row and column of the tile that a program computes, of num_m × num_n tiles.

    Groups of `group` rows of tiles, column by column inside a group; the last group is as high as it is.
    """
    first = pid // (group * num_n) * group
    height = min(num_m - first, group)
    within = pid % (group * num_n)
    return first + within % height, within // height


@dataclass(frozen=True)
class Card:
    """gbps: of its memory. tflops: of dense products of matrices in bfloat16."""

    name: str
    gbps: float
    tflops: float

    @property
    def ridge(self) -> float:
        """Operations for each byte from which on arithmetic is the limit."""
        return 1000 * self.tflops / self.gbps

    def milliseconds(self, m: int, n: int, k: int, itemsize: int = 2) -> tuple[float, float]:
        """Of a product (m, k) × (k, n) at least: for reading and writing each matrix once, and for the operations."""
        memory = (m * k + k * n + m * n) * itemsize / self.gbps / 1e6
        return memory, 2 * m * n * k / self.tflops / 1e9


# Peaks of the data sheets: "NVIDIA A100 Tensor Core GPU" (80 GB, SXM), "NVIDIA H100 Tensor Core GPU" and "NVIDIA H200
# Tensor Core GPU" (SXM; theirs are with sparsity, half of that is dense), "AMD Instinct MI250X" (one of its two dies,
# as HIP shows it: half of the card), "AMD Instinct MI300X".
CARDS = (
    Card("NVIDIA A100", 2039, 312),
    Card("NVIDIA H100", 3350, 989),
    Card("NVIDIA H200", 4800, 989),
    Card("AMD Instinct MI250X", 1638, 191.5),
    Card("AMD Instinct MI300X", 5300, 1307),
)
