"""What Triton's compiler refuses: what its message means, and what to write instead."""

from __future__ import annotations

import re

from ..box.wire import Trouble
from ..verdict import Finding

_VENDORS = {"cuda": "NVIDIA", "hip": "AMD"}
# What Python has and a kernel has not, by its name in Python's grammar: its name for learners, and what to write.
_CONSTRUCTS = {
    "AsyncFunctionDef": ("an `async` function", "define it with plain `def`"),
    "Break": ("`break`", "give the loop its exact range, or use `while condition:`"),
    "ClassDef": ("a class", "use variables and tuples"),
    "Continue": ("`continue`", "put the rest of the loop's body under an `if`, or use a mask"),
    "Delete": ("`del`", "remove it: just do not use the variable any more"),
    "Dict": ("a dict", "use separate variables, or a tuple"),
    "DictComp": ("a dict comprehension", "write each value, or loop with `tl.static_range`"),
    "FunctionDef": ("a function inside a kernel", "move it to the top level, under its own `@triton.jit`"),
    "GeneratorExp": ("a generator expression", "loop with `range` or `tl.static_range`"),
    "Global": ("`global`", "pass the value as a parameter"),
    "Import": ("an import inside a kernel", "import at the top of the cell"),
    "ImportFrom": ("an import inside a kernel", "import at the top of the cell"),
    "Lambda": ("a lambda", "write a separate small function under `@triton.jit`"),
    "Match": ("`match`", "use `if`, `elif` and `else`"),
    "NamedExpr": ("`:=`", "assign on a separate line"),
    "Raise": ("`raise`", "check the arguments in the host function, before the launch"),
    "Set": ("a set", "use a tuple"),
    "Try": ("`try`", "kernels cannot catch errors; check the arguments in the host function"),
    "With": ("`with`", "remove it"),
    "Yield": ("`yield`", "use `return`"),
}

# The compiler's message is the name of its own object, or goes on with what a learner cannot use.
_REWORDED = (
    (r"^answer\.(\w+?)__\w+$", r"it calls itself: \1"),
    (r"^AssertionError in \w*(getitem|Subscript)\w*$", "a list or tuple has an index that is known only at run time"),
    (r"instantiated as constexpr.*", "tl.constexpr"),
    (r"cannot convert <function (\w+) at \w+> of type <class 'function'> to tensor", r"\1 is a function, not a value"),
    (r"<class 'triton\.language\.core\.(\w+)'>", r"\1"),
    (r"triton\.language\.(float|int|uint|bfloat)", r"\1"),
    (r" \(note that this also applies.*", ""),
)
COMPARE = "compare the message with the line: which value is not what you expected?"
_PYTHONS = {"abs", "bool", "sum", "pow", "round", "tuple", "torch", "np", "math"}
_ADVICE_ON_NAMES = "give {} a value above this line, or pass it as a parameter. Check the spelling."
_LANGUAGE = {"load", "store", "arange", "program_id", "num_programs", "where", "zeros", "full", "maximum", "minimum"}
_ONLY_ON_THE_HOST = "A kernel gets a pointer, not the tensor."
# (pattern of the compiler's message, what it means, what to try)
_MEANINGS = (
    (r"^(?P<name>\w+) is a function, not a value",
     "A function does its work when it is called.",
     "call it: `tl.{name}(…)`."),
    (r"static_assert\(seed\.dtype\.is_int",
     "The seed of Triton's random numbers is an integer, and a pointer is an address.",
     "load the seed first, tl.load(seed_ptr)."),
    (r"has no attribute 'thread_id'",
     "Triton has no threads: a program works on whole blocks.",
     "tl.program_id(axis=0) is the number of the program, and tl.arange numbers its lanes."),
    (r"^Cannot access global variable (?P<name>\w+) .*\n.*\b(?P=name)\(",
     "A kernel calls functions of `tl` and functions under @triton.jit only.",
     "put @triton.jit above `{name}`."),
    (r"^Did you forget to add @triton.jit.*\n.*_ptr\[",
     "A pointer is an address, not a tensor.",
     "write tl.load(x_ptr + offsets), not x_ptr[offsets]."),
    (r"^Did you forget to add @triton.jit.*\n.*tl\.(max|min)\(",
     "tl.max(block, axis=0) is the largest value of one block.",
     "tl.maximum(a, b) is the larger of two."),
    (r"^Boolean value of Tensor",
     "A block has many values, and a condition has one.",
     "write the line with tl.where."),
    (r"^Cannot evaluate f-string",
     "A kernel has no texts that are made when it runs.",
     'leave it out, or write tl.device_print("name", x).'),
    (r"^Loop-carried variable (?P<name>\w+) has initial type fp32\S* but is re-assigned to fp64",
     "The loop gives a float64 to `{name}`. A number that is too large for float32, whose largest is 3.4028234e38, is "
     "a float64, and makes one of everything that is computed with it.",
     "write such a number with fewer digits, such as -3.4e38, or convert it with .to(tl.float32)."),
    (r"^Loop-carried variable (?P<name>\w+) has",
     "A variable keeps one type and one shape in a loop. Here the first value of `{name}` has another one than the "
     "values that the loop gives to it.",
     "start `{name}` with the type and shape that the loop gives to it: 0.0 for a float32 number, "
     "tl.zeros((BLOCK_SIZE,), tl.float32) for a block. Or convert the new value with .to(…)."),
    (r"^(Mismatched type for|initial value for) `?(?P<name>\w+)`?",
     "After an `if`, a variable has one type and one shape, whichever branch was taken. Here the branches give "
     "different ones to `{name}`.",
     "give `{name}` the same type in both branches, such as 0.0 and 1.0, or choose with tl.where."),
    (r"^(Inconsistent return types|Return type mismatch)",
     "A function under @triton.jit returns one type and one shape, whichever `return` is taken.",
     "return the same type everywhere, or choose with tl.where before a single `return`."),
    (r"^Cannot access global variable (?P<name>\w+)",
     "A kernel sees a global variable only if it is a tl.constexpr, because its value is compiled into the code.",
     "write `{name} = tl.constexpr(…)`, or pass the value as a parameter: {name}: tl.constexpr."),
    (r"^'tensor' object has no attribute '(stride|size|numel|dim)'",
     _ONLY_ON_THE_HOST,
     "pass what you need from the host function as a parameter: x.stride(0), x.size(1), x.numel() or x.dim()."),
    (r"^'tensor' object has no attribute '(float|half|double|int|long)'",
     "A block of a kernel is no tensor of torch.",
     "convert with .to(tl.float32)."),
    (r"^'tensor' object has no attribute 'mean'",
     "A block of a kernel is no tensor of torch.",
     "divide the sum by the number of elements: tl.sum(x, axis=0) / n."),
    (r"^'tensor' object has no attribute '(values|indices)'",
     "tl.max gives the largest value itself.",
     "leave .values out; for the index there is tl.argmax(block, axis=0)."),
    (r"^'tensor' object has no attribute '(?P<name>\w+)'",
     "A block of a kernel has no `{name}`.",
     "use the functions of `tl`."),
    (r"^(?P<name>abs|bool|len|min|max|sum|pow|round|tuple) is not defined",
     "Python's `{name}` does not exist in compiled code.",
     "use the functions of `tl`: tl.abs(x), x != 0, a shape that you know as a constexpr."),
    (r"^(?P<name>\w+) is not defined",
     "A variable that gets its first value inside a loop or inside one branch does not exist after it.",
     "give `{name}` a value before the loop or the `if`."),
    (r"^(?P<name>int|float)\(\) argument must be",
     "Python's `{name}` needs a number while the kernel is compiled. A kernel's values are known only when it runs.",
     "leave it out, or convert with .to(tl.int32) or .to(tl.float32)."),
    (r"has no len\(\)",
     "Python's `len` does not know the values of a kernel.",
     "use the constexpr that the block was made with, or pass the length as a parameter."),
    (r"`return` statements inside",
     "A compiled loop always goes to its end.",
     "put the rest of the loop's body under an `if`, or write a `while` with the condition."),
    (r"^it calls itself|maximum recursion depth",
     "A function that calls itself cannot be compiled: a GPU has no stack of calls for it.",
     "write a loop."),
    (r"^a list or tuple",
     "Lists and tuples exist only while the kernel is compiled, so their index must be a constant.",
     "loop over them with tl.static_range, or load the values from memory."),
    (r"static_range .*not a constexpr|constexpr.*static_range",
     "tl.static_range writes its body once for each step, so its bounds must be known when the kernel is compiled.",
     "use range, or declare the bound as a parameter with tl.constexpr."),
    (r"^Input shapes should have|^[Dd]ot.* (should|must) have|M >= 16",
     "tl.dot uses the matrix units of a GPU, which multiply tiles of at least these sizes.",
     "make the tiles larger and mask them, or write tl.sum(a[:, None] * b[None, :], axis=…)."),
    (r"^invalid axis",
     "A block of one dimension has only axis 0; a matrix has the axes 0 and 1.",
     "tl.max(block, axis=0) goes over a block of one dimension. axis=1 goes along the rows of a tile."),
    (r"^Shape element \d+ must have type",
     "The shape of a block must be known when the kernel is compiled.",
     "use a tl.constexpr parameter, such as BLOCK_SIZE, and mask the lanes that have no element."),
    (r"^module 'triton.language' has no attribute '(?P<name>\w+)'",
     "Triton's language has no `{name}`.",
     "use the functions of the lessons: tl.zeros and tl.full make blocks, tl.load and tl.store move them."),
    (r"^arange's range must be a power of 2",
     "The number of elements of a block is a power of two.",
     "choose powers of two for every block size, and mask the lanes that have no element."),
    (r"'constexpr' object has no attribute '(?P<name>\w+)'",
     "Triton compiles an integer argument whose value is 1 as a constant, which has no method `{name}`.",
     "use a function of `tl` that takes numbers too: tl.cast(n, tl.int64) for n.to(tl.int64)."),
    (r"\n.*\b(np|numpy|math|torch|jnp)\.\w+\(",
     "A kernel calls functions of `tl` only: those of torch, numpy and math do not compute on a GPU's blocks.",
     "use the function of `tl` with this name: tl.exp, tl.sqrt, tl.where."),
    (r"exceeds triton maximum tensor numel",
     "A block has a largest size, because all its elements are in registers.",
     "go through the data block by block."),
)  # fmt: skip


def refused(t: Trouble) -> Finding:
    """The finding about a kernel that a compiler does not accept."""
    target = f" for {_VENDORS[t.construct]} GPUs" if t.construct in _VENDORS else ""
    if t.kind == "compile-crash":
        return Finding(
            "compile-error",
            f"Triton's compiler{target} crashes on the kernel.",
            "",
            "simplify the kernel until it compiles: workshop.xray shows what the compiler makes of it.",
        )
    message = _readable(t.message)
    means, advice = _meaning(f"{message}\n{t.code}", t.instead)
    return Finding(
        "compile-error",
        f"Triton's compiler{target} refuses the kernel: {message}",
        means,
        advice or COMPARE,
        t.line,
        t.code,
    )


def too_much_shared_memory(needed: int, most: int) -> Finding:
    return Finding(
        "out-of-memory",
        f"One program needs {needed:,} bytes of shared memory. No GPU of the course has more than {most:,}.",
        "The tiles that a program keeps, and the copies that the compiler makes to load ahead, lie in shared memory.",
        "make the tiles smaller, or use fewer stages (num_stages).",
    )


def bad_option(t: Trouble) -> Finding:
    """The finding about a launch option that no GPU can use."""
    return Finding(
        "compile-error",
        f"The launch options do not fit a GPU: {t.message}.",
        "A GPU refuses such a launch.",
        "use 1, 2, 4, 8 or 16 warps, and leave out options that you do not need.",
        t.line,
        t.code,
    )


def _readable(message: str) -> str:
    """Types as the learner writes them: <['128'], fp32> is a block of 128 float32."""
    message = re.sub(r"<\['?([\d', x]+?)'?\], (\w+)>", lambda m: f"{m[2]}[{m[1]}]".replace("'", ""), message)
    message = re.sub(r"constexpr\[(\w+)\]", r"\1", message).replace("instanstiated", "instantiated")
    for pattern, said in _REWORDED:
        message = re.sub(pattern, said, message, flags=re.S)
    return message if len(message) < 400 else message[:400] + " …"


def _meaning(message: str, similar: str) -> tuple[str, str]:
    """What a message means and what to try. similar: a name that the learner may have meant."""
    if found := re.search(r"^unsupported AST node type: (\w+)", message):
        name, advice = _CONSTRUCTS.get(found[1], (f"`{found[1]}`", "write it with the functions of `tl`"))
        return f"{name[0].upper()}{name[1:]} cannot be used in a kernel, which is not ordinary Python.", f"{advice}."
    if similar and (found := re.search(r"^(\w+) is not defined", message)) and found[1] not in _PYTHONS:
        advice = f"did you mean {similar}?" if similar != "-" else _ADVICE_ON_NAMES.format(found[1])
        if found[1] in _LANGUAGE:
            advice = f"use `tl.{found[1]}`."
        return "No line of the kernel and no parameter gives this name a value.", advice
    for pattern, means, advice in _MEANINGS:
        if found := re.search(pattern, message):
            names = found.groupdict()
            return means.format(**names) if names else means, advice.format(**names) if names else advice
    return "", ""
