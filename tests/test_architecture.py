"""The arrows and the sizes that keep the library readable.

Every rule is a function from the parsed sources to a list of complaints, so that the
same function can be shown to complain about a bad snippet and to pass a good one.
"""

import ast
import io
import sys
import tokenize
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "pursuit"

PAPERS = (
    "matching_pursuit",
    "sparse_kernel_pca",
    "sparse_kernel_cca",
    "sparse_large_margin",
    "reduced_set",
    "compression",
    "relevance_vector",
    "convex_network",
    "local_neighbors",
    "parzen",
    "local_gaussian",
    "classical",
)

# From the ground up. A module imports from strictly lower layers only; so no two
# modules of one layer know each other, and no algorithm imports another.
LAYERS = (
    ("backend", "docstrings"),
    ("parameters", "drawing", "simplex", "leaves", "equal_rows"),
    ("kernels", "losses", "stopping", "bounds", "calibration", "blocks"),
    ("nearest",),
    ("atoms", "local_covariance", "pivoting", "margin", "fitted_machines"),
    ("dictionary", "log_density"),
    ("density_selection",),
    ("gram", "newton", "deflation", "reduction", "box_quadratic"),
    ("expansion", "evidence", "basis_matrix"),
    ("prediction", "path_losses", "gauss_seidel"),
    ("estimator",),
    ("search",),
    ("gradient_pursuit",),
    ("folds",),
    ("path_estimator", "landmarks", "basis_selection"),
    PAPERS,
    ("displays", "image_display", "density_display", "datasets", "tables", "value_tree"),
    ("model_file",),
    ("__init__",),
    ("table_model", "machine_file"),
    ("table_fit",),
    ("demo", "command_options"),
    ("compress_command",),
    ("cli",),
)
HEIGHT = {module: height for height, layer in enumerate(LAYERS) for module in layer}

# scikit-learn itself requires joblib and threadpoolctl.
RUNTIME = {"numpy", "scipy", "sklearn", "joblib", "threadpoolctl"}

# Everything else that may be imported, and the modules that may do so.
HOMES = {
    "torch": {"backend"},
    "matplotlib": {"image_display", "density_display", "displays", "drawing"},
    "argparse": {"cli"},
    "click": {"cli"},
    "typer": {"cli"},
    "rich": {"cli", "command_options"},
    "skops": {"table_model", "machine_file"},
    "skrub": {"tables", "table_model"},
    "pandas": set(),
    "polars": {"tables", "table_model", "machine_file"},
}

MAY_PRINT = {"cli"}
LONGEST_FUNCTION, NINETIETH_PERCENTILE, MEDIAN = 60, 25, 8
LONGEST_FILE = 400
MOST_ARGUMENTS = 8

# Tests that look at the whole and not at one module.
WHOLE = {"architecture", "documents", "estimators"}

Function = ast.FunctionDef | ast.AsyncFunctionDef
Documented = Function | ast.ClassDef | ast.Module


@dataclass(frozen=True)
class Source:
    """One module of the package: its dotted name inside the package, and its text."""

    module: str
    text: str

    @cached_property
    def tree(self):
        return ast.parse(self.text)

    @cached_property
    def code_lines(self):
        """Numbers of the lines that hold code: no comment, no blank line, no docstring."""
        silent = {
            tokenize.COMMENT,
            tokenize.NL,
            tokenize.NEWLINE,
            tokenize.INDENT,
            tokenize.DEDENT,
            tokenize.ENDMARKER,
        }
        lines = set()
        for token in tokenize.generate_tokens(io.StringIO(self.text).readline):
            if token.type not in silent:
                lines.update(range(token.start[0], token.end[0] + 1))
        for node in ast.walk(self.tree):
            if isinstance(node, Documented) and ast.get_docstring(node) is not None:
                docstring = node.body[0]
                lines.difference_update(range(docstring.lineno, docstring.end_lineno + 1))
        return lines

    @cached_property
    def functions(self):
        return [node for node in ast.walk(self.tree) if isinstance(node, Function)]

    def code_size(self, node):
        return len(self.code_lines.intersection(range(node.lineno, node.end_lineno + 1)))


@cache
def package_sources():
    def dotted(path):
        return ".".join(path.relative_to(PACKAGE).with_suffix("").parts)

    return [Source(dotted(path), path.read_text("utf-8")) for path in PACKAGE.rglob("*.py")]


# Imports


@dataclass(frozen=True)
class Import:
    """One imported name: `module` (dotted), `name` (None for a whole module), and where."""

    module: str
    name: str | None
    line: int

    @property
    def parts(self):
        return (*self.module.split("."), *(() if self.name is None else (self.name,)))


def named_by_text(call):
    """Give the module that `import_module("...")` or `__import__("...")` loads, or None."""
    called = call.func.attr if isinstance(call.func, ast.Attribute) else None
    called = call.func.id if isinstance(call.func, ast.Name) else called
    if called not in {"import_module", "__import__"} or not call.args:
        return None
    target = call.args[0]
    return target.value if isinstance(target, ast.Constant) else None


def imports(tree):
    """Give every import below a node, wherever it stands and however it is written."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (Import(alias.name, None, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            inside = ".".join(filter(None, ("pursuit" if node.level else "", node.module)))
            yield from (Import(inside, alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.Call) and named_by_text(node):
            module = named_by_text(node)
            module = "pursuit" + module.rstrip(".") if module.startswith(".") else module
            yield Import(module, None, node.lineno)


def module_reached(item):
    """Give the module of the package that an import reaches, or None for another package."""
    package, *rest = item.parts
    if package != "pursuit":
        return None
    return rest[0] if rest and rest[0] in HEIGHT else "__init__"


def unknown_modules(sources):
    return [
        f"{source.module}: unknown module; give it a layer in tests/test_architecture.py"
        for source in sources
        if source.module not in HEIGHT
    ]


def upward_imports(sources):
    return [
        f"{source.module}:{item.line} imports {reached}, which is in no lower layer"
        for source in sources
        for item in imports(source.tree)
        if (reached := module_reached(item)) is not None
        and HEIGHT[reached] >= HEIGHT.get(source.module, -1)
    ]


def foreign_imports(sources):
    free = RUNTIME | set(sys.stdlib_module_names) | {"pursuit"}
    complaints = []
    for source in sources:
        for item in imports(source.tree):
            package = item.parts[0]
            homes = HOMES.get(package, set())
            if source.module not in homes and (package in HOMES or package not in free):
                complaints.append(f"{source.module}:{item.line} may not import {package}")
    return complaints


def checked_for_types_only(node):
    test = getattr(node, "test", None)
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(test)


def imported_on_load(tree):
    """Give the imports that run when the module itself is imported."""
    waiting = list(tree.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, Function | ast.Lambda) or checked_for_types_only(node):
            continue
        if isinstance(node, ast.Import | ast.ImportFrom | ast.Call):
            yield from imports(ast.Module([ast.Expr(node)], []))
        else:
            waiting.extend(ast.iter_child_nodes(node))


def eager_imports(sources, lazy=("matplotlib", "torch")):
    return [
        f"{source.module}:{item.line} imports {item.parts[0]} outside a function"
        for source in sources
        for item in imported_on_load(source.tree)
        if item.parts[0] in lazy
    ]


def is_private(name):
    return name.startswith("_") and not (name.startswith("__") and name.endswith("__"))


def names_bound_to_sklearn(tree):
    """Give the names that stand for scikit-learn's modules, classes and functions."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] == "sklearn":
                    names.add(alias.asname or "sklearn")
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "sklearn":
            names.update(alias.asname or alias.name for alias in node.names)
    return names


def root_name(node):
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


def private_sklearn(sources):
    complaints = []
    for source in sources:
        for item in imports(source.tree):
            if item.parts[0] == "sklearn" and any(map(is_private, item.parts)):
                complaints.append(f"{source.module}:{item.line} imports {'.'.join(item.parts)}")
        bound = names_bound_to_sklearn(source.tree)
        for node in ast.walk(source.tree):
            if isinstance(node, ast.Attribute) and is_private(node.attr):
                if root_name(node) in bound:
                    complaints.append(f"{source.module}:{node.lineno} uses {ast.unparse(node)}")
    return complaints


# Sizes


def rank(values, share):
    """Give the smallest value that at least this share of the values does not exceed."""
    values = sorted(values)
    return values[max(0, -(-len(values) * share // 100) - 1)]


def long_functions(sources):
    return [
        f"{source.module}:{node.lineno} {node.name} has {size} code lines, above {LONGEST_FUNCTION}"
        for source in sources
        for node in source.functions
        if (size := source.code_size(node)) > LONGEST_FUNCTION
    ]


def long_in_general(sources):
    sizes = [source.code_size(node) for source in sources for node in source.functions]
    limits = {90: NINETIETH_PERCENTILE, 50: MEDIAN}
    return [
        f"{share} % of the functions need {rank(sizes, share)} code lines, above {limit}"
        for share, limit in limits.items()
        if sizes and rank(sizes, share) > limit
    ]


def long_files(sources):
    return [
        f"{source.module} has {len(source.code_lines)} code lines, above {LONGEST_FILE}"
        for source in sources
        if len(source.code_lines) > LONGEST_FILE
    ]


def base_names(node):
    return {
        base.attr if isinstance(base, ast.Attribute) else root_name(base) for base in node.bases
    }


def estimator_classes(sources):
    """Give the names of the classes that descend from scikit-learn's BaseEstimator."""
    found = {"BaseEstimator"}
    classes = [
        node
        for source in sources
        for node in ast.walk(source.tree)
        if isinstance(node, ast.ClassDef)
    ]
    for _ in classes:
        found |= {node.name for node in classes if base_names(node) & found}
    return found


def argument_names(function):
    arguments = function.args
    named = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    stars = [star for star in (arguments.vararg, arguments.kwarg) if star is not None]
    return [argument.arg for argument in (*named, *stars)]


def crowded_functions(sources):
    estimators = estimator_classes(sources)
    complaints = []
    for source in sources:
        methods = {
            method: owner.name
            for owner in ast.walk(source.tree)
            if isinstance(owner, ast.ClassDef)
            for method in owner.body
            if isinstance(method, Function)
        }
        for node in source.functions:
            owner = methods.get(node)
            names = argument_names(node)
            bound = owner is not None and names[:1] in (["self"], ["cls"])
            if node.name == "__init__" and owner in estimators:
                continue
            if len(names) - bound > MOST_ARGUMENTS:
                complaints.append(f"{source.module}:{node.lineno} {node.name}: too many arguments")
    return complaints


# Manners


def printing(sources):
    def prints(node):
        if isinstance(node, ast.Call):
            return isinstance(node.func, ast.Name) and node.func.id in {"print", "pprint"}
        return isinstance(node, ast.Attribute) and ast.unparse(node) in {"sys.stdout", "sys.stderr"}

    return [
        f"{source.module}:{node.lineno} prints"
        for source in sources
        if source.module not in MAY_PRINT
        for node in ast.walk(source.tree)
        if prints(node)
    ]


def public_members(node):
    for child in node.body:
        if isinstance(child, Function | ast.ClassDef) and not child.name.startswith("_"):
            yield child
            if isinstance(child, ast.ClassDef):
                yield from public_members(child)


def undocumented(sources):
    complaints = []
    for source in sources:
        if ast.get_docstring(source.tree) is None:
            complaints.append(f"{source.module} has no docstring")
        for node in public_members(source.tree):
            if ast.get_docstring(node) is None:
                complaints.append(f"{source.module}:{node.lineno} {node.name} has no docstring")
    return complaints


def unpaired(modules, tests, programs=()):
    """Compare the package's modules with the tests' names, both without their affixes.

    `programs` are the packages beside the library that may have a test, too.
    """
    tests = set(tests) - WHOLE
    modules = set(modules) - {"__init__"}
    without_module = [
        f"test_{name}.py has no module" for name in sorted(tests - modules - set(programs))
    ]
    return without_module + [f"{name}.py has no test" for name in sorted(modules - tests)]


RULES = (
    unknown_modules,
    upward_imports,
    foreign_imports,
    eager_imports,
    private_sklearn,
    long_functions,
    long_in_general,
    long_files,
    crowded_functions,
    printing,
    undocumented,
)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_the_package_keeps_the_rule(rule):
    sources = package_sources()
    assert sources, f"no source file below {PACKAGE}"
    assert rule(sources) == []


def test_modules_and_tests_are_paired():
    modules = [path.stem for path in PACKAGE.glob("*.py")]
    tests = [path.stem.removeprefix("test_") for path in Path(__file__).parent.glob("test_*.py")]
    programs = [path.parent.name for path in ROOT.glob("*/__init__.py")]
    assert unpaired(modules, tests, programs) == []


def body(n_lines):
    return "def f():\n    '''Do.'''\n" + "    x = 1\n" * n_lines


BAD = [
    (unknown_modules, "helpers", ""),
    (unknown_modules, "kernels.rbf", ""),
    (upward_imports, "kernels", "from pursuit.blocks import map_rows"),
    (upward_imports, "kernels", "from pursuit.losses import SquaredError"),
    (upward_imports, "kernels", "def f():\n    from pursuit import expansion"),
    (upward_imports, "kernels", "from .pivoting import pivot"),
    (upward_imports, "kernels", "from . import pivoting"),
    (upward_imports, "kernels", "import pursuit.margin as m"),
    (upward_imports, "kernels", "import importlib\nimportlib.import_module('pursuit.margin')"),
    (upward_imports, "kernels", "import importlib\nimportlib.import_module('.margin', 'pursuit')"),
    (upward_imports, "expansion", "import pursuit"),
    (upward_imports, "expansion", "from pursuit import load"),
    (upward_imports, "parzen", "from pursuit.local_neighbors import neighbors"),
    (upward_imports, "__init__", "from pursuit.cli import main"),
    (foreign_imports, "expansion", "import torch"),
    (foreign_imports, "cli", "from matplotlib import pyplot"),
    (foreign_imports, "datasets", "import typer"),
    (foreign_imports, "datasets", "import argparse"),
    (foreign_imports, "kernels", "def f():\n    import numba"),
    (eager_imports, "displays", "import matplotlib.pyplot as plt"),
    (eager_imports, "displays", "try:\n    from matplotlib import pyplot\nexcept ImportError: ..."),
    (eager_imports, "displays", "class D:\n    import matplotlib"),
    (eager_imports, "backend", "import importlib\nt = importlib.import_module('torch')"),
    (private_sklearn, "kernels", "from sklearn._config import config_context"),
    (private_sklearn, "kernels", "from sklearn.utils import _safe_indexing"),
    (private_sklearn, "kernels", "import sklearn.utils._param_validation"),
    (private_sklearn, "kernels", "import sklearn.utils as u\nu._safe_indexing(1)"),
    (private_sklearn, "kernels", "from sklearn.svm import SVC\nSVC._impl"),
    (long_functions, "kernels", body(60)),
    (long_in_general, "kernels", body(8)),
    (long_in_general, "kernels", body(1) * 8 + body(25) * 2),
    (long_files, "kernels", "x = 1\n" * 401),
    (crowded_functions, "kernels", "def f(a, b, c, d, e, *, f, g, h, i): ..."),
    (crowded_functions, "kernels", "def f(a, b, c, d, e, f, g, *h, **i): ..."),
    (crowded_functions, "kernels", "class A:\n    def __init__(self, a,b,c,d,e,f,g,h,i): ..."),
    (
        crowded_functions,
        "kernels",
        "class A(BaseEstimator):\n    def f(self, a,b,c,d,e,f,g,h,i): ...",
    ),
    (printing, "kernels", "def f():\n    print('here')"),
    (printing, "kernels", "import sys\nsys.stdout.write('here')"),
    (undocumented, "kernels", "x = 1"),
    (undocumented, "kernels", "'''Doc.'''\ndef f(): ..."),
    (undocumented, "kernels", "'''Doc.'''\nclass A:\n    '''Doc.'''\n    def f(self): ..."),
]

GOOD = [
    (unknown_modules, "reduced_set", ""),
    (upward_imports, "expansion", "from pursuit import kernels\nfrom pursuit.blocks import x"),
    (upward_imports, "cli", "from pursuit import load, displays"),
    (upward_imports, "kernels", "import numpy\nfrom scipy import linalg"),
    (foreign_imports, "backend", "def f():\n    import torch"),
    (foreign_imports, "kernels", "import json\nimport numpy\nimport scipy.linalg\nimport sklearn"),
    (eager_imports, "displays", "def f():\n    import matplotlib.pyplot as plt"),
    (eager_imports, "displays", "if TYPE_CHECKING:\n    from matplotlib.axes import Axes"),
    (
        private_sklearn,
        "kernels",
        "import sklearn\nfrom sklearn.base import clone\nsklearn.__version__",
    ),
    (private_sklearn, "kernels", "from numpy import _core\nself._private"),
    (long_functions, "kernels", body(59) + "\n    # a remark\n" * 9),
    (long_in_general, "kernels", body(7) * 8 + body(24) + body(59)),
    (long_files, "kernels", "x = 1\n" * 400 + "\n# a remark\n"),
    (crowded_functions, "kernels", "def f(a, b, c, d, *, e, f, g, h): ..."),
    (crowded_functions, "kernels", "class A:\n    def f(self, a,b,c,d,e,f,g,h): ..."),
    (
        crowded_functions,
        "kernels",
        "class A(base.BaseEstimator): ...\n"
        "class B(A):\n    def __init__(self, a,b,c,d,e,f,g,h,i): ...",
    ),
    (printing, "cli", "print('here')"),
    (printing, "kernels", "printed = 'print(here)'"),
    (undocumented, "kernels", "'''Doc.'''\ndef f():\n    '''Doc.'''\ndef _g(): ..."),
]


@pytest.mark.parametrize(("rule", "module", "text"), BAD)
def test_a_rule_complains_about_a_bad_module(rule, module, text):
    assert len(rule([Source(module, text)])) == 1


@pytest.mark.parametrize(("rule", "module", "text"), GOOD)
def test_a_rule_passes_a_good_module(rule, module, text):
    assert rule([Source(module, text)]) == []


def test_every_rule_has_a_bad_and_a_good_module():
    assert {rule for rule, _, _ in BAD} == {rule for rule, _, _ in GOOD} == set(RULES)


def test_estimators_are_found_across_modules():
    sources = [
        Source("matching_pursuit", "class B(A):\n    def __init__(self, a,b,c,d,e,f,g,h,i): ..."),
        Source("expansion", "class A(BaseEstimator): ..."),
    ]
    assert crowded_functions(sources) == []


def test_code_lines_leave_out_docstrings_comments_and_blank_lines():
    text = (
        '"""Doc."""\n\ndef f(a,\n      b):\n    """Doc\n\n    more.\n    """\n'
        '    # why\n\n    return """\n\n"""\n'
    )
    source = Source("kernels", text)
    assert source.code_size(source.functions[0]) == 5


def test_rank_is_an_order_statistic():
    assert [rank(range(1, 11), share) for share in (50, 90, 91, 100)] == [5, 9, 10, 10]
    assert rank([7], 50) == 7


def test_unpaired_names_both_sides():
    assert unpaired(["__init__", "kernels"], ["kernels", "architecture", "estimators"]) == []
    assert unpaired(["kernels"], ["kernels", "benchmarks"], ["benchmarks"]) == []
    assert unpaired(["kernels"], ["kernel"]) == [
        "test_kernel.py has no module",
        "kernels.py has no test",
    ]
