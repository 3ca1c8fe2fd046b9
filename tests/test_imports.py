"""Modules loaded by imports and first uses, and the work of ``import xgrad``, within bounds.

They are counted in new processes.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

HEAVY = {
    *"cupy torch jax scipy sklearn matplotlib tqdm safetensors pandas threadpoolctl".split(),
    *"array_api_strict array_api_compat".split(),
}


def output_of(script: str) -> str:
    """Return what a script prints in a new interpreter."""
    command = [sys.executable, "-I", "-c", script]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout


def modules_after(code: str) -> set[str]:
    """Return the modules loaded after running some code in a new interpreter."""
    script = f"{code}\nimport sys, json\nprint(json.dumps(sorted(sys.modules)))"
    return set(json.loads(output_of(script).splitlines()[-1]))


def test_import_under_oo_works_without_docstrings() -> None:
    """The docstrings that the library copies to callables at import are None under -OO."""
    subprocess.run(
        [sys.executable, "-OO", "-c", "import xgrad.linalg, xgrad.special, xgrad.transforms"],
        check=True,
    )


def test_import_loads_no_array_library_but_numpy() -> None:
    loaded = modules_after("import xgrad")
    assert "numpy" in loaded
    assert not loaded & HEAVY
    assert not {name for name in loaded if name.startswith(("xgrad.cli", "xgrad.parity", "xgrad_"))}
    assert not loaded & {
        f"xgrad.{name}" for name in "data inspection io nn optim testing transforms".split()
    }
    assert not {name for name in loaded if name.startswith("xgrad.capture.captured")}


def test_scipy_is_loaded_by_special_functions_that_need_it() -> None:
    first = (
        "from xgrad import asarray, fft, special\nx = asarray(0.5)\nspecial.sinc(x);"
        " special.xlogy(x, 2.0)"
    )
    assert "scipy" not in modules_after(first)
    assert "scipy" in modules_after(f"{first}; special.erf(x)")


def test_data_sets_load_no_command_line() -> None:
    loaded = modules_after("import xgrad.data")
    assert not loaded & (HEAVY | {"argparse"}) and not {
        name for name in loaded if name.startswith("xgrad.cli")
    }


COUNTS = """
import gc, inspect, sys
import numpy

compiled, made = [], []

def note(event, args):
    if event == "compile" and args[1] == "<string>":
        compiled.append(args[0])

def counted(init):
    return lambda self, *args, **options: (made.append(self), init(self, *args, **options))[1]

sys.addaudithook(note)
for kind in (inspect.Signature, inspect.Parameter):
    kind.__init__ = counted(kind.__init__)
gc.collect()
modules, objects = set(sys.modules), len(gc.get_objects())
import xgrad
gc.collect()
objects = len(gc.get_objects()) - objects
specs = sum(type(x).__name__ == "BackwardSpec" for x in gc.get_objects())
print(len(compiled), len(made), specs, objects, *sorted(set(sys.modules) - modules))
"""


def test_import_stays_within_its_bounds_of_work() -> None:
    """Counts stay within bounds.

    With them, the import takes at most 1.3 times as long as NumPy's, as ``python -m benchmarks
    import`` measures.
    """
    compiled, signatures, specs, objects, *modules = output_of(COUNTS).split()
    assert int(compiled) <= 10, "functions are written out when they are first called"
    assert (signatures, specs) == (
        "0",
        "0",
    ), "signatures and specifications are made when they are first used"
    assert int(objects) <= 4500
    own = [name for name in modules if name.partition(".")[0] == "xgrad"]
    assert len(own) <= 56
    assert set(modules) - set(own) <= {"threading", "heapq", "_heapq", "_weakrefset"}


def test_training_on_the_cpu_loads_neither_other_backends_nor_extras() -> None:
    loaded = modules_after(
        "import xgrad\nx = xgrad.ones(3, requires_grad=True)\n(x * x).sum().backward(); x @ x\n"
        "xgrad.optim.Adam([x]).step()\nx[0, ...]; xgrad.linspace(0, 1, 3); xgrad.clip(x, 0, 1)\n"
        "xgrad.take(x, xgrad.asarray([0])); x.var(); x.to(dtype='float64')\n"
        "xgrad.nn.functional.cross_entropy(x, xgrad.asarray(0))"
    )
    assert "xgrad_numpy" in loaded
    assert not loaded & (HEAVY | {"xgrad_cupy", "xgrad_strict"})


def test_capture_is_loaded_at_its_first_use() -> None:
    step = "import xgrad\nx = xgrad.ones(3)\n"
    assert not {
        name for name in modules_after(f"{step}x + x") if name.startswith("xgrad.capture.captured")
    }
    loaded = modules_after(f"{step}xgrad.capture(lambda x: x + x)(x)")
    assert "xgrad.capture.captured" in loaded
    assert "xgrad_numpy.executor" in loaded
    assert "xgrad.capture.printer" not in loaded
    assert not loaded & HEAVY


def test_other_folders_of_the_repository_are_not_importable() -> None:
    script = (
        "import importlib.util as u; print([n for n in ('backends', 'tests', 'benchmarks') if"
        " u.find_spec(n)])"
    )
    assert output_of(script).strip() == "[]"


#: A finder as setuptools adds it, after Python's own, for a package that is installed in place.
FINDER = """
import sys
from importlib.machinery import PathFinder
from importlib.util import spec_from_file_location

class Finder:
    def find_spec(name, path=None, target=None):
        if name == "xgrad":
            return spec_from_file_location(name, {init!r})

sys.meta_path.insert(sys.meta_path.index(PathFinder) + 1, Finder)
sys.path.insert(0, "")
import xgrad
print(xgrad.__file__, hasattr(xgrad, "ones"))
"""


@pytest.mark.parametrize(("folder", "is_found"), [("xgrad-src", True), ("xgrad", False)])
def test_package_installed_in_place_is_found_above_a_clone_of_another_name(
    folder: str, is_found: bool, tmp_path: Path
) -> None:
    """CONTRIBUTING.md says how to call the folder; if both are found, it need not."""
    (tmp_path / folder).mkdir()
    init = str(ROOT / "xgrad" / "__init__.py")
    command = [sys.executable, "-I", "-c", FINDER.format(init=init)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.stdout.strip() == (f"{init} True" if is_found else "None False"), done.stderr
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert "`git clone URL xgrad-src`" in page and not (ROOT / "__init__.py").exists()


def test_package_on_the_path_is_found_above_a_clone_of_its_name(tmp_path: Path) -> None:
    (tmp_path / "xgrad").mkdir()
    code = (
        f"import sys\nsys.path[:0] = ['', {str(ROOT)!r}, {str(ROOT / 'backends')!r}]\n"
        "import xgrad\nprint(xgrad.__file__)"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-c", code], capture_output=True, text=True, cwd=tmp_path
    )
    assert done.stdout.strip() == str(ROOT / "xgrad" / "__init__.py"), done.stderr
