"""Triton's own front end, with a builder in plain Python in place of libtriton's.

`lower` reads a kernel as Triton reads it and gives a Program. What the front end refuses raises Triton's own
CompilationError. Nothing native is needed.
"""

from __future__ import annotations

import contextlib
import os
import re
import threading
from collections.abc import Iterator
from types import SimpleNamespace

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource, CompilationError, code_generator, make_backend
from triton.language import core, semantic

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
    if kernel.is_gluon():
        raise Unsupported("gluon")
    source = ASTSource(kernel, signature=signature, constexprs=constants, attrs=attributes or {})
    backend = make_backend(TARGETS[target])
    options = backend.parse_options({"sanitize_overflow": False, **(options or {})})
    functions = {**backend.get_codegen_implementation(options), "convert_custom_types": _convert}
    with _python_builder(TARGETS[target]):
        try:
            module = code_generator.ast_to_ttir(kernel, source, None, options, functions, backend.get_module_map())
        except CompilationError as error:
            cause = error
            while cause := cause.__cause__ or cause.__context__:
                if isinstance(cause, Unsupported):
                    raise cause from None
            error.places = _Reader.places
            raise
    return module.finish()


def message(error: BaseException) -> tuple[str, int | None, int | None]:
    """What Triton says of a kernel that it refuses, and the line and column of the innermost line of the learner's.

    Triton raises one error for each call on the way to what it refuses. The last says why. `lower` leaves on the
    first where each function begins in its file.
    """
    line = column = None
    places = getattr(error, "places", {})
    while True:
        file, first = places.get(getattr(error, "src", None), ("", 0))
        if hasattr(getattr(error, "node", None), "lineno") and not file.startswith(_LIBRARY):
            line, column = first + error.node.lineno, error.node.col_offset
        if error.__cause__ is None:
            break
        if not isinstance(error.__cause__, CompilationError):
            error = error if getattr(error, "error_message", None) else error.__cause__
            break
        error = error.__cause__
    text = str(getattr(error, "error_message", None) or error).strip()
    quoted = re.fullmatch(r"""\w+\((["'])(.*)\1\)""", text, re.S)  # the repr of an exception
    return (quoted[2] if quoted else text) or type(error).__name__, line, column


@contextlib.contextmanager
def _python_builder(target: GPUTarget) -> Iterator[None]:
    """Triton's front end builds with `Builder`, and asks no driver what the target is."""
    driver = SimpleNamespace(active=SimpleNamespace(get_current_target=lambda: target))
    instead = [(code_generator, "ir", STAND_IN), (code_generator, "CodeGenerator", _Reader)]
    instead += [(semantic, "ir", _Enumerations()), (semantic, "driver", driver)]
    if hasattr(triton.language, "target_info"):  # since Triton 3.5
        instead.append((triton.language.target_info, "driver", driver))
    with _one_at_a_time:
        _Reader.places = {}
        real = [(owner, name, getattr(owner, name)) for owner, name, _ in instead]
        try:
            for owner, name, value in instead:
                setattr(owner, name, value)
            yield
        finally:
            for owner, name, value in real:
                setattr(owner, name, value)


class _Reader(code_generator.CodeGenerator):
    """Triton's, which reads one function. It notes where the function's text stands."""

    places: dict[str, tuple[str, int]] = {}

    def __init__(self, *args, **named):
        super().__init__(*args, **named)
        self.places[self.jit_fn.src] = (self.file_name, self.begin_line)


class _Enumerations:
    """libtriton's `ir` for the rules of the language: its enumerations, and no values."""

    def __getattr__(self, name: str):
        return getattr(_REAL_IR, name)

    @staticmethod
    def make_attr(numbers, context):
        return [int(each) for each in numbers]

    @staticmethod
    def value():  # in Triton 3.9 an argument that is not there
        return None


@core.builtin
def _convert(value, type, fp_downcast_rounding=None, _semantic=None):
    """To or from a float8 that no GPU converts, in place of the inline assembly of Triton's library."""
    builder = _semantic.builder
    return core.tensor(builder.create_fp_to_fp(value.handle, type.to_ir(builder), fp_downcast_rounding), type)


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
        """A promise of the kernel's about this value, such as `tl.multiple_of`."""
        Builder.current.add(Operation("promise", [self, name, value], [], Builder.current.location))

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
        self.attributes[name] = [_argument(each) for each in value]

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

    def push_back(self, block):
        block.region = self
        self.blocks.append(block)


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

    verify_with_diagnostics = verify  # Triton 3.5

    def set_attr(self, *_):
        pass

    def finish(self) -> ir.Program:
        """The program as data: aliases resolved, lines with the files that they belong to."""
        files: list[str] = []
        for function in self.functions.values():
            _remove_unreached(function.region)
        for operation in self.operations():
            operation.args = [_resolved(arg) for arg in operation.args]
            operation.location = _located(operation.location, files)
        return ir.Program(dict(self.functions), files)


def _remove_unreached(region: Region) -> None:
    """Removes the blocks that nothing branches to, such as the one behind a return."""
    found = region.blocks[:1]
    for block in found:
        last = block.operations[-1] if block.operations else None
        targets = last.args if last and last.name in ("branch", "cond_branch") else ()
        found += [each for each in targets if isinstance(each, ir.Block) and each not in found]
    region.blocks[:] = [block for block in region.blocks if block in found]


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


SPACES = {"global": 1, "constant": 4}  # as Triton 3.9 names them
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


def _reduced(operands, axis):
    shape = operands[0].type.shape
    return [each.type.with_shape(shape[:axis] + shape[axis + 1 :]) for each in operands]


def _block_pointer(base, shape, strides, offsets, block, order):
    return [Type("pointer", element=Type("block", element=base.type.element, shape=tuple(block)))]


def _descriptor(base, shape, strides, block, signed, *_):
    return [Type("descriptor", element=base.type.element, shape=tuple(block), signed=bool(signed))]


def _descriptor_block(descriptor, *_):
    return [Type("block", element=descriptor.type.element, shape=descriptor.type.shape)]


def words(text: str) -> list[str]:
    return text.split()


_SAME = words("""
    fadd fsub fmul fdiv fneg frem add sub mul sdiv udiv srem urem and or xor shl lshr ashr maxnumf minnumf maximumf
    minimumf maxsi minsi maxui minui umulhi exp exp2 log log2 sin cos sqrt rsqrt fabs iabs floor ceil erf
    precise_divf approx_divf precise_sqrt fma clampf addptr advance
""")
_CONVERSIONS = words("""
    fp_to_fp fp_ext fp_trunc si_to_fp ui_to_fp fp_to_si fp_to_ui bitcast int_to_ptr ptr_to_int int_cast
""")
_SILENT = words("""
    store masked_store barrier assume promise atomic_store grid_dependency_wait grid_dependency_launch_dependents
    assert print branch cond_branch ret yield_op condition_op reduce_ret scan_ret map_elementwise_ret
    tensor_pointer_store descriptor_store descriptor_reduce descriptor_scatter
""")
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
    "extern_elementwise": _given(4),
    "for_op": lambda low, high, step, initial: [each.type for each in initial],
    "while_op": lambda initial: [each.type for each in initial],
    "scan": lambda operands, *_: [each.type for each in operands],
    "reduce": _reduced,
    "load": _loaded,
    "masked_load": _loaded,
    "get_program_id": lambda axis: [INT32],
    "get_num_programs": lambda axis: [INT32],
    "atomic_load": _loaded,
    "atomic_poll": _comparison,
    "atomic_rmw": lambda how, pointer, value, *_: [value.type],
    "atomic_cas": lambda pointer, expected, value, *_: [value.type],
    "dot": lambda a, b, c, *_: [c.type],
    "dot_scaled": lambda *args: [args[-1].type],
    "join": lambda x, y: [Type("block", element=x.type.scalar, shape=(*x.type.shape, 2))],
    "split": _halves,
    "cat": _concatenated,
    "gather": lambda source, index, axis: [source.type.with_shape(index.type.shape)],
    "histogram": lambda x, bins, *_: [Type("block", element=INT32, shape=(bins,))],
    "make_block_ptr": _block_pointer,
    "tensor_pointer_load": lambda pointer, *_: [pointer.type.element],
    "make_tensor_descriptor": _descriptor,
    "descriptor_load": _descriptor_block,
    "descriptor_gather": lambda descriptor, x, y, type: [type],
}
REGIONS = {"for_op": 1, "if_op": 2, "while_op": 2, "reduce": 1, "scan": 1, "map_elementwise": 1}
_ONLY_HARDWARE = {"inline_asm": "inline assembly"}


def results(name: str, args) -> list[Type]:
    """The types of what the builder's method gives, for all but "call", "if_op" and "map_elementwise"."""
    if name in _ONLY_HARDWARE:
        raise Unsupported(_ONLY_HARDWARE[name])
    rule = _comparison if name.startswith(("icmp", "fcmp")) else _TYPES.get(name)
    if rule is None:
        raise Unsupported(name)
    return rule(*args)


_CONDITIONS = {"if_op": "scf.if", "condition_op": "scf.condition", "cond_branch": "cf.cond_br"}


class Builder:
    """The calls that Triton's front end makes of `ir.builder`, recorded as operations."""

    current: Builder  # the one that works: each function has its own

    def __init__(self, context):
        self.block: Block | None = None
        self.at: Operation | None = None  # the next operation goes before this one; None: to the end
        self.location = NOWHERE

    # where the next operation goes

    def set_loc(self, *where):
        Builder.current = self
        self.location = Line(where[0], where[1]) if len(where) == 3 else where[0]

    def get_loc(self):
        return self.location

    def set_async_task_ids(self, numbers):  # Triton 3.4 and 3.5
        raise Unsupported("async_task")

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
        function = Function(name, type, visibility, bool(noinline))
        function.region = Region()
        return function

    # types

    def get_ptr_ty(self, element, space=1):
        return Type("pointer", element=element, space=SPACES.get(space, space))

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
        Builder.current = self
        if self.at is None:
            self.block.operations.append(operation)
        else:
            self.block.operations.insert(self.block.operations.index(self.at), operation)
        return operation

    def record(self, name: str, args, types: list[Type] | None = None) -> Operation:
        args = [_argument(each) for each in args]
        if name in _CONDITIONS and args[0].type != BOOL:  # in the words of MLIR's verifier, at the line where it is
            given = f"must be 1-bit signless integer, but got '{args[0].type}'"
            raise TypeError(f"'{_CONDITIONS[name]}' op operand #0 {given}")
        types = results(name, args) if types is None else types
        return self.add(Operation(name, args, types, self.location, REGIONS.get(name, 0)))

    def _recorder(self, name: str):
        def record(*args, **named):
            made = self.record(name, (*args, *named.values()))
            if name in REGIONS:
                return made
            return made.results[0] if len(made.results) == 1 else made.results

        return record

    def create_int_cast(self, value, type, signed):
        return value if value.type == type else self.record("int_cast", [value, type, signed]).results[0]

    def call(self, function, args):
        return self.record("call", [function.name, args], list(function.type.parts[1]))

    def ret(self, values):
        return self.record("ret", [values])

    def create_for_op(self, low, high, step, initial):
        loop = self.record("for_op", [low, high, step, initial])
        body = Block(loop.regions[0])
        for each in (low, *initial):
            body.add_argument(each.type)
        return loop

    def create_if_op(self, types, condition, has_else):
        choice = self.record("if_op", [condition, has_else], types)
        for region in choice.regions:
            Block(region)
        return choice

    def create_while_op(self, types, initial):
        return self.record("while_op", [initial])

    def create_map_elementwise(self, operands, types, pack):
        return self.record("map_elementwise", [operands, pack], types)


def _argument(value):
    """An argument as data: members of Triton's enumerations by name."""
    if isinstance(value, core.constexpr):
        value = value.value
    if isinstance(value, (ir.Value, ir.Block, Type)) or value is None or type(value) in (bool, int, float, str):
        return value
    if isinstance(value, (list, tuple)):
        return [_argument(each) for each in value]
    if isinstance(value, Line):
        return None
    if hasattr(value, "name"):
        return ir.Enum(type(value).__name__, value.name)
    return value.__index__() if hasattr(value, "__index__") else value


FLOAT8 = {"fp8e4nv": "f8E4M3FN", "fp8e5": "f8E5M2", "fp8e4b8": "f8E4M3FNUZ", "fp8e5b16": "f8E5M2FNUZ",
          "fp8e4b15": "f8E4M3B11FNUZ"}  # fmt: skip
_REAL_IR = semantic.ir
STAND_IN = SimpleNamespace(builder=Builder, value=Handle, block_argument=Handle, context=object, module=Module,
                           type=Type, InsertPoint=object, Loc=object, location=object)  # fmt: skip
