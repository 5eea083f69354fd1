"""GB/s of an all-reduce over two GPUs of one host: a Triton kernel on symmetric memory, beside NCCL and torch's own.

    python benchmarks/symmetric.py --dtype bfloat16

Both GPUs keep their numbers in symmetric memory: each can read the other's over the link between them. The kernel adds
the other's buffer to its own, so each number crosses the link once in each direction. "copy" is the limit: a copy of
the other's buffer. The numbers of NCCL lie in ordinary memory. Every timed output is checked. The time of a call is
that of the slower GPU. NVLink multicast is not used.
"""

import argparse
import os
import statistics
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

os.environ.setdefault("TORCH_SYMM_MEM_DISABLE_MULTICAST", "1")
os.environ.setdefault("NCCL_NVLS_ENABLE", "0")

import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory as symmetric
import torch.multiprocessing as mp
import triton
import triton.language as tl
from timing import FLUSH, FLUSHES, about, first_line, need_gpu, results, write

from workshop.results import RECORDED

SIZES = tuple(1 << power for power in range(10, 29, 2))  # bytes, from 1 KiB to 256 MiB
OURS = "one shot"


@triton.jit
def add_peer_kernel(mine_ptr, peer_ptr, output_ptr, n, BLOCK: tl.constexpr):
    """output = mine + peer. peer_ptr is memory of the other GPU: a load from it goes over the link."""
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mine = tl.load(mine_ptr + offsets, mask=offsets < n).to(tl.float32)
    peer = tl.load(peer_ptr + offsets, mask=offsets < n).to(tl.float32)
    tl.store(output_ptr + offsets, mine + peer, mask=offsets < n)


def add_peer(mine: torch.Tensor, peer: torch.Tensor, output: torch.Tensor) -> torch.Tensor:
    n = mine.numel()
    add_peer_kernel[(triton.cdiv(n, 2048),)](mine, peer, output, n, BLOCK=2048, num_warps=8)
    return output


def providers(mine: torch.Tensor, handle, group) -> dict[str, Callable]:
    """name -> function without arguments that returns the result. `mine` is symmetric memory."""
    peer = handle.get_buffer(1 - handle.rank, mine.shape, mine.dtype)
    output, own = torch.empty_like(mine), torch.empty_like(mine)

    def between_barriers(work: Callable) -> Callable:
        def call():
            handle.barrier(channel=0)  # the other GPU has written its numbers
            result = work()
            handle.barrier(channel=1)  # and may write new ones
            return result

        return call

    def nccl():
        dist.all_reduce(own, group=group)
        return own

    nccl.prepare = lambda: own.copy_(mine)  # in place, so it needs its numbers again before each call
    return {
        "copy": between_barriers(lambda: output.copy_(peer)),
        "NCCL": nccl,
        "torch, one shot": lambda: torch.ops.symm_mem.one_shot_all_reduce(mine, "sum", group.group_name),
        OURS: between_barriers(lambda: add_peer(mine, peer, output)),
    }


def milliseconds(call: Callable, handle, buffer: torch.Tensor) -> tuple[float, torch.Tensor]:
    """(time, result) of a call that both GPUs begin at the same moment, with cold caches, and queued before it."""
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    for _ in range(FLUSHES):
        buffer.sum()
    handle.barrier(channel=2)
    start.record()
    result = call()
    end.record()
    torch.cuda.synchronize()
    return start.elapsed_time(end), result


def measure(rank: int, chosen: argparse.Namespace, port: int) -> None:
    """What each of the two processes does. Rank 0 writes the files."""
    os.environ |= {"MASTER_ADDR": "localhost", "MASTER_PORT": str(port)}
    torch.cuda.set_device(rank)
    device, dtype = torch.device("cuda", rank), getattr(torch, chosen.dtype)
    dist.init_process_group("nccl", rank=rank, world_size=2, device_id=device, timeout=timedelta(seconds=120))
    group, entries, buffer = dist.group.WORLD, [], torch.zeros(FLUSH // 4, device=device)
    for nbytes in chosen.sizes:
        mine = symmetric.empty(nbytes // dtype.itemsize, dtype=dtype, device=device)
        handle = symmetric.rendezvous(mine, group.group_name)
        for name, call in providers(mine, handle, group).items():
            entry = {"size": nbytes, "provider": name, "ms": [], "error": 0.0, "note": "", "bytes": nbytes}
            for repeat in range(-3, chosen.repeats):  # those before 0 compile and warm up
                both = [numbers(each, repeat, mine) for each in range(2)]
                mine.copy_(both[rank])
                getattr(call, "prepare", lambda: None)()
                torch.cuda.synchronize()
                dist.barrier()
                try:
                    took, result = milliseconds(call, handle, buffer)
                except Exception as error:  # on both GPUs alike: the others go on
                    entry["note"] = first_line(error)
                    break
                expected = both[1 - rank] if name == "copy" else (both[0].float() + both[1].float()).to(dtype)
                facts = torch.tensor([took, float(not torch.equal(result, expected))], device=device)
                dist.all_reduce(facts, op=dist.ReduceOp.MAX)  # of the slower GPU
                if facts[1]:
                    entry["note"] = "wrong result"
                if repeat >= 0:
                    entry["ms"].append(facts[0].item())
            entries.append(entry)
    if rank == 0:
        facts = about() | {"gpus": "2", "nccl": ".".join(map(str, torch.cuda.nccl.version()))}
        facts |= {"repeats": str(chosen.repeats), "copy": "of the other GPU's buffer"}
        found = results(entries, facts, f"All-reduce of two GPUs, {chosen.dtype}", "bytes")
        for entry in entries:
            took = entry["note"] or f"{1000 * statistics.median(entry['ms']):9.1f} µs"
            print(f"{entry['size']:12,}  {entry['provider']:16} {took}")
        write(found, entries, f"all_reduce_two_gpus_{chosen.dtype}", chosen.out)
    dist.barrier()
    dist.destroy_process_group()


def numbers(rank: int, repeat: int, like: torch.Tensor) -> torch.Tensor:
    """The numbers of a GPU in a repeat. Both GPUs can make those of the other, to check the sum."""
    generator = torch.Generator(like.device).manual_seed(1000 * rank + repeat + 3)
    return torch.randn(like.shape, dtype=like.dtype, device=like.device, generator=generator)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dtype", choices=("float32", "float16", "bfloat16"), default="bfloat16")
    parser.add_argument("--sizes", type=int, nargs="*", default=SIZES, help="bytes of each GPU's buffer")
    parser.add_argument("--repeats", type=int, default=30)
    parser.add_argument("--port", type=int, default=29500)
    parser.add_argument("--out", type=Path, default=RECORDED, help="folder for CSV, JSON and SVG")
    chosen = parser.parse_args(arguments)
    need_gpu()
    if torch.cuda.device_count() < 2:
        sys.exit("found one GPU; an all-reduce needs two")
    mp.spawn(measure, (chosen, chosen.port), nprocs=2)


if __name__ == "__main__":
    main()
