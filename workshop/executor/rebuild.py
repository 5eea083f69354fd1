"""From a Program to what a GPU runs: the same calls again, of Triton's own builder, and the stages of its compiler.

So a record of a launch compiles to what the learner wrote, and the learner's Python is not needed for it.
"""

from __future__ import annotations

import hashlib
import inspect
import json
from types import SimpleNamespace

import triton
from triton._C import libtriton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource, make_backend
from triton.language import core

from . import program as ir
from .front_end import SPACES
from .program import TYPES, Block, Enum, Operation, Program, Type, Value, to_data

PTX_VERSION = 84  # of the target's assembler, which would be asked for it where it is not given
_SIMPLE = {type: method for method, type in TYPES.items()}


def compile_program(program: Program | ASTSource, target: GPUTarget, options: dict | None = None, stop: str = ""):
    """What the compiler makes of the program for a target that need not be here, and the metadata. No file is written.

    program: or a source of Triton's own. stop: the last stage, such as "ttir", "ttgir", "llir" or "ptx". "": all; those
    after "llir" start other programs. Raises what the compiler raises.
    """
    source = _Source(program, {}) if isinstance(program, Program) else program
    backend = make_backend(target)
    version = {"ptx_version": PTX_VERSION} if target.backend == "cuda" and stop else {}
    parsed = backend.parse_options({**version, **(options or {})})
    context = libtriton.ir.context()
    libtriton.ir.load_dialects(context)
    backend.load_dialects(context)
    given = [target, parsed, backend.get_codegen_implementation(parsed), backend.get_module_map(), context]
    made = source.make_ir(*given[-len(inspect.signature(source.make_ir).parameters) :])
    steps, metadata = {}, {"target": target, **vars(parsed)}
    backend.add_stages(steps, parsed, source.language)
    for name, step in steps.items():
        made = step(made, metadata)
        if name == stop:
            break
    return made, metadata


def compiled(program: Program, signature: dict, options: dict | None = None):
    """The program as a kernel of this machine's GPU: `compiled(...)[grid](*args)` launches it, with all arguments.

    signature: the types of the parameters by name. Triton's own cache of compiled kernels keeps it. Returns a
    triton.compiler.CompiledKernel.
    """
    return triton.compile(_Source(program, signature), options=options)


class _Source(ASTSource):
    """What triton.compile takes for a function under @triton.jit: a module of libtriton's is made of the program."""

    def __init__(self, program: Program, signature: dict):
        name = program.kernel.name
        function = SimpleNamespace(__name__=name, arg_names=list(signature), launch_metadata=None)
        super().__init__(function, signature, {})
        self.program = program

    def hash(self) -> str:
        what = [to_data(self.program), list(map(str, self.signature.values())), triton.__version__]
        return hashlib.sha256(json.dumps(what).encode()).hexdigest()

    def make_ir(self, *given, context=None):
        """given: what this Triton's compiler passes; the context comes last."""
        return _Replay(self.program, context or given[-1]).module


class _Replay:
    def __init__(self, program: Program, context):
        self.program, self.context = program, context
        self.values: dict[Value, object] = {}
        self.blocks: dict[Block, object] = {}
        self.builder = self.new_builder()
        self.module = self.builder.create_module()
        self.module.context = context  # which lives as long
        self.functions = {each.name: self.declared(each) for each in program.functions.values()}
        for each in program.functions.values():
            self.body(each.blocks)

    def new_builder(self):
        builder = libtriton.ir.builder(self.context)
        builder.set_loc("", 0, 0)
        return builder

    def declared(self, function: ir.Function):
        """The function with its blocks, still empty."""
        type = self.type(function.type)
        self.builder = build = self.new_builder()  # one that stands in no other function
        visibility = "public" if function is self.program.kernel else "private"
        made = build.get_or_insert_function(self.module, function.name, type, visibility, function.noinline)
        self.module.push_back(made)
        for number, promises in function.promises.items():
            for name, value in promises.items():
                made.set_arg_attr(number, name, value)
        entry = made.add_entry_block()
        self.stands_for(function.entry, entry)
        build.set_insertion_point_to_start(entry)
        for block in function.blocks[1:]:
            other = build.create_block()
            for each in block.arguments:
                other.add_argument(self.type(each.type))
            self.stands_for(block, other)
        return made

    def stands_for(self, block: Block, made):
        self.blocks[block] = made
        for i, each in enumerate(block.arguments):
            self.values[each] = made.arg(i)

    def body(self, region: list[Block]):
        for block in region:
            # Not to the end: the builder may have put a terminator there.
            self.builder.set_insertion_point_to_start(self.blocks[block])
            for operation in block.operations:
                self.replay(operation)

    def replay(self, operation: Operation):
        self.builder.set_loc(operation.location.file, operation.location.line, 0)
        if operation.name == "promise":
            value, name, numbers = operation.args
            self.argument(value).set_attr(name, libtriton.ir.make_attr(numbers, self.context))
            return
        name, args = operation.name, [self.argument(each) for each in operation.args]
        if name in ("reduce_ret", "scan_ret"):
            args = args[0]
        elif name == "atomic_poll" and args[2] is None:
            args[2] = libtriton.ir.value()
        made = getattr(self.builder, name if name in ("call", "ret") else f"create_{name}")(*args)
        for key, (attribute, *values) in operation.attributes.items():
            made.set_attr(key, getattr(self.builder, attribute)(*values))
        if operation.regions:
            point = self.builder.get_insertion_point()
            self.regions(operation, made)
            self.builder.restore_insertion_point(point)
        if hasattr(made, "get_result"):
            made = [made.get_result(i) for i in range(len(operation.results))]
        elif len(operation.results) == 1:
            made = [made]
        self.values.update(zip(operation.results, made or []))

    def regions(self, operation: Operation, made):
        if operation.name == "for_op":
            blocks = [made.get_body(0)]
        elif operation.name == "if_op":
            blocks = [made.get_then_block(), made.get_else_block()]
        else:
            of = [made.get_before(), made.get_after()] if operation.name == "while_op" else [made.get_region(0)]
            types = [[self.type(v.type) for v in region[0].arguments] for region in operation.regions]
            blocks = map(self.builder.create_block_with_parent, of, types)
        for region, block in zip(operation.regions, blocks):
            self.stands_for(region[0], block)
            self.body(region)

    def argument(self, given):
        if isinstance(given, Value):
            return self.constant(*given.constant) if given.constant else self.values[given]
        if isinstance(given, Type):
            return self.type(given)
        if isinstance(given, Enum):
            return getattr(getattr(libtriton.ir, given.kind), given.name)
        if isinstance(given, Block):
            return self.blocks[given]
        if isinstance(given, ir.Function):
            return self.functions[given.name]
        if isinstance(given, list):
            if given and given[0] == "get_cache_policy":  # Triton 3.9
                return self.builder.get_cache_policy(*map(self.argument, given[1:]))
            return [self.argument(each) for each in given]
        return given

    def constant(self, method: str, argument):
        """A constant where it is used: each use makes its own, and the compiler makes one of them."""
        argument = bool(argument) if method == "get_int1" else self.argument(argument)
        return getattr(self.builder, method)(argument)

    def type(self, type: Type):
        build = self.builder
        if type in _SIMPLE:
            return getattr(build, _SIMPLE[type])()
        if type.kind == "function":
            return build.get_function_ty(*([self.type(each) for each in part] for part in type.parts))
        if type.kind == "pointer":
            named = isinstance(core.pointer_type(core.int8).address_space, str)  # Triton 3.9
            space = next(name for name, n in SPACES.items() if n == type.space) if named else type.space
            return build.get_ptr_ty(self.type(type.element), space)
        block = build.get_block_ty(self.type(type.element), list(type.shape))
        return build.create_tensor_descriptor_type(block, type.signed) if type.kind == "descriptor" else block
