"""A cell before the check that takes IPython over.

Must: earn nothing and leave the folder of canaries as it is.
"""

HOOKS = """
import ast
from IPython import get_ipython
shell = get_ipython()
shell.ast_transformers.append(type("Strip", (ast.NodeTransformer,), {"visit_Expr": lambda self, node: ast.Pass()})())
shell.input_transformers_post.append(lambda lines: ["pass"])
shell.events.register("pre_run_cell", lambda info: open("@CANARY@/hooked", "w"))
open("@CANARY@/executed", "w")
"""


def attack(notebook, cell):
    new = {"cell_type": "code", "id": "hooks", "metadata": {}, "source": HOOKS, "outputs": [], "execution_count": 1}
    notebook["cells"].insert(0, new)
