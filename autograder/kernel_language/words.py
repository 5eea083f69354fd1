"""The words of the kernel language: allowed names, calls and constructs, and the advice for all others."""

from __future__ import annotations

import ast
import math
import re

MAX_CHARACTERS = 40_000
MAX_NODES = 8_000
MAX_DEPTH = 60
MAX_INTEGER = 1 << 64


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


TL_FUNCTIONS = _words(
    """abs add advance arange argmax argmin associative_scan assume atomic_add atomic_and
    atomic_cas atomic_max atomic_min atomic_or atomic_xchg atomic_xor broadcast broadcast_to cast
    cat cdiv ceil clamp constexpr cos cumprod cumsum debug_barrier div_rn dot erf exp exp2
    expand_dims fdiv flip floor fma full gather histogram interleave join load
    load_tensor_descriptor log log2 make_block_ptr make_tensor_descriptor max max_constancy
    max_contiguous maximum min minimum mul multiple_of num_programs pair_uniform_to_normal permute
    philox program_id rand rand4x randint randint4x randn randn4x range ravel reduce reduce_or
    reshape rsqrt sigmoid sin softmax sort split sqrt sqrt_rn squeeze static_range store
    store_tensor_descriptor sub sum swizzle2d topk trans uint_to_uniform_float umulhi unsqueeze
    view where xor_sum zeros zeros_like"""
)
TL_TYPES = _words(
    """bfloat16 float16 float32 float64 float8e4b15 float8e4b8 float8e4nv float8e5 float8e5b16 int1 int16
    int32 int64 int8 uint16 uint32 uint64 uint8"""
)
TL_VALUES = TL_TYPES | {"PropagateNan.ALL", "PropagateNan.NONE"}
TL_MATH = _words("""abs ceil cos div_rn erf exp exp2 fdiv floor fma log log2 rsqrt sin sqrt sqrt_rn umulhi""")
LIBDEVICE = _words(
    """abs acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh div_rn erf erfc exp exp10
    exp2 expm1 fast_dividef fast_expf fast_logf fast_powf floor fma fmod hypot isinf isnan ldexp log
    log10 log1p log2 nearbyint pow rint round rsqrt sin sinh sqrt tan tanh trunc"""
)
TRITON_FUNCTIONS = frozenset({"cdiv", "next_power_of_2"})
METHODS = _words(
    """abs advance argmax argmin associative_scan atomic_add atomic_and atomic_cas atomic_max
    atomic_min atomic_or atomic_xchg atomic_xor broadcast_to cast ceil cos cumprod cumsum erf exp
    exp2 expand_dims flip floor gather histogram is_bf16 is_floating is_fp16 is_fp32 is_fp64
    is_int load log log2 logical_and logical_or max min permute ravel reduce reshape rsqrt sigmoid
    sin softmax sort split sqrt sqrt_rn store sum to trans view xor_sum"""
)
ATTRIBUTES = _words("""T dtype element_ty ndim numel primitive_bitwidth scalar shape type value""")
BUILTINS = frozenset({"abs", "bool", "float", "int", "len", "max", "min", "range", "tuple"})
LISTED = {  # module of the clean copy -> functions that may be called
    "": BUILTINS,
    "tl": TL_FUNCTIONS,
    "tl.math": TL_MATH,
    "triton": TRITON_FUNCTIONS,
    "libdevice": LIBDEVICE,
}
LOOPS = frozenset({"range", "tl.range", "tl.static_range"})
TAKES_FUNCTION = frozenset({"reduce", "associative_scan"})
DROPPED_CALLS = frozenset(
    {"print", "tl.device_assert", "tl.device_print", "tl.static_assert", "tl.static_print"}
)
STRING_KEYWORDS = _words(
    """cache_modifier eviction_policy fp_downcast_rounding input_precision padding_option scope sem"""
)
# Scalar types that a parameter's annotation can force. Other annotations have no effect.
FORCED_TYPES = {f"i{n}": f"int{n}" for n in (8, 16, 32, 64)} | {f"u{n}": f"uint{n}" for n in (8, 16, 32, 64)}
FORCED_TYPES |= {name: name for name in FORCED_TYPES.values()}
# Names that the clean copy or Triton's interpreter uses.
RESERVED = frozenset(
    {"tl", "triton", "libdevice", "range", "interpreter_semantic", "interpreter_logic"}
    | {"_semantic", "_builder", "_generator"}
)

SHORT_STRING = re.compile(r"[A-Za-z0-9_.]{0,24}")
MATH_CONSTANTS = {"pi": math.pi, "e": math.e, "tau": math.tau, "inf": math.inf, "nan": math.nan}
MATH_FUNCTIONS = _words("""ceil exp exp2 floor log log10 log2 pow sqrt""")
TL_MODULES = (
    "triton.language.core.",
    "triton.language.standard.",
    "triton.language.random.",
    "triton.language.",
)
LIBDEVICE_MODULES = tuple(
    f"triton.language.{middle}libdevice." for middle in ("extra.", "extra.cuda.", "extra.hip.", "math.")
)

# For each refused construct: (its name, what to write instead).
ADVICE: dict[type[ast.AST], tuple[str, str]] = {
    ast.AsyncFunctionDef: ("an `async` function", "define it with plain `def`"),
    ast.Await: ("`await`", "remove it: a kernel does not wait"),
    ast.Break: ("`break`", "give the loop its exact range, or use `while condition:`"),
    ast.ClassDef: ("a class", "use variables and tuples"),
    ast.Continue: ("`continue`", "put the rest of the loop's body under an `if`, or use a mask"),
    ast.Delete: ("`del`", "remove it: just do not use the variable any more"),
    ast.Dict: ("a dict", "use separate variables, or a tuple"),
    ast.DictComp: ("a dict comprehension", "write each value, or loop with `tl.static_range`"),
    ast.FunctionDef: ("a function inside a kernel", "move it to the top level, under its own `@triton.jit`"),
    ast.GeneratorExp: ("a generator expression", "loop with `range` or `tl.static_range`"),
    ast.Global: ("`global`", "pass the value as a parameter"),
    ast.Import: ("an import inside a kernel", "import at the top of the cell"),
    ast.ImportFrom: ("an import inside a kernel", "import at the top of the cell"),
    ast.JoinedStr: ("an f-string", "remove it: kernels have no strings"),
    ast.Match: ("`match`", "use `if`, `elif` and `else`"),
    ast.Lambda: ("a lambda", "write a separate small function under `@triton.jit`"),
    ast.ListComp: ("a list comprehension", "write each value, or loop with `tl.static_range`"),
    ast.NamedExpr: ("`:=`", "assign on a separate line"),
    ast.Nonlocal: ("`nonlocal`", "pass the value as a parameter"),
    ast.Raise: ("`raise`", "check the arguments in the host function, before the launch"),
    ast.Set: ("a set", "use a tuple"),
    ast.SetComp: ("a set comprehension", "write each value, or loop with `tl.static_range`"),
    ast.Starred: ("`*` arguments", "write each argument"),
    ast.Try: ("`try`", "kernels cannot catch errors; check the arguments in the host function"),
    ast.With: ("`with`", "remove it"),
    ast.Yield: ("`yield`", "use `return`"),
    ast.YieldFrom: ("`yield from`", "use `return`"),
}

# Methods of torch tensors. A kernel gets pointers, never torch tensors.
_ONLY_ON_THE_HOST = "a kernel gets a pointer, not the tensor: pass `{}` from the host function as a parameter"
METHOD_ADVICE = {
    "stride": _ONLY_ON_THE_HOST.format("x.stride(0)"),
    "size": _ONLY_ON_THE_HOST.format("x.size(1)"),
    "numel": _ONLY_ON_THE_HOST.format("x.numel()"),
    "dim": _ONLY_ON_THE_HOST.format("x.dim()"),
    "float": "convert with `.to(tl.float32)`",
    "half": "convert with `.to(tl.float16)`",
    "mean": "divide the sum by the number of elements: `tl.sum(x, axis=0) / n`",
}

ATTRIBUTE_ADVICE = {
    "values": "leave it out: `tl.max(block, axis=0)` is the largest value itself",
    "indices": "use `tl.argmax(block, axis=0)`",
    "device": "kernels have no devices: the host function allocates on `x.device`",
}

TL_ADVICE = {
    "inline_asm_elementwise": "write it with the operators and functions of `tl`",
    "map_elementwise": "write it with `tl.where` and arithmetic on whole blocks",
    "dot_scaled": "use `tl.dot`",
    "extra": "use the functions of `tl`, or `from triton.language.extra import libdevice`",
    "thread_id": "`tl.program_id(axis=0)` is the number of the program, and `tl.arange` numbers its lanes",
    "empty": "create blocks with `tl.zeros` or `tl.full`",
    "tensor": "create blocks with `tl.zeros`, `tl.full` or `tl.arange`",
    "core": "use the public name, `tl.…`",
}
