"""Runs the examples of the README and the docstrings, and checks the declared types."""

import doctest
import importlib.metadata
import pathlib
import re
import subprocess
import sys

import pytest

import blocked_bloom
import blocked_bloom.polars

README = pathlib.Path(__file__).parents[1] / "README.md"


def test_docstrings():
    names = {name: getattr(blocked_bloom, name) for name in blocked_bloom.__all__}
    parser, runner = doctest.DocTestParser(), doctest.DocTestRunner()
    classes = [
        names["Filter"], names["BloomFilter"], names["ScalableBloomFilter"], names["StoredFilter"],
    ]
    # Public classes derive from unnamed ones, which have the docstrings.
    classes = [base for cls in classes for base in cls.__mro__[:-1]]
    objects = [
        blocked_bloom, blocked_bloom.polars, blocked_bloom.polars.Bloom.contains, *names.values(),
        *(member for cls in classes for member in vars(cls).values()),
    ]
    examples = 0
    for thing in objects:
        test = parser.get_doctest(
            getattr(thing, "__doc__", None) or "", dict(names), repr(thing), None, 0
        )
        examples += len(test.examples)
        runner.run(test)
    assert runner.failures == 0 and examples > 20
    for cls in classes:
        for name, member in vars(cls).items():
            assert name.startswith("_") or member.__doc__, f"{cls.__name__}.{name} has no docstring"


def test_readme(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```python\n(.*?)^```", README.read_text(), re.S | re.M)
    assert len(blocks) == 5
    for block in blocks:
        exec(compile(block, "README.md", "exec"), {"__name__": "readme"})


def test_stubs():
    pytest.importorskip("mypy")
    check = [sys.executable, "-m", "mypy.stubtest", "blocked_bloom", "--ignore-missing-stub"]
    result = subprocess.run(check, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr


def test_type_checkers_know_the_expressions(tmp_path):
    pytest.importorskip("mypy")
    program = tmp_path / "program.py"
    program.write_text(
        "import polars as pl\n"
        "from blocked_bloom import BloomFilter\n"
        "from blocked_bloom.polars import Bloom\n"
        "found: pl.Expr = Bloom(pl.col('id')).contains(BloomFilter(10))\n"
        "wrong: int = Bloom(pl.col('id')).contains('a filter')\n"
    )
    check = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--cache-dir"]
    result = subprocess.run([*check, tmp_path, program], capture_output=True, text=True)
    lines = [line for line in result.stdout.splitlines() if "error:" in line]
    assert len(lines) == 2 and all(":5:" in line for line in lines), result.stdout + result.stderr
    assert "[assignment]" in result.stdout and "[arg-type]" in result.stdout


def test_ruff():
    pytest.importorskip("ruff")
    result = subprocess.run(
        [sys.executable, "-m", "ruff", "check", "--no-cache", README.parent],
        capture_output=True, text=True,
    )
    assert result.returncode == 0, result.stdout + result.stderr


def test_package_metadata():
    metadata = importlib.metadata.metadata("blocked-bloom")
    assert metadata["License-Expression"] == "MIT OR Apache-2.0"
    assert set(metadata.get_all("License-File")) == {"LICENSE-APACHE", "LICENSE-MIT"}
    files = {file.name: file for file in importlib.metadata.files("blocked-bloom")}
    for name in metadata.get_all("License-File"):
        assert files[name].read_text() == (README.parents[2] / name).read_text()
    urls = [line.split(", ")[0] for line in metadata.get_all("Project-URL")]
    assert {"Repository", "Documentation", "Changelog"} <= {*urls}
    assert metadata["Author-email"] or metadata["Author"]
    # Package indexes show the README without the repository's files.
    for picture in re.findall(r"!\[[^]]*\]\(([^)]*)\)", metadata.get_payload()):
        assert picture.startswith("https://")
