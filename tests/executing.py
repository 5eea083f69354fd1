"""For tests of the executor: kernels out of text, and launches that are watched."""

import contextlib
import linecache
import types

from workshop.executor.launch import bind, execute, grid_of, lowered, specialise
from workshop.executor.memory import Watch

HEADER = "import triton\nimport triton.language as tl\n\n@triton.jit\n"
_memory = None


class Memory:
    """The launches inside one `watch`."""

    def __init__(self, watch: Watch):
        self.launches, self.watch = [], watch

    @property
    def races(self):
        return [race for launch in self.launches for race in launch.races]

    @property
    def undefined(self):
        return [each for launch in self.launches for each in launch.undefined]

    @property
    def bytes_loaded(self):
        return sum(launch.bytes_loaded for launch in self.launches)

    @property
    def bytes_stored(self):
        return sum(launch.bytes_stored for launch in self.launches)


@contextlib.contextmanager
def watch(**how):
    """how: more fields of workshop.executor.memory.Watch."""
    global _memory
    _memory = Memory(Watch(counts=True, races=True, **how))
    try:
        yield _memory
    finally:
        _memory = None


def launch(kernel, grid, args: tuple, kwargs: dict, watch: Watch):
    """What `kernel[grid](*args, **kwargs)` does, for a function under @triton.jit."""
    bound, options = bind(kernel, args, kwargs)
    special = specialise(kernel, bound)
    program = lowered(kernel, special, options)
    return execute(program, special.arguments, grid_of(grid, bound), watch, name=kernel.fn.__name__)


class Kernel:
    """A jit function that the executor runs."""

    def __init__(self, jit):
        self.jit = jit

    def __getitem__(self, grid):
        def run(*args, **kwargs):
            if _memory is None:
                return launch(self.jit, grid, args, kwargs, Watch())
            _memory.launches.append(launch(self.jit, grid, args, kwargs, _memory.watch))

        return run


def load(source, name=None):
    """The names that a module of this text defines; its kernels are as the module has them."""
    name = f"<kernel {name or hash(source)}>"
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    module = types.ModuleType("kernels")
    exec(compile(source, name, "exec"), module.__dict__)
    return vars(module)


def kernel(source, *substitutions, name=None):
    """The last kernel of a text, after replacements of parts of it."""
    for old, new in substitutions:
        assert old in source
        source = source.replace(old, new)
    found = load(source)
    names = [each for each, value in found.items() if type(value).__name__ == "JITFunction"]
    return Kernel(found[name or names[-1]])


def body(*lines, parameters="x, y, n, B: tl.constexpr", name="k"):
    """A kernel of these lines."""
    return kernel(HEADER + f"def {name}({parameters}):\n" + "".join(f"    {line}\n" for line in lines))
