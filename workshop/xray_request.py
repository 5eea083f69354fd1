"""The request to the compiler's process: a kernel's source and parameters, from the call that would launch it."""

import ast
import inspect
import textwrap
from types import FunctionType, ModuleType

POINTER_RANGE = 2**31  # bytes up to which AMD's compiler may use 32-bit offsets
DTYPES = {
    "float16": "fp16",
    "bfloat16": "bf16",
    "float32": "fp32",
    "float64": "fp64",
    "bool": "i1",
    "uint8": "u8",
    "int8": "i8",
    "int16": "i16",
    "int32": "i32",
    "int64": "i64",
}


def function_of(kernel) -> FunctionType:
    """The Python function under @triton.jit, @triton.autotune and @triton.heuristics."""
    function = kernel
    while not isinstance(function, FunctionType):
        if not hasattr(function, "fn"):
            raise TypeError(f"{kernel!r} is not a Triton kernel: expected a function under @triton.jit")
        function = function.fn
    if function is kernel:
        raise TypeError(f"{kernel.__name__} is a plain function: put @triton.jit above it")
    return function


def bind(function: FunctionType, args: tuple, kwargs: dict) -> tuple[dict[str, dict], dict]:
    """The kernel's parameters as the compiler wants them, and the options among the keyword arguments."""
    names = list(inspect.signature(function).parameters)
    options = {name: value for name, value in kwargs.items() if name not in names}
    given = {name: value for name, value in kwargs.items() if name in names}
    try:
        bound = inspect.signature(function).bind(*args, **given)
    except TypeError as error:
        raise TypeError(f"{function.__name__} takes {', '.join(names)}: {error}") from None
    bound.apply_defaults()
    return {
        name: _parameter(name, bound.arguments[name], _is_constexpr(function, name)) for name in names
    }, options


def _is_constexpr(function: FunctionType, name: str) -> bool:
    return "constexpr" in str(function.__annotations__.get(name, ""))


def _parameter(name: str, value, constexpr: bool) -> dict:
    """How the launcher would specialise one argument: its type, and what it knows about its value."""
    value = getattr(value, "value", value) if constexpr else value
    if constexpr or value is None or (type(value) is int and value == 1):
        return {"constant": _constant(value)}
    if isinstance(value, str):
        return {"type": value, "aligned": value.startswith("*"), "near": value.startswith("*")}
    if hasattr(value, "data_ptr"):
        size = value.untyped_storage().nbytes()
        dtype = DTYPES.get(str(value.dtype).removeprefix("torch."))
        if dtype is None:
            raise TypeError(f"{name}: no Triton type for a tensor of {value.dtype}")
        return {"type": f"*{dtype}", "aligned": value.data_ptr() % 16 == 0, "near": size < POINTER_RANGE}
    if isinstance(value, bool):
        return {"type": "i1"}
    if isinstance(value, int):
        width = "i32" if -(2**31) <= value < 2**31 else "i64" if value < 2**63 else "u64"
        return {"type": width, "aligned": value % 16 == 0}
    if isinstance(value, float):
        return {"type": "fp32"}
    raise TypeError(
        f"{name}: expected a tensor, a number or a type such as '*fp32', got {type(value).__name__}"
    )


def _constant(value):
    """A constexpr as JSON can carry it: a number, a string, None, or one of Triton's types by name."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if type(value).__name__ == "dtype":
        return {"dtype": _dtype(value)}
    raise TypeError(f"a constexpr of type {type(value).__name__} cannot be compiled here")


def module_source(function: FunctionType) -> str:
    """A Python module with the kernel and everything of its notebook or module that it uses."""
    parts: dict[str, str] = {}
    _gather(function, parts)
    return "\n".join(["import triton", "import triton.language as tl", *parts.values()]) + "\n"


def _gather(function: FunctionType, parts: dict[str, str]) -> None:
    """Add the definitions that `function` needs, then its own, to `parts`."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    definition = tree.body[0]
    definition.decorator_list = []
    parts[function.__name__] = ""  # a function that calls itself is gathered once
    for name in sorted({node.id for node in ast.walk(definition) if isinstance(node, ast.Name)}):
        if name in function.__globals__ and name not in parts:
            _gather_global(name, function.__globals__[name], parts)
    del parts[function.__name__]
    # The compiler counts lines from the definition, so the source stays as it was written.
    lines = textwrap.dedent(inspect.getsource(function)).splitlines()
    parts[function.__name__] = "\n".join(["@triton.jit", *lines[definition.lineno - 1 :]])


def _gather_global(name: str, value, parts: dict[str, str]) -> None:
    if isinstance(value, ModuleType):
        parts[name] = f"import {value.__name__} as {name}"
    elif value is None or isinstance(value, (bool, int, float, str)):
        parts[name] = f"{name} = {_literal(value)}"
    elif type(value).__name__ == "constexpr":
        parts[name] = f"{name} = tl.constexpr({_literal(value.value)})"
    elif type(value).__name__ == "dtype":
        parts[name] = f"{name} = tl.{_dtype(value)}"
    else:
        function = getattr(value, "fn", value)
        if str(getattr(function, "__module__", "")).startswith("triton."):
            parts[name] = f"from {function.__module__} import {function.__name__} as {name}"
        elif function is not value:
            _gather(function_of(value), parts)


def _dtype(value) -> str:
    """The name of a Triton dtype in `tl`: it calls itself fp32, and is tl.float32."""
    return str(value).replace("bf16", "bfloat16").replace("fp", "float")


def _literal(value) -> str:
    return f'float("{value}")' if isinstance(value, float) else repr(value)
