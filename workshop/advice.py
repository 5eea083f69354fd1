"""What Triton's compiler, Python or a driver says, what it means, and one thing to try.

The judge and the notebook use the same table. A pattern is matched with the words of the message, never with the
learner's line. What the compiler refuses stands below its message: the function of a call, or "[…]" for an index.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

COMPARE = "compare the message with the line: which value is not what you expected?"
_HOST_ONLY = "A kernel gets a pointer, not the tensor."
_ADDRESS = "A pointer is an address, not a tensor."
_UNDEFINED = "No line of the kernel and no parameter gives this name a value."
_BLOCK = "A block of a kernel is no tensor of torch."

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

_NUMBERS = "tl.program_id(axis=0), the number of the program, and tl.arange(0, BLOCK_SIZE), the numbers of its lanes"
# What torch, numpy or CUDA has and Triton has not, and what a kernel writes instead.
_ELSEWHERE = {
    "T": "tl.trans(x)", "amax": "tl.max(x, axis=0)", "amin": "tl.min(x, axis=0)", "clip": "tl.clamp(x, low, high)",
    "clone": "the block itself: an operation makes a new one", "contiguous": "the block itself: it has no strides",
    "empty": "tl.zeros((BLOCK_SIZE,), tl.float32)", "exp_": "tl.exp(x)", "flatten": "tl.ravel(x)",
    "inf": 'float("inf")', "isfinite": 'tl.abs(x) < float("inf")', "isinf": 'tl.abs(x) == float("inf")',
    "isnan": "x != x", "item": "the number itself", "masked_fill": "tl.where(mask, value, x)",
    "matmul": "tl.dot(a, b)", "mean": "tl.sum(x, axis=0) / n", "mm": "tl.dot(a, b)", "bmm": "tl.dot(a, b)",
    "ones": "tl.full((BLOCK_SIZE,), 1.0, tl.float32)", "pow": "x * x, or tl.exp2(y * tl.log2(x))",
    "power": "x * x, or tl.exp2(y * tl.log2(x))", "relu": "tl.maximum(x, 0.0)", "sign": "tl.where(x < 0, -1.0, 1.0)",
    "square": "x * x", "squeeze": "tl.reshape(x, …)", "t": "tl.trans(x)", "tanh": "2 * tl.sigmoid(2 * x) - 1",
    "transpose": "tl.trans(x)", "unsqueeze": "x[:, None] for a column, x[None, :] for a row",
    "concatenate": "a loop over the parts", "stack": "tl.join(a, b)", "tensor": "the number itself",
    "blockIdx": _NUMBERS, "threadIdx": _NUMBERS, "thread_id": _NUMBERS, "block_id": _NUMBERS, "blockDim": _NUMBERS,
    "gridDim": "tl.num_programs(axis=0)", "syncthreads": "tl.debug_barrier()",
}  # fmt: skip

# (pattern of the message, what it means, what to try). The first that fits is taken.
ADVICE = (
    # names
    (r"^NameError: name '(torch|triton|tl|jax|jnp|jt|np|math|functools|workshop|device|DEVICE)'", "",
     "run the notebook's first cell, then the answer cell, and check again. In a file of your own, write the import."),
    (r"^(math|np|numpy|torch|jnp) is not defined|\n(np|numpy|math|torch|jnp)\.|Unsupported function referenced",
     "A kernel calls functions of `tl` and functions under @triton.jit only: those of torch, numpy and math do not "
     "compute on a GPU's blocks.",
     'a kernel calls functions of tl: use the one with this name, such as tl.exp, tl.sqrt or tl.where. Infinity is '
     'float("inf").'),
    (r"^\w+ is not defined\n.*\nmeant: (?P<name>[\w.]*\w)", _UNDEFINED, "did you mean {name}?"),
    (r"^(?P<name>bool|len|pow|round|tuple) is not defined", "Python's `{name}` does not exist in compiled code.",
     "use the functions of `tl`: x != 0, x * x, a shape that you know as a constexpr."),
    (r"^(?P<name>\w+) is not defined\n.*\nmeant: -", _UNDEFINED,
     "give {name} a value above this line, or pass it as a parameter. Check the spelling."),
    (r"^(?P<name>\w+) is not defined",
     "A variable that gets its first value inside a loop or inside one branch does not exist after it.",
     "if this line belongs to each step of the loop, indent it as the lines of the loop are. Otherwise give `{name}` a "
     "value before the loop or the `if`."),
    (r"^NameError.*Did you mean", "", "correct the spelling of this name."),
    (r"^NameError: name '(?P<name>\w+)'", "",
     "check the spelling of this name. If it is right, give it a value above this line; if another cell does that, run "
     'that cell, then this one. What autotune chooses is in the dictionary that a grid function gets: meta["{name}"].'),
    (r"^UnboundLocalError|referenced before assignment|not associated with a value", "",
     "check the spelling of this name. If it is right, give it a value above this line."),
    (r"^Cannot access global variable (?P<name>\w+)",
     "A kernel sees a global variable only if it is a tl.constexpr, because its value is compiled into the code, and a "
     "function only if it is under @triton.jit.",
     "write `{name} = tl.constexpr(…)`, or pass the value as a parameter: {name}: tl.constexpr. If it is a function, "
     "put @triton.jit above `{name}`."),
    (r"^module 'triton.language' has no attribute '(?P<name>\w+)'",
     "Triton's language has no `{name}`.",
     "correct the spelling of this name, or use the functions of the lessons: tl.zeros and tl.full make blocks, "
     "tl.load and tl.store move them."),
    (r"no parameter|module '[\w.]+' has no attribute|Did you mean", "", "correct the spelling of this name."),
    # launches
    (r"^TypeError: 'function' object is not subscriptable", "Only a kernel is launched with [grid].",
     "put @triton.jit above the kernel's `def`."),
    (r"argument: 'axis'", "", "name the dimension of the launch grid: tl.program_id(axis=0)."),
    (r"arange\(\) missing", "", "tl.arange takes a start and an end: tl.arange(0, BLOCK_SIZE)."),
    (r"argument: 'dtype'.*\ntl\.|'(int|constexpr)' object is not iterable",
     "A block has a type, and its shape is a tuple.",
     "write tl.zeros((BLOCK_SIZE,), tl.float32), or tl.full((BLOCK_SIZE,), value, tl.float32)."),
    (r"(where|load|store|maximum|minimum|full|dot)\(\) missing \d", "",
     "count the values: tl.where(condition, a, b), tl.store(pointer, value, mask=mask), tl.maximum(a, b)."),
    (r"multiple values for (argument )?'(mask|other|axis|return_indices)'", "It gets more values by position than it "
     "takes.", "write tl.load(pointer + offsets, mask=mask), tl.store(pointer + offsets, value, mask=mask), "
     "tl.max(block, axis=0). The larger of two is tl.maximum(a, b)."),
    (r"(<lambda>|grid)\(\) takes 0 positional arguments", "Triton calls the grid function with one argument, the "
     "dictionary of what autotune has chosen.",
     'give it this parameter: lambda meta: (triton.cdiv(n, meta["BLOCK_SIZE"]),).'),
    (r"missing 1 required positional argument|(?<=\n)grid\(\)",
     "", "pass the grid function itself, without calling it: kernel[grid](…). Triton calls it."),
    (r"launch grid is a tuple", "", "write the comma of a tuple with one number: (programs,)."),
    (r"launch grid holds integers|'float' object cannot be interpreted as an integer",
     "/ makes a float, and the number of programs is an integer.",
     "count the blocks with triton.cdiv(n, BLOCK_SIZE)."),
    (r"grid is -?[\d,]+: a card", "", "give each program a larger block, so that fewer programs are needed."),
    (r"missing a required argument", "A parameter of the kernel gets no value.",
     "pass this argument in the launch: kernel[grid](…, name=value)."),
    (r"too many positional", "", "count the arguments of the launch: one for each parameter of the kernel."),
    (r"multiple values for", "An argument is passed twice; autotune passes those of its configurations itself.",
     "leave it out of the launch once."),
    (r"takes tensors and numbers|tuple_type|cannot convert \[.*of type .*(list|Size)", "A kernel takes pointers and "
     "numbers, one by one.", "pass a tensor for a pointer, and numbers one by one, such as x.shape[0]."),
    (r"num_warps must be", "", "choose 1, 2, 4, 8, 16 or 32 warps."),
    (r"has changed since we compiled", "", "run the kernel's own cell again."),
    (r"'torch.dtype' object has no attribute", "A kernel knows no types of torch.", "write tl.float32."),
    (r"attribute 'scalar'|outside of the scope of a kernel",
     "A function under @triton.jit is a kernel, and functions of tl belong into kernels.",
     "start a kernel with a grid: kernel[grid](…). The host function that does it has no @triton.jit above it, and "
     "triton.cdiv in place of tl.cdiv."),
    (r"^TypeError: Config.__init__\(\)|Config.__init__\(\) got", "",
     'the constants of a configuration are a dictionary: triton.Config({{"BLOCK_SIZE": 1024}}, num_warps=4).'),
    (r"_lru_cache_wrapper' object", "This is a function.", "call it first: device().multiprocessors."),
    (r"'builtin_function_or_method' object", "This is a method.", "call it: x.stride(0), x.numel()."),
    (r"argument 'size' failed to unpack|bounds and step must all be ints", "/ makes a float.",
     "use //, or triton.cdiv(n, size) to round up."),
    (r"simultaneous multiple comparison", "& binds more tightly than <.",
     "put each comparison into brackets: (rows < m) & (columns < n)."),
    (r"attribute 'all_kwargs'", "",
     'a space is a list of triton.Config objects: triton.Config({{"BLOCK_SIZE": 1024}}).'),
    (r"'dict' object has no attribute '(?P<name>\w+)'", "What the grid function gets is a dictionary.",
     'write meta["{name}"].'),
    (r"^KeyError", "The dictionary has no such name.",
     "write the name as in triton.Config: the dictionary of a grid function has the names of the configurations."),
    (r"has no attribute 'arg_names'", "@triton.autotune takes a kernel, and @triton.jit makes one.",
     "put @triton.autotune above @triton.jit: the lower one is applied first."),
    # types and shapes
    (r"^(?P<name>\w+) is a function, not a value|'function' object has no attribute",
     "A function does its work when it is called.", "call it: `tl.program_id(…)`."),
    (r"static_assert\(seed\.dtype\.is_int",
     "The seed of Triton's random numbers is an integer, and a pointer is an address.",
     "load the seed first, tl.load(seed_ptr)."),
    (r"^Did you forget to add @triton.jit.*\ntl\.(max|min|sum)$|axis \[|'axis' .*tensor",
     "tl.max(block, axis=0) is the largest value of one block.",
     "tl.max(block, axis=0) takes one block; tl.maximum(a, b) is the larger of two."),
    (r"not iterable|not subscriptable|unsupported tensor index|^Did you forget to add @triton.jit.*\n\[…\]|"
     "^__setitem__ is not supported",
     _ADDRESS, "write tl.load(x_ptr + offsets, mask=mask), not x_ptr[offsets], and tl.store(output_ptr + offsets, "
     "x, mask=mask), not output_ptr[offsets] = x. A block cannot be indexed by a number: choose its elements with "
     "tl.where(columns == number, a, b)."),
    (r"^cannot assign to expression", "The left side of = is a name.",
     "store through a pointer with tl.store(output_ptr + offsets, x, mask=mask). If this is a comparison, write ==."),
    (r"^Did you forget to add @triton.jit", "A function of tl got something that it does not take in this place.",
     "tl.max(block, axis=0) takes one block; tl.maximum(a, b) is the larger of two."),
    (r"'scf\.if' op operand|Boolean value of Tensor|block cannot be a condition|must be scalar|ambiguous",
     "A block has many values, and a condition has one.", "write the line with tl.where."),
    (r"^Cannot evaluate f-string", "A kernel has no texts that are made when it runs.",
     'leave it out, or write tl.device_print("name", x).'),
    (r"Loop-carried variable (?P<name>\w+) .*fp32\S* but is re-assigned to fp64",
     "The loop gives a float64 to `{name}`. A number that is too large for float32, whose largest is 3.4028234e38, is "
     "a float64, and makes one of everything that is computed with it.",
     "write such a number with fewer digits, such as -3.4e38, or convert it with .to(tl.float32)."),
    (r"Loop-carried variable (?P<name>\w+)",
     "A variable keeps one type and one shape in a loop. Here the first value of `{name}` has another one than the "
     "values that the loop gives to it.",
     "start `{name}` with the type and shape that the loop gives to it: 0.0 for a float32 number, "
     "tl.zeros((BLOCK_SIZE,), tl.float32) for a block. To get one number from a block, use tl.sum or tl.max. And use "
     "the value so far: `{name} = {name} + …`, or tl.maximum({name}, …)."),
    (r"^(Mismatched type for|initial value for) `?(?P<name>\w+)`?",
     "After an `if`, a variable has one type and one shape, whichever branch was taken. Here the branches give "
     "different ones to `{name}`.",
     "give `{name}` the same type in both branches, such as 0.0 and 1.0, or choose with tl.where."),
    (r"^(Inconsistent return types|Return type mismatch)",
     "A function under @triton.jit returns one type and one shape, whichever `return` is taken.",
     "return the same type everywhere, or choose with tl.where before a single `return`."),
    (r"'tensor' object has no attribute '(stride|size|numel|dim)'", _HOST_ONLY,
     "pass what you need from the host function as a parameter: x.stride(0), x.size(1), x.numel() or x.dim()."),
    (r"'tensor' object has no attribute '(float|half|double|int|long)'", _BLOCK, "convert with .to(tl.float32)."),
    (r"'tensor' object has no attribute '(values|indices)'", "tl.max gives the largest value itself.",
     "leave .values out; for the index there is tl.argmax(block, axis=0)."),
    (r"'tensor' object has no attribute '(?P<name>\w+)'", "A block of a kernel has no `{name}`.",
     "use the functions of `tl`."),
    (r"can only convert an array|cannot convert float NaN|(float|int)\(\) argument must be",
     "Python's `float` and `int` need one number while the kernel is compiled. A kernel's values are known only when "
     "it runs.", "leave it out, or convert with .to(tl.int32) or .to(tl.float32)."),
    (r"has no len\(\)|(tuple|list) index out of range", _HOST_ONLY,
     "a kernel gets a pointer, which has no shape: pass lengths from the host as numbers, such as n_cols."),
    (r"`return` statements inside|the loop body should only have one block", "A compiled loop always goes to its end.",
     "take `return` out of the loop. Put what it should leave out under an `if`, or write a `while` with its "
     "condition."),
    (r"^it calls itself|maximum recursion depth",
     "A function that calls itself cannot be compiled: a GPU has no stack of calls for it.", "write a loop."),
    (r"^a list or tuple",
     "Lists and tuples exist only while the kernel is compiled, so their index must be a constant.",
     "loop over them with tl.static_range, or load the values from memory."),
    (r"static_range .*not a constexpr|constexpr.*static_range",
     "tl.static_range writes its body once for each step, so its bounds must be known when the kernel is compiled.",
     "use range, or declare the bound as a parameter with tl.constexpr."),
    (r"^Input shapes should have|^[Dd]ot.* (should|must) have|M >= 16",
     "tl.dot uses the matrix units of a GPU, which multiply tiles of at least these sizes.",
     "make the tiles larger and mask them, or write tl.sum(a[:, None] * b[None, :], axis=…)."),
    (r"invalid axis|axis \d+ out of bounds for shape",
     "A block of one dimension has only axis 0; a matrix has the axes 0 and 1.",
     "tl.max(block, axis=0) goes over a block of one dimension. axis=1 goes along the rows of a tile."),
    (r"unexpected keyword argument 'axis'.*\ntl\.softmax", "tl.softmax knows one block only, and its argument is dim.",
     "write the steps yourself: tl.max, tl.exp, tl.sum and a division."),
    (r"unexpected keyword argument 'dim'", "", "Triton says axis where torch says dim: axis=0."),
    (r"unexpected keyword argument 'keepdim'", "",
     "Triton's argument is keep_dims. Without it, a block gives a number."),
    (r"unexpected keyword argument 'other'", "A store writes no value for masked-off lanes.", "leave other=… out."),
    (r"Shape element \d+ must have type", "The shape of a block must be known when the kernel is compiled.",
     "use a tl.constexpr parameter, such as BLOCK_SIZE, and mask the lanes that have no element."),
    (r"arange's arguments must be|must be of type tl\.constexpr",
     "tl.arange takes only constants.", "declare the parameter as BLOCK_SIZE: tl.constexpr, and add the start."),
    (r"must be a power of (2|two)", "The number of elements of a block is a power of two.",
     "use powers of two for every block: make the block size a power of two, number its lanes with tl.arange(0, "
     "BLOCK_SIZE), and mask the lanes that have no element."),
    (r"'constexpr' object has no attribute 'handle'", "A condition that never changes, such as `while True`, is not "
     "compiled.", "write the condition that ends the loop, or use range."),
    (r"'constexpr' object has no attribute '(?P<name>\w+)'",
     "Triton compiles an integer argument whose value is 1 as a constant, which has no method `{name}`.",
     "use a function of `tl` that takes numbers too: tl.cast(n, tl.int64) for n.to(tl.int64)."),
    (r"exceeds triton maximum tensor numel", "A block has a largest size, because all its elements are in registers.",
     "go through the data block by block."),
    (r"invalid operands of type pointer<\w+> and [\w.]*float", "What is added to a pointer must be a whole number, and "
     "this is a float.", "convert it with .to(tl.int32), and look whether the launch passes its arguments in the order "
     "of the kernel's parameters. And a "
     "pointer is an address: to compute with the number there, load it first, such as p = tl.load(p_ptr)."),
    (r"operands of type pointer<", _ADDRESS,
     "a pointer is an address: load the number that lies there first, such as p = tl.load(p_ptr)."),
    (r"add pointers together", _ADDRESS,
     "a pointer is an address: tl.load(pointer + offsets, mask=mask) reads the values."),
    (r"Mask must have boolean|boolean scalar type", "",
     "a mask is a comparison, true or false for each lane: mask = offsets < n."),
    (r"Unsupported ptr type.*tl\.store", "The first argument is no pointer.",
     "the pointer comes first: tl.store(pointer + offsets, value, mask=mask)."),
    (r"(pointer|mask|value) argument to have shape|[Ii]ncompatible dimensions|make_shape_compatible",
     "Two blocks of this line have different shapes.",
     "look at the shape of each: x[:, None] is a column, x[None, :] is a row, and axis=0 or axis=1 of a reduction is "
     "the dimension that goes."),
    (r"AssertionError in dot", "tl.dot adds products to an accumulator of float32.",
     "begin with acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32), give a and b one dtype, and let the store convert."),
    (r"'MatMult' object", "A kernel has no operator @.", "write tl.dot(a, b), or acc = tl.dot(a, b, acc)."),
    (r"incorrect number of gradients", "backward returns one gradient for each argument of forward.",
     "return None for each argument that needs none: return dx, None, None."),
    (r"equal ranks", "tl.dot multiplies two tiles.", "for a tile and a vector write tl.sum(a * b[None, :], axis=1)."),
    (r"Unsupported ptr type", "", "tl.load takes a pointer, and this is a number: use it without tl.load. A seed that "
     "JAX traces comes as an array: jnp.asarray(seed, jnp.int32)."),
    (r"cannot be block type if pointer", "", "add the offsets to the pointer: x_ptr + offsets."),
    (r"is not string", "", 'say a name first: print("offsets", offsets).'),
    # host functions of the exercises
    (r"'InterpretedFunction' object has no attribute", "",
     "the judge compiles nothing for your function: compile in a cell of your own, read the numbers, and return them."),
    (r"^ZeroDivisionError", "", "the divisor is 0 in this case: handle this case separately."),
)  # fmt: skip

# What ends a kernel while it runs: what happened, what it means, what to try.
STOPPED = {
    "false-promise": (
        "{words} promises the compiler something that is not true.",
        "The compiler believes it, and may read and write several elements at once where that is not possible.",
        "leave the promise out, or promise only what holds for every size and every program."),
    "never-ends": (
        "{words}.",
        "A program waits or loops until something changes, and nothing changes it.",
        "change in each round what the condition of the loop asks for, such as start += BLOCK_SIZE. What a program "
        "waits for, another one must write."),
    "device-assert": (
        "tl.device_assert failed: {words}.",
        "The kernel itself says that this must not happen.",
        'look at the values that the assertion compares: tl.device_print("value", value) above this line.'),
    "illegal-instruction": (
        "A GPU stops the kernel: {words}.",
        "The instruction that loads such a block does not exist.",
        "begin at a multiple of 16 bytes, or read with tl.load and a mask."),
    "not-allowed": (
        "The kernel uses {words}, which cannot be run without a GPU, nor be judged.",
        "Triton has more features than this course can run.",
        "write it with the functions of `tl` from the lessons."),
}  # fmt: skip

# The compiler's message is the name of its own object, or goes on with what a learner cannot use.
_REWORDED = (
    (r"<\['?([\d', x]+?)'?\], (\w+)>", lambda found: f"{found[2]}[{found[1]}]".replace("'", "")),  # as learners write
    (r"constexpr\[(\w+)\]", r"\1"),
    (r"instanstiated", "instantiated"),
    (r"^\w+\.(\w+?)__\w+$", r"it calls itself: \1"),
    (r"^AssertionError in \w*(getitem|Subscript)\w*$", "a list or tuple has an index that is known only at run time"),
    (r"instantiated as constexpr.*", "tl.constexpr"),
    (r"cannot convert <function (\w+) at \w+> of type <class 'function'> to tensor", r"\1 is a function, not a value"),
    (r"<built-in (?:method|function) (\w+)[^>]*>", r"\1"),
    (r"<class 'triton\.language\.core\.(\w+)'>", r"\1"),
    (r"triton\.language\.(float|int|uint|bfloat)", r"\1"),
    (r" \(note that this also applies.*", ""),
)


def readable(message: str) -> str:
    """The compiler's message with types as learners write them: <['128'], fp32> is fp32[128], a block of 128."""
    for pattern, said in _REWORDED:
        message = re.sub(pattern, said, message, flags=re.S)
    return message if len(message) < 400 else message[:400] + " …"


def refused(message: str, construct: str = "", meant: str = "") -> tuple[str, str, str]:
    """What the compiler says, what it means and what to try: the arguments are those of a workshop.refusal.Refusal."""
    message = readable(message)
    means, attempt = meaning(message, construct, meant)
    return message, means, attempt or COMPARE


def stopped(kind: str, words: str) -> tuple[str, str, str]:
    """The same for a kernel that the executor stopped. kind: of STOPPED. words: of the error."""
    happened, *rest = STOPPED[kind]
    return (happened.format(words=words or "its condition is false"), *rest)


VERBS = {"load": "reads", "store": "writes", "atomic": "changes"}


def outside(fault, ragged: bool = True, strided: bool = False) -> tuple[str, str, str]:
    """The same for an access outside of a tensor. fault: an executor.records.Fault, or what has its fields.

    ragged: whether blocks may end behind the tensors. strided: whether tensors have gaps between their rows.
    """
    one = not fault.block
    first = fault.lane[0] if len(fault.lane) == 1 else fault.lane
    lanes = "" if one else f": {fault.lanes} lane{'s' * (fault.lanes != 1)}, the first is lane {first},"
    who = f"Program {program_in_words(fault.program)} {VERBS[fault.kind]} outside of"
    if not fault.argument:
        return (f"{who} every tensor{lanes} at an address that is in none.", "",
                "begin with a parameter that is a pointer, and add offsets to it: x_ptr + offsets.")  # fmt: skip
    place = f"element {fault.element}, {fault.distance} {fault.place}"
    if fault.place == "gap":
        place = f"row {fault.index[0]}, column {fault.index[-1]}, in the gap between the rows"
    form = f"{fault.argument} has shape {fault.shape} and strides {fault.stride}."
    if fault.shape and fault.stride == (1,):
        form = f"{fault.argument} has {fault.shape[0]} element{'s' * (fault.shape[0] != 1)}."
    happened = f"{who} {fault.argument}{lanes} at {place}. {form * bool(fault.shape)}".rstrip()
    return (happened, *_why_outside(fault, one, ragged, strided))


def odd_step(shape, stride, block, steps) -> int | None:
    """The first axis of a block along which the address grows by no stride of the tensor, a matrix or more."""
    strides = [step for size, step in zip(shape, stride) if size > 1]
    if len(strides) < 2 or len(steps) != len(block):
        return None
    return next((i for i, s in enumerate(steps) if s and block[i] > 1 and s not in strides), None)


def about_steps(access) -> tuple[str, str]:
    """What a wrong step means and what to try; ("", "") where the steps are right. access: argument, shape, stride,
    block and steps are its fields."""
    axis = odd_step(access.shape, access.stride, access.block, access.steps)
    if axis is None:
        return "", ""
    step, places = access.steps[axis], "rows" if len(access.block) == 2 and axis == 0 else "columns"
    lanes = f"From one of its {places} to the next" if len(access.block) == 2 else "From lane to lane"
    sizes = [size for size in access.shape if size == step]
    named = f", which is a length of {access.argument} and not a stride" if sizes else ""
    return (
        f"{lanes}, this block steps by {step} element{'s' * (step != 1)}{named}. The strides of {access.argument} are "
        f"{tuple(access.stride)}, and its shape is {tuple(access.shape)}.",
        "multiply the number of each row by the stride of the rows, and that of each column by the stride of the "
        "columns. Without gaps, the stride of the rows is the number of columns.",
    )


def _why_outside(fault, one: bool, ragged: bool, strided: bool) -> tuple[str, str]:
    if (told := about_steps(fault))[0]:
        return told
    if one:  # the kernel has no blocks, so lanes, masks and strides are not its words
        return (
            "A pointer plus a number is a place in memory. This place belongs to no element of the tensor.",
            "check the number that is added to the pointer, for the first program and for the last one.",
        )
    if ragged and fault.place == "past the end" and any(fault.lane):
        return (
            "The last block reaches past the end of the tensor. On a GPU these lanes access other data.",
            "give every load and store a mask that is true only for elements of the tensor: mask=offsets < n.",
        )
    if strided or fault.place == "gap":
        return (
            "The row stride is larger than the row length. The memory between two rows is not part of the tensor.",
            "step from row to row by the stride of that tensor, x.stride(0), and mask the columns.",
        )
    if any(fault.program[1:]):
        return (
            "These lanes access memory outside of their tensor. The launch grid has several dimensions.",
            "check the order of the grid: tl.program_id(0) counts along its first number. Then check the numbers that "
            "are added to the pointer.",
        )
    return (
        "These lanes access memory outside of their tensor.",
        "check the numbers that are added to the pointer, and that the mask compares them with the right length.",
    )


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """A question with the names that are most like this one; without any, all names."""
    names = list(names)
    near = difflib.get_close_matches(name, names, 3, 0.5)
    if not near:
        return f"There are: {', '.join(names)}."
    return f"Did you mean {', '.join(near[:-1])}{' or ' * (len(near) > 1)}{near[-1]}?"


def program_in_words(program: tuple[int, ...]) -> str:
    """A program's place in its launch grid, without trailing zeros."""
    while len(program) > 1 and program[-1] == 0:
        program = program[:-1]
    return str(program[0]) if len(program) == 1 else str(tuple(program))


_NO_SUCH = re.compile(r"^(?:module 'triton.language'|'tensor' object) has no attribute '(?P<name>\w+)'")


def meaning(message: str, construct: str = "", meant: str = "") -> tuple[str, str]:
    """What a message means and what to try; ("", "") if it is not known.

    construct: what the compiler refuses, as front_end.construct says it. meant: a name that a misspelt one may stand
    for, or "-" if no name is like it.
    """
    text = f"{message}\n{construct}\nmeant: {meant}" if meant else f"{message}\n{construct}"
    named = _NO_SUCH.search(message) or re.search(r"\n(?:torch|np|numpy|math|jnp)\.(?:\w+\.)*(?P<name>\w+)$", text)
    if named and (written := _ELSEWHERE.get(named["name"])):
        return f"Triton's language has no `{named['name']}`.", f"write {written}."
    if found := re.search(r"unsupported AST node type: (\w+)", message):
        name, attempt = _CONSTRUCTS.get(found[1], (f"`{found[1]}`", "write it with the functions of `tl`"))
        return f"{name[0].upper()}{name[1:]} cannot be used in a kernel, which is not ordinary Python.", f"{attempt}."
    for pattern, means, attempt in ADVICE:
        if found := re.search(pattern, text):
            names = found.groupdict()
            return means.format(**names), attempt.format(**names)
    return "", ""
