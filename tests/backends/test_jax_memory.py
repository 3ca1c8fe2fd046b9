"""JAX takes memory of a GPU when it is needed, unless the user has decided otherwise."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from xgrad_jax import MEMORY, take_memory_when_needed

OPEN = "import xgrad; xgrad.Device('jax')"
SHOW = "import os; print(os.environ.get('XLA_PYTHON_CLIENT_PREALLOCATE'))"


def shown(code: str, **variables: str) -> str:
    """Return the variable after running some code in a new process."""
    others = {name: value for name, value in os.environ.items() if name not in MEMORY}
    return subprocess.run(
        [sys.executable, "-c", f"{code}\n{SHOW}"],
        env=others | variables,
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    ).stdout.strip()


def test_memory_is_taken_when_needed() -> None:
    environment = {"HOME": "/"}
    take_memory_when_needed(environment)
    assert environment == {"HOME": "/", "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}


@pytest.mark.parametrize("name", MEMORY)
def test_choice_of_the_user_stays(name: str) -> None:
    environment = {name: "0.5"}
    take_memory_when_needed(environment)
    assert environment == {name: "0.5"}


@pytest.mark.usefixtures("jax")
def test_backend_sets_the_variable_before_jax_is_imported() -> None:
    assert shown(OPEN) == "false"
    assert shown(OPEN, XLA_PYTHON_CLIENT_PREALLOCATE="true") == "true"
    assert shown(OPEN, XLA_PYTHON_CLIENT_MEM_FRACTION=".5") == "None"
    assert shown(f"import jax; {OPEN}") == "None"


def test_other_devices_leave_the_variable() -> None:
    assert shown("import xgrad; xgrad.devices(); xgrad.Device('cpu')") == "None"
