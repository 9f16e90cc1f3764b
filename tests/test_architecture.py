"""The sizes that keep the library readable; the arrows are import-linter's, in pyproject.toml."""

import ast
import io
import statistics
import tokenize
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "pursuit"
MEDIAN, NINETIETH_PERCENTILE, LONGEST_FUNCTION, LONGEST_FILE = 5, 17, 40, 400
SILENT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}
Documented = ast.FunctionDef | ast.ClassDef | ast.Module


@cache
def code_lines(text):
    """Give the numbers of the lines that hold code: no comment, blank line or docstring."""
    lines = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in SILENT:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, Documented) and ast.get_docstring(node) is not None:
            lines.difference_update(range(node.body[0].lineno, node.body[0].end_lineno + 1))
    return lines


def function_sizes(text):
    """Give the number of code lines of each function, by its name and line."""
    lines = code_lines(text)
    return {
        f"{node.name}:{node.lineno}": len(
            lines.intersection(range(node.lineno, node.end_lineno + 1))
        )
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef)
    }


@pytest.fixture(scope="module")
def sources():
    return {
        str(path.relative_to(PACKAGE)): path.read_text("utf-8") for path in PACKAGE.rglob("*.py")
    }


def test_functions_and_files_are_short(sources):
    sizes = {
        f"{name}:{function}": size
        for name, text in sources.items()
        for function, size in function_sizes(text).items()
    }
    assert {name: size for name, size in sizes.items() if size > LONGEST_FUNCTION} == {}
    assert statistics.median(sizes.values()) <= MEDIAN
    assert statistics.quantiles(sizes.values(), n=10)[-1] <= NINETIETH_PERCENTILE
    files = {name: len(code_lines(text)) for name, text in sources.items()}
    assert {name: size for name, size in files.items() if size > LONGEST_FILE} == {}


def test_code_lines_leave_out_docstrings_comments_and_blank_lines():
    text = (
        '"""Doc."""\n\ndef f(a,\n      b):\n    """Doc\n\n    more.\n    """\n'
        '    # why\n\n    return """\n\n"""\n'
    )
    assert function_sizes(text) == {"f:3": 5}


def test_no_constructor_only_stores(sources):
    def only_stores(node):
        body = [statement for statement in node.body if not isinstance(statement, ast.Expr)]
        return bool(body) and all(
            isinstance(statement, ast.Assign)
            and isinstance(statement.value, ast.Name)
            and ast.unparse(statement.targets[0]) == f"self.{statement.value.id}"
            for statement in body
        )

    found = [
        f"{name}:{node.lineno}"
        for name, text in sources.items()
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef) and node.name == "__init__" and only_stores(node)
    ]
    assert found == []


def test_every_package_says_what_lives_there(sources):
    heads = {name: ast.get_docstring(ast.parse(text)) for name, text in sources.items()}
    assert [name for name, head in heads.items() if not head or "TODO" in head] == []
