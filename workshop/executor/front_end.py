"""Triton's own front end, with a builder in plain Python in place of libtriton's.

`lower` reads a kernel as Triton reads it and gives a Program. What the front end refuses raises Triton's own
CompilationError. Nothing native is needed.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator
from types import SimpleNamespace

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource, CompilationError, code_generator, make_backend
from triton.language import core, semantic

from . import program as ir
from .program import BOOL, CONSTANTS, NOWHERE, REGIONS, TERMINATORS, TYPES, Location, Type, Unsupported, inside, results

TARGETS = {"cuda": GPUTarget("cuda", 90, 32), "hip": GPUTarget("hip", "gfx942", 64)}
LIBRARY = os.path.dirname(triton.__file__) + os.sep
SPACES = {"global": 1, "constant": 4}  # as Triton 3.9 names them
_one_at_a_time = threading.Lock()


def lower(kernel, signature: dict, constants: dict, attributes: dict | None = None, options: dict | None = None,
          target: str = "cuda") -> ir.Program:  # fmt: skip
    """The Program of a function under @triton.jit.

    signature: by parameter, its type as Triton's compiler writes it ("*fp32", "i32", "constexpr"). constants: the
    values of the constants, by path (the position, and positions inside of tuples). attributes: by path, what the
    launch promises, such as ["tt.divisibility", 16]. options: of the launch, such as num_warps. Raises triton's
    CompilationError where its compiler would, with the places of the functions for `workshop.short`, and Unsupported.
    """
    if kernel.is_gluon():
        raise Unsupported("gluon")
    source = ASTSource(kernel, signature=signature, constexprs=constants, attrs=attributes or {})
    backend = make_backend(TARGETS[target])
    options = backend.parse_options({"sanitize_overflow": False, **(options or {})})
    functions = {**backend.get_codegen_implementation(options), "convert_custom_types": _convert}
    ours = (code_generator, "ir", _INSTEAD), (code_generator, "CodeGenerator", _Reader), (semantic, "ir", _ENUMERATIONS)
    with targeting(TARGETS[target], *ours):
        _Reader.places = {}
        try:
            module = code_generator.ast_to_ttir(kernel, source, None, options, functions, backend.get_module_map())
        except CompilationError as error:
            cause = error
            while cause := cause.__cause__ or cause.__context__:
                if isinstance(cause, (Unsupported, MemoryError)):  # no word of the compiler's
                    raise cause from None
            error.places = _Reader.places
            raise
    return module.finish()


@contextlib.contextmanager
def targeting(target: GPUTarget, *more: tuple) -> Iterator[None]:
    """Triton's language asks no driver what the target is. more: module, name and what stands there meanwhile."""
    driver = SimpleNamespace(active=SimpleNamespace(get_current_target=lambda: target))
    instead = [*more, (semantic, "driver", driver)]
    if hasattr(triton.language, "target_info"):  # since Triton 3.5
        instead.append((triton.language.target_info, "driver", driver))
    with _one_at_a_time, contextlib.ExitStack() as after:
        for owner, name, value in instead:
            after.callback(setattr, owner, name, getattr(owner, name))
            setattr(owner, name, value)
        yield


class _Reader(code_generator.CodeGenerator):
    """Triton's, which reads one function. It notes where the function's text stands."""

    places: dict[str, tuple[str, int]] = {}

    def __init__(self, *args, **named):
        super().__init__(*args, **named)
        self.places[self.jit_fn.src] = (self.file_name, self.begin_line)


@core.builtin
def _convert(value, type, fp_downcast_rounding=None, _semantic=None):
    """To or from a float8 that no GPU converts, in place of the inline assembly of Triton's library."""
    builder = _semantic.builder
    return core.tensor(builder.create_fp_to_fp(value.handle, type.to_ir(builder), fp_downcast_rounding), type)


# --- what the front end gets in place of libtriton's classes. The methods have the names of theirs. ---------


def _attribute(name: str) -> Callable:
    return lambda self, *_: getattr(self, name)


def _element(name: str) -> Callable:
    return lambda self, key: getattr(self, name)[key]


def _body(number: int) -> Callable:
    return lambda self, *_: self.regions[number][0]


def _always(result) -> Callable:
    """A method of which nothing depends here."""
    return lambda self, *_: result


class Handle(ir.Value):
    """A value as the front end handles it.

    alias: the value that has replaced it in the operations up to then. kept: what it is in later ones. A loop replaces
    the variable that it counts with, and behind the loop that is the undefined value from before it.
    """

    __slots__ = ("alias", "kept")

    get_type = _attribute("type")
    get_context = get_loc = set_loc = _always(None)

    def set_attr(self, name, value):
        """A promise of the kernel's about this value, such as `tl.multiple_of`."""
        Builder.current.record("promise", [self, name, value])

    def replace_all_uses_with(self, other):
        self.alias, self.kept = other, Handle(self.type)


class Operation(ir.Operation):
    __slots__ = ()

    get_result = _element("results")
    get_region = _element("regions")
    get_before, get_after = (lambda self: self.regions[0]), (lambda self: self.regions[1])
    get_body = get_then_block = _body(0)
    get_else_block = _body(1)
    verify = _always(True)

    def get_num_results(self):
        return len(self.results)

    def get_induction_var(self):
        return self.get_body(0).arguments[0]

    def set_attr(self, name, value):
        self.attributes[name] = _argument(value)


class Region(list):
    size = list.__len__

    def push_back(self, block):
        block.region = self
        self.append(block)


class Block(ir.Block):
    __slots__ = ()

    arg = _element("arguments")
    get_parent = _attribute("region")

    def add_argument(self, type):
        self.arguments.append(Handle(type))
        return self.arguments[-1]

    def add_argument_at(self, type, location):
        return self.add_argument(type)

    def has_terminator(self):
        return bool(self.operations) and self.operations[-1].name in TERMINATORS

    def erase(self):
        if self.region is not None and self in self.region:
            self.region.remove(self)

    def merge_block_before(self, other):
        other.operations[:0] = self.operations
        self.operations = other.operations
        self.erase()


class Function(ir.Function):
    def add_entry_block(self):
        return Block(self.blocks, map(Handle, self.type.parts[0]))

    def args(self, number):
        return self.entry.arg(number)

    def get_num_args(self):
        return len(self.type.parts[0])

    def set_arg_attr(self, number, name, value):
        self.promises.setdefault(number, {})[name] = value

    def reset_type(self, type):
        self.type = type

    finalize = _always(None)


class Module(ir.Program):
    context = None
    verify = verify_with_diagnostics = _always(True)  # the latter in Triton 3.5
    set_attr = _always(None)
    get_function = _element("functions")

    def push_back(self, function):
        self.functions[function.name] = function

    def has_function(self, name):
        return name in self.functions

    def finish(self) -> ir.Program:
        """The program as data: aliases resolved."""
        for function in self.functions.values():
            _remove_unreached(function.blocks)
        for operation in self.operations():
            operation.args = [_resolved(arg) for arg in operation.args]
            operation.results = [getattr(result, "kept", result) for result in operation.results]
        return ir.Program(dict(self.functions))


def _remove_unreached(blocks: list[Block]) -> None:
    """Removes the blocks that nothing branches to, such as the one behind a return."""
    found = blocks[:1]
    for block in found:
        if block.has_terminator():
            found += [each for each in block.operations[-1].args if isinstance(each, Block) and each not in found]
    blocks[:] = [block for block in blocks if block in found]


def _resolved(arg):
    while hasattr(arg, "alias"):
        arg = arg.alias
    return [_resolved(each) for each in arg] if isinstance(arg, list) else arg


def _line(file: str, line: int, column: int) -> Location:
    return NOWHERE if file.startswith(LIBRARY) else Location(file, line)


_CONDITIONS = {"if_op": "scf.if", "condition_op": "scf.condition", "cond_branch": "cf.cond_br"}


class Builder:
    """The calls that Triton's front end makes of `ir.builder`, recorded as operations."""

    current: Builder  # the one that works: each function has its own

    def __init__(self, context):
        self.point: tuple[Block | None, Operation | None] = None, None  # the next operation goes before this one
        self.location = NOWHERE

    # where the next operation goes

    get_loc = _attribute("location")
    get_insertion_point = _attribute("point")
    create_loc = staticmethod(_line)

    def set_loc(self, *where):
        Builder.current = self
        self.location = _line(*where) if len(where) == 3 else where[0] or NOWHERE

    def create_name_loc(self, name, location=NOWHERE):
        return location

    def set_async_task_ids(self, numbers):  # Triton 3.4 and 3.5
        raise Unsupported("async_task")

    def get_insertion_block(self):
        return self.point[0]

    def restore_insertion_point(self, point):
        self.point = point

    def set_insertion_point_to_start(self, block):
        self.point = block, block.operations[0] if block.operations else None

    def set_insertion_point_to_end(self, block):
        self.point = block, None

    # functions and blocks

    create_module = staticmethod(Module)
    new_block = staticmethod(Block)

    def get_or_insert_function(self, module, name, type, visibility, noinline):
        return Function(name, type, bool(noinline), Region())

    def create_block(self):
        return Block(self.point[0] and self.point[0].region)

    def create_block_with_parent(self, region, types):
        block = Block(region, map(Handle, types))
        self.set_insertion_point_to_start(block)
        return block

    # types and constants

    def get_ptr_ty(self, element, space=1):
        return Type("pointer", element=element, space=SPACES.get(space, space))

    def get_block_ty(self, element, shape):
        return Type("block", element=element, shape=tuple(map(int, shape)))

    def get_function_ty(self, inputs, outputs):
        return Type("function", parts=(tuple(inputs), tuple(outputs)))

    def create_tensor_descriptor_type(self, block, signed):
        return Type("descriptor", element=block.element, shape=block.shape, signed=bool(signed))

    def __getattr__(self, name: str):
        if name.startswith("create_") or name in ("call", "ret"):
            return self._recorder(name.removeprefix("create_"))
        if name in TYPES:
            return lambda: TYPES[name]
        if name in CONSTANTS:
            number = float if CONSTANTS[name].kind == "float" else int
            return lambda value: Handle(CONSTANTS[name], (name, number(value)))
        if name in ("get_null_value", "get_all_ones_value"):
            return lambda type: Handle(type, (name, type))
        if name == "get_fp8e4b15_ty":  # a float8 that torch does not have
            raise Unsupported("float8e4b15")
        if name.endswith("_attr") or name == "get_cache_policy":
            return lambda *args: (name, *args)
        raise AttributeError(name)

    # operations

    def record(self, name: str, args) -> Operation:
        """Puts an operation where the builder stands."""
        Builder.current = self
        args = [_argument(each) for each in args]
        if name in _CONDITIONS and (type := ir.values(args)[0].type) != BOOL:
            # in the words of MLIR's verifier, at the line where it is
            raise TypeError(f"'{_CONDITIONS[name]}' op operand #0 must be 1-bit signless integer, but got '{type}'")
        made = [Handle(each) for each in results(name, args)]
        operation = Operation(name, args, made, self.location, (Region() for _ in range(REGIONS.get(name, 0))))
        block, before = self.point
        block.operations.insert(block.operations.index(before) if before else len(block.operations), operation)
        return operation

    def _recorder(self, name: str) -> Callable:
        def create(*args, **named):
            args = (*args, *named.values())
            made = self.record(name, [args] if name in ("reduce_ret", "scan_ret") else args)
            if name in ("for_op", "if_op"):  # the front end makes the blocks of the others
                for region, (inputs, *_) in zip(made.regions, inside(made)):
                    Block(region, map(Handle, inputs))
            if name in REGIONS or name == "call":
                return made
            return made.results[0] if len(made.results) == 1 else made.results

        return create

    def create_int_cast(self, value, type, signed):
        return value if value.type == type else self.record("int_cast", [value, type, signed]).results[0]


_DATA = ir.Value, ir.Block, ir.Function, Type, bool, int, float, str


def _argument(value):
    """An argument as data: members of Triton's enumerations by name."""
    if isinstance(value, core.constexpr):
        value = value.value
    if value is None or isinstance(value, _DATA):
        return getattr(value, "kept", value)
    if isinstance(value, (list, tuple, core.tuple)):  # 3.4 gives shapes as its own tuple
        return [_argument(each) for each in value]
    return ir.Enum(type(value).__name__, value.name) if hasattr(value, "name") else value.__index__()


# libtriton's `ir`: for what reads a kernel, and for the rules of the language, which need its enumerations.
_INSTEAD = SimpleNamespace(builder=Builder, value=Handle, block_argument=Handle, context=object, module=Module,
                           type=Type, InsertPoint=object, Loc=object, location=object)  # fmt: skip
_ENUMERATIONS = SimpleNamespace(**vars(semantic.ir))
_ENUMERATIONS.make_attr = lambda numbers, context: [int(each) for each in numbers]
_ENUMERATIONS.value = lambda: None  # in Triton 3.9 an argument that is not there
