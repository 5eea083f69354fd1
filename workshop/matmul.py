"""Products of matrices: the order of the tiles, and how fast a card can be by its data sheet."""

from dataclasses import dataclass

from workshop.device import SHEET


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


CARDS = [Card(name, **card["peaks"]) for name, card in SHEET.items() if "peaks" in card]
