"""Triton's own front end, with a builder in plain Python in place of libtriton's.

`lower` reads a kernel as Triton reads it and gives a Program. What the front end refuses raises Triton's own
CompilationError. Nothing native is needed.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from types import SimpleNamespace

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource, code_generator, make_backend

from . import program as ir
from .program import NOWHERE, Location, Type

TARGETS = {"cuda": GPUTarget("cuda", 90, 32), "hip": GPUTarget("hip", "gfx942", 64)}
_LIBRARY = os.path.dirname(triton.__file__) + os.sep
_one_at_a_time = threading.Lock()


class Unsupported(NotImplementedError):
    """Only hardware can do it, such as inline assembly, or this executor cannot. `construct` is its name."""

    def __init__(self, construct: str):
        super().__init__(f"{construct} cannot be run without a GPU")
        self.construct = construct


def lower(kernel, signature: dict, constants: dict, attributes: dict | None = None, options: dict | None = None,
          target: str = "cuda") -> ir.Program:  # fmt: skip
    """The Program of a function under @triton.jit.

    signature: by parameter, its type as Triton's compiler writes it ("*fp32", "i32", "constexpr"). constants: the
    values of the constants, by path (the position, and positions inside of tuples). attributes: by path, what the
    launch promises, such as ["tt.divisibility", 16]. options: of the launch, such as num_warps. Raises triton's
    CompilationError where its compiler would, and Unsupported.
    """
    if kernel.is_gluon() if hasattr(kernel, "is_gluon") else False:
        raise Unsupported("gluon")
    source = ASTSource(kernel, signature=signature, constexprs=constants, attrs=attributes or {})
    backend = make_backend(TARGETS[target])
    options = backend.parse_options({"sanitize_overflow": False, **(options or {})})
    functions = backend.get_codegen_implementation(options)
    with _python_builder():
        module = code_generator.ast_to_ttir(kernel, source, None, options, functions, backend.get_module_map())
    return module.finish()


@contextlib.contextmanager
def _python_builder() -> Iterator[None]:
    with _one_at_a_time:
        real = code_generator.ir
        code_generator.ir = STAND_IN
        try:
            yield
        finally:
            code_generator.ir = real


# --- what the front end gets in place of libtriton's classes -----------------------------------------------


class Handle(ir.Value):
    """A value as the front end handles it."""

    __slots__ = ()

    def get_type(self):
        return self.type

    def get_context(self):
        return None

    def get_loc(self):
        return self.location

    def set_loc(self, location):
        self.location = location

    def set_attr(self, name, value):
        pass

    def replace_all_uses_with(self, other):
        self.alias = other


class Operation(ir.Operation):
    __slots__ = ()

    def __init__(self, name, args, types, location=NOWHERE, regions=0):
        super().__init__(name, args, [], location)
        self.results = [Handle(each) for each in types]
        self.regions = [Region() for _ in range(regions)]

    def get_result(self, i):
        return self.results[i]

    def get_num_results(self):
        return len(self.results)

    def get_operation(self):
        return self

    def set_attr(self, name, value):
        self.attributes[name] = value

    def get_region(self, i):
        return self.regions[i]

    def verify(self):
        return True

    def get_body(self, i):
        return self.regions[0].blocks[0]

    def get_induction_var(self):
        return self.regions[0].blocks[0].arguments[0]

    def get_then_block(self):
        return self.regions[0].blocks[0]

    def get_else_block(self):
        return self.regions[1].blocks[0]

    def get_before(self):
        return self.regions[0]

    def get_after(self):
        return self.regions[1]


class Region(ir.Region):
    __slots__ = ()

    def size(self):
        return len(self.blocks)


TERMINATORS = {"ret", "yield_op", "condition_op", "branch", "cond_branch", "reduce_ret", "scan_ret",
               "map_elementwise_ret"}  # fmt: skip


class Block(ir.Block):
    __slots__ = ()

    def arg(self, i):
        return self.arguments[i]

    get_argument = arg

    def get_num_arguments(self):
        return len(self.arguments)

    def add_argument(self, type):
        self.arguments.append(Handle(type))
        return self.arguments[-1]

    def add_argument_at(self, type, location):
        return self.add_argument(type)

    def has_terminator(self):
        return bool(self.operations) and self.operations[-1].name in TERMINATORS

    def has_return(self):
        return bool(self.operations) and self.operations[-1].name == "ret"

    def get_parent(self):
        return self.region

    get_parent_region = get_parent

    def erase(self):
        if self.region is not None and self in self.region.blocks:
            self.region.blocks.remove(self)

    def merge_block_before(self, other):
        other.operations[:0] = self.operations
        self.operations = other.operations
        self.erase()

    def replace_use_in_block_with(self, old, new):
        old.alias = new


class Function(ir.Function):
    def add_entry_block(self):
        block = Block(self.region)
        for each in self.type.parts[0]:
            block.add_argument(each)
        return block

    def args(self, i):
        return self.entry.arguments[i]

    def get_num_args(self):
        return len(self.type.parts[0])

    def set_arg_attr(self, number, name, value):
        self.promises.setdefault(number, {})[name] = value

    def reset_type(self, type):
        self.type = type

    def finalize(self):
        pass


class Module(ir.Program):
    context = None

    def push_back(self, function):
        self.functions[function.name] = function

    def has_function(self, name):
        return name in self.functions

    def get_function(self, name):
        return self.functions[name]

    def verify(self):
        return True

    def set_attr(self, *_):
        pass

    def finish(self) -> ir.Program:
        """The program as data: aliases resolved, lines with the files that they belong to."""
        files: list[str] = []
        for operation in self.operations():
            operation.args = [_resolved(arg) for arg in operation.args]
            operation.location = _located(operation.location, files)
        return ir.Program(dict(self.functions), files)


def _resolved(arg):
    if isinstance(arg, ir.Value):
        return arg.real
    return [_resolved(each) for each in arg] if isinstance(arg, (list, tuple)) else arg


def _located(where, files: list[str]) -> Location:
    if not isinstance(where, Line) or where.file.startswith(_LIBRARY):
        return NOWHERE
    if where.file not in files:
        files.append(where.file)
    return Location(files.index(where.file), where.line)


class Line:
    """A line of the source as a location."""

    __slots__ = ("file", "line")

    def __init__(self, file: str, line: int):
        self.file, self.line = file, line

    def get_name(self):  # Triton 3.9
        return ""


BOOL = Type("int", "i1")
INT32 = Type("int", "i32")
FLOATS = {"half": "f16", "bf16": "bf16", "float": "f32", "double": "f64"}
CONSTANTS = {"fp16": "f16", "fp32": "f32", "fp64": "f64", "bf16": "bf16"}


# --- what an operation gives: its types by its arguments ---------------------------------------------------


def _like(position: int):
    return lambda *args: [args[position].type]


def _given(position: int):
    return lambda *args: [args[position]]


def _nothing(*args):
    return []


def _comparison(x, *_):
    return [x.type.with_element(BOOL)]


def _expand_dims(x, axis):
    shape = list(x.type.shape)
    shape.insert(axis, 1)
    return [x.type.with_shape(shape)]


def _loaded(pointer, *_):
    return [pointer.type.with_element(pointer.type.scalar.element)]


def _halves(x):
    half = x.type.with_shape(x.type.shape[:-1])
    return [half, half]


def _concatenated(x, y):
    return [x.type.with_shape((x.type.shape[0] + y.type.shape[0], *x.type.shape[1:]))]


def _descriptor_block(descriptor, *_):
    return [Type("block", element=descriptor.type.element, shape=descriptor.type.shape)]


_SAME = ["fadd", "fsub", "fmul", "fdiv", "frem", "add", "sub", "mul", "sdiv", "udiv", "srem", "urem", "and", "or", "xor", "shl", "lshr", "ashr", "maxnumf", "minnumf", "maximumf", "minimumf", "maxsi", "minsi", "maxui", "minui", "umulhi", "exp", "exp2", "log", "log2", "sin", "cos", "sqrt", "rsqrt", "fabs", "iabs", "floor", "ceil", "erf", "precise_divf", "precise_sqrt", "fma", "clampf", "addptr", "advance"]
_CONVERSIONS = ["fp_to_fp", "fp_ext", "fp_trunc", "si_to_fp", "ui_to_fp", "fp_to_si", "fp_to_ui", "bitcast", "int_to_ptr", "ptr_to_int", "int_cast"]
_SILENT = ["store", "masked_store", "barrier", "assume", "assert", "print", "branch", "cond_branch", "ret", "yield_op", "condition_op", "reduce_ret", "scan_ret", "map_elementwise_ret", "tensor_pointer_store", "descriptor_store", "descriptor_reduce", "descriptor_scatter"]
_TYPES = {
    **dict.fromkeys(_SAME, _like(0)),
    **dict.fromkeys(_CONVERSIONS, _given(1)),
    **dict.fromkeys(_SILENT, _nothing),
    "select": _like(1),
    "splat": _given(0),
    "make_range": _given(0),
    "poison": _given(0),
    "expand_dims": _expand_dims,
    "broadcast": lambda x, shape: [x.type.with_shape(shape)],
    "reshape": lambda x, shape, *_: [Type("block", element=x.type.scalar, shape=tuple(shape))],
    "trans": lambda x, order: [x.type.with_shape([x.type.shape[i] for i in order])],
    "unsplat": lambda x: [x.type.scalar],
    "load": _loaded,
    "masked_load": _loaded,
    "get_program_id": lambda axis: [INT32],
    "get_num_programs": lambda axis: [INT32],
    "atomic_rmw": lambda how, pointer, value, *_: [value.type],
    "atomic_cas": lambda pointer, expected, value, *_: [value.type],
    "dot": lambda a, b, c, *_: [c.type],
    "dot_scaled": lambda a, a_scale, a_kind, b, b_scale, b_kind, *rest: [next(c.type for c in rest[-1:0:-1] if isinstance(c, ir.Value))],  # fmt: skip
    "join": lambda x, y: [Type("block", element=x.type.scalar, shape=(*x.type.shape, 2))],
    "split": _halves,
    "cat": _concatenated,
    "gather": lambda source, index, axis: [source.type.with_shape(index.type.shape)],
    "histogram": lambda x, bins, *_: [Type("block", element=INT32, shape=(bins,))],
    "make_block_ptr": lambda base, shape, strides, offsets, block, order: [Type("pointer", element=Type("block", element=base.type.element, shape=tuple(block)))],  # fmt: skip
    "tensor_pointer_load": lambda pointer, *_: [pointer.type.element],
    "make_tensor_descriptor": lambda base, shape, strides, block, signed=True, *_: [Type("descriptor", element=base.type.element, shape=tuple(block), signed=bool(signed))],  # fmt: skip
    "descriptor_load": _descriptor_block,
    "descriptor_gather": lambda descriptor, x, y, type: [type],
}
_ONLY_HARDWARE = {"inline_asm": "inline assembly"}


class Builder:
    """The calls that Triton's front end makes of `ir.builder`, recorded as operations."""

    def __init__(self, context):
        self.block: Block | None = None
        self.at: Operation | None = None  # the next operation goes before this one; None: to the end
        self.location = NOWHERE

    # where the next operation goes

    def set_loc(self, *where):
        self.location = Line(where[0], where[1]) if len(where) == 3 else where[0]

    def get_loc(self):
        return self.location

    def create_loc(self, file, line, column):
        return Line(file, line)

    def create_name_loc(self, name, location=NOWHERE):
        return location

    def create_module(self):
        return Module()

    def create_block(self):
        return Block(self.block.region if self.block is not None else None)

    def create_block_with_parent(self, region, types):
        block = Block(region)
        for each in types:
            block.add_argument(each)
        self.set_insertion_point_to_start(block)
        return block

    def new_block(self):
        return Block()

    def get_insertion_block(self):
        return self.block

    def get_insertion_point(self):
        return self.block, self.at

    def restore_insertion_point(self, point):
        self.block, self.at = point

    def set_insertion_point_to_start(self, block):
        self.block, self.at = block, block.operations[0] if block.operations else None

    def set_insertion_point_to_end(self, block):
        self.block, self.at = block, None

    def get_or_insert_function(self, module, name, type, visibility, noinline):
        function = Function(name, type, visibility, noinline)
        function.region = Region()
        return function

    # types

    def get_ptr_ty(self, element, space=1):
        return Type("pointer", element=element, space=space)

    def get_block_ty(self, element, shape):
        return Type("block", element=element, shape=tuple(int(n) for n in shape))

    def get_function_ty(self, inputs, outputs):
        return Type("function", parts=(tuple(inputs), tuple(outputs)))

    def get_void_ty(self):
        return Type("void")

    def create_tensor_descriptor_type(self, block, signed):
        return Type("descriptor", element=block.element, shape=block.shape, signed=bool(signed))

    # constants

    def constant(self, method: str, args: tuple, type: Type) -> Handle:
        return Handle(type, (method, *args))

    def get_null_value(self, type):
        return self.constant("get_null_value", (type,), type)

    def get_all_ones_value(self, type):
        return self.constant("get_all_ones_value", (type,), type)

    def __getattr__(self, name: str):
        kind = name[4:]
        if name.startswith("create_"):
            return self._recorder(name[7:])
        if name.endswith("_attr") or name == "get_cache_policy":
            return lambda *args: (name, *args)
        if name.startswith("get_") and name.endswith("_ty"):
            kind = kind[:-3]
            is_int = kind.startswith("int")
            type = Type("int", "i" + kind[3:]) if is_int else Type("float", FLOATS.get(kind) or FLOAT8[kind])
            return lambda: type
        if name.startswith("get_") and kind in CONSTANTS:
            return lambda value: self.constant(name, (float(value),), Type("float", CONSTANTS[kind]))
        if name.startswith(("get_int", "get_uint")):
            bits = name.rpartition("int")[2]
            return lambda value: self.constant(name, (int(value),), Type("int", "i" + bits))
        raise AttributeError(name)

    # operations

    def add(self, operation: Operation) -> Operation:
        if self.at is None:
            self.block.operations.append(operation)
        else:
            self.block.operations.insert(self.block.operations.index(self.at), operation)
        return operation

    def _recorder(self, name: str):
        if name in _ONLY_HARDWARE:
            raise Unsupported(_ONLY_HARDWARE[name])
        types = _comparison if name.startswith(("icmp", "fcmp")) else _TYPES.get(name)
        if types is None:
            raise Unsupported(name)

        def record(*args, **named):
            args = (*args, *named.values())
            made = self.add(Operation(name, [_argument(each) for each in args], types(*args), self.location))
            return made.results[0] if len(made.results) == 1 else made.results or made

        return record

    def create_int_cast(self, value, type, signed):
        if value.type == type:
            return value
        return self.add(Operation("int_cast", [value, type, signed], [type], self.location)).results[0]

    def create_extern_elementwise(self, library, path, symbol, args, type, pure):
        made = Operation("extern_elementwise", [library, path, symbol, list(args), type, pure], [type], self.location)
        return self.add(made).results[0]

    def create_call(self, function, args):
        return self.add(Operation("call", [function.name, list(args)], function.type.parts[1], self.location))

    call = create_call

    def ret(self, values):
        return self.add(Operation("ret", [list(values)], [], self.location))

    def create_yield_op(self, values):
        return self.add(Operation("yield_op", [list(values)], [], self.location))

    def create_condition_op(self, condition, values):
        return self.add(Operation("condition_op", [condition, list(values)], [], self.location))

    def create_branch(self, block, args):
        return self.add(Operation("branch", [block, list(args)], [], self.location))

    def create_cond_branch(self, condition, then, other):
        return self.add(Operation("cond_branch", [condition, then, other], [], self.location))

    def create_reduce_ret(self, *values):
        return self.add(Operation("reduce_ret", list(values), [], self.location))

    def create_scan_ret(self, *values):
        return self.add(Operation("scan_ret", list(values), [], self.location))

    def create_map_elementwise_ret(self, values):
        return self.add(Operation("map_elementwise_ret", [list(values)], [], self.location))

    def create_for_op(self, low, high, step, initial):
        types = [each.type for each in initial]
        loop = self.add(Operation("for_op", [low, high, step, list(initial)], types, self.location, regions=1))
        body = Block(loop.regions[0])
        for each in (low.type, *types):
            body.add_argument(each)
        return loop

    def create_if_op(self, types, condition, has_else):
        choice = self.add(Operation("if_op", [condition, bool(has_else)], types, self.location, regions=2))
        for region in choice.regions:
            Block(region)
        return choice

    def create_while_op(self, types, initial):
        return self.add(Operation("while_op", [list(initial)], types, self.location, regions=2))

    def create_reduce(self, operands, axis):
        shape = operands[0].type.shape
        shape = shape[:axis] + shape[axis + 1 :]
        types = [each.type.with_shape(shape) for each in operands]
        return self.add(Operation("reduce", [list(operands), axis], types, self.location, regions=1))

    def create_scan(self, operands, axis, reverse):
        types = [each.type for each in operands]
        return self.add(Operation("scan", [list(operands), axis, reverse], types, self.location, regions=1))

    def create_map_elementwise(self, operands, types, pack):
        made = Operation("map_elementwise", [list(operands), pack], types, self.location, regions=1)
        return self.add(made)


def _argument(value):
    """An argument as data: members of Triton's enumerations by name."""
    if isinstance(value, (ir.Value, ir.Block, Type)) or value is None or type(value) in (bool, int, float, str):
        return value
    if isinstance(value, (list, tuple)):
        return [_argument(each) for each in value]
    if isinstance(value, Line):
        return None
    if hasattr(value, "name"):
        return ir.Enum(type(value).__name__, value.name)
    return value.__index__() if hasattr(value, "__index__") else value


FLOAT8 = {"fp8e4nv": "f8E4M3FN", "fp8e5": "f8E5M2", "fp8e4b8": "f8E4M3FNUZ", "fp8e5b16": "f8E5M2FNUZ", "fp8e4b15": "f8E4M3B11FNUZ"}  # fmt: skip
STAND_IN = SimpleNamespace(builder=Builder, value=Handle, block_argument=Handle, context=object, module=Module,
                           type=Type, InsertPoint=object, Loc=object, location=object)  # fmt: skip
