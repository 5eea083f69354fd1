from dataclasses import asdict, dataclass


@dataclass
class Traffic:
    torch_read: int
    torch_written: int
    fused_read: int
    fused_written: int


def bytes_moved(m, n, element_size):
    return asdict(
        Traffic(
            torch_read=(5 * m * n + 2 * m) * element_size,
            torch_written=(3 * m * n + 2 * m) * element_size,
            fused_read=m * n * element_size,
            fused_written=m * n * element_size,
        )
    )


print(bytes_moved(1823, 781, 4))
