"""The examples of the README and of the docstrings run; the package has the types it declares."""

import doctest
import pathlib
import re
import subprocess
import sys

import pytest

import blocked_bloom

README = pathlib.Path(__file__).parents[1] / "README.md"


def test_docstrings():
    names = {name: getattr(blocked_bloom, name) for name in blocked_bloom.__all__}
    parser, runner = doctest.DocTestParser(), doctest.DocTestRunner()
    classes = [
        names["Filter"], names["BloomFilter"], names["ScalableBloomFilter"], names["StoredFilter"],
    ]
    # Those whose names are not in the package have what the public ones are derived from.
    classes = [base for cls in classes for base in cls.__mro__[:-1]]
    objects = [
        blocked_bloom,
        *names.values(),
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
    assert len(blocks) == 4
    for block in blocks:
        exec(compile(block, "README.md", "exec"), {"__name__": "readme"})


def test_stubs():
    pytest.importorskip("mypy")
    check = [sys.executable, "-m", "mypy.stubtest", "blocked_bloom", "--ignore-missing-stub"]
    result = subprocess.run(check, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr
