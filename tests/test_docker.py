"""The Dockerfile, as far as it can be tested without Docker: files, extras, versions and user.

It is compared with the repository and pyproject.toml.
"""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
UBUNTU = {"24.04": (3, 12)}  # its Python


def instructions(name: str) -> list[str]:
    """Return the arguments of the instructions of a name, such as COPY."""
    lines = re.sub(r"\s*\\\n\s*", " ", (ROOT / "Dockerfile").read_text("utf-8")).splitlines()
    return [line.removeprefix(f"{name} ") for line in lines if line.startswith(f"{name} ")]


def copied() -> dict[str, str]:
    """Return the targets of copied files and folders by their source."""
    arguments = [line.split() for line in instructions("COPY")]
    return {source: target for *sources, target in arguments for source in sources}


def installed() -> tuple[str, set[str]]:
    """Return the folder that pip installs, and the extras."""
    (found,) = re.findall(r"pip install .*'(.+)\[(.+)\]'", "\n".join(instructions("RUN")))
    return found[0], set(found[1].split(","))


def test_copied_files_exist_and_are_those_that_are_not_ignored() -> None:
    kept = {
        line[1:]
        for line in (ROOT / ".dockerignore").read_text("utf-8").splitlines()
        if line.startswith("!")
    }
    assert copied().keys() == kept and all((ROOT / source).exists() for source in kept)


def test_copied_files_are_enough_to_install_the_package() -> None:
    project = PROJECT["project"]
    folders = PROJECT["tool"]["setuptools"]["packages"]["find"]["where"]
    needed = {"pyproject.toml", "setup.py", "README.md", "xgrad", *folders} - {"."}
    needed |= set(project["license-files"])
    folder, _ = installed()
    assert needed <= copied().keys()
    assert all(
        target in (f"{folder}/", f"{folder}/{source}") for source, target in copied().items()
    )


def test_extras_exist_and_are_for_the_cuda_of_the_image() -> None:
    (image,) = instructions("FROM")
    ((cuda, ubuntu),) = re.findall(r"^nvidia/cuda:(\d+)\.\d+\.\d+-runtime-ubuntu([\d.]+)$", image)
    extras = PROJECT["project"]["optional-dependencies"]
    _, chosen = installed()
    assert chosen <= extras.keys() and f"cuda{cuda}" in chosen
    assert extras[f"cuda{cuda}"][0].startswith(f"cupy-cuda{cuda}x")
    oldest = PROJECT["project"]["requires-python"].removeprefix(">=")
    assert UBUNTU[ubuntu] >= tuple(map(int, oldest.split(".")))


def test_default_command_is_info_as_a_user_without_rights() -> None:
    (user,), (command,) = instructions("USER"), instructions("CMD")
    assert user != "root" and f"useradd --create-home {user}" in instructions("RUN")[0]
    program, argument = json.loads(command)
    assert program in PROJECT["project"]["scripts"] and argument == "info"
