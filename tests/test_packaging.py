"""The distributions: their metadata, the files of the source distribution, tags and workflows."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[1]
ADDRESS = "https://example.org/people/xgrad"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


def script(name: str) -> ModuleType:
    """Return a script of the repository as a module."""
    specification = spec_from_file_location(Path(name).stem, ROOT / name)
    assert specification is not None and specification.loader is not None
    module = module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


@pytest.fixture
def setup() -> ModuleType:
    pytest.importorskip("setuptools", minversion="77", reason="needs setuptools 77")
    return script("setup.py")


def test_links_of_the_readme_are_absolute_where_the_repository_is_known(
    setup: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_SERVER_URL", "https://example.org")
    monkeypatch.setenv("GITHUB_REPOSITORY", "people/xgrad")
    monkeypatch.setenv("GITHUB_REF_NAME", "v1.2")
    made = setup.metadata()
    text = made["long_description"]
    targets = re.findall(r"\]\(([^)\s]+)\)|(?:src|srcset|href)=\"([^\"]+)\"", text)
    links = [first or second for first, second in targets]
    relative = [link for link in links if not link.startswith(("https://", "#"))]
    assert links and not relative
    ours = [link.removeprefix(ADDRESS) for link in links if link.startswith(ADDRESS)]
    assert ours and all(
        re.match(r"/(blob|raw)/v1\.2/", link)
        and (ROOT / link.split("/", 3)[3].partition("#")[0]).exists()
        for link in ours
    )
    assert any(link.startswith("/raw/") and link.endswith(".svg") for link in ours)
    assert made["project_urls"]["Source"] == ADDRESS


def test_a_build_elsewhere_names_no_address(
    setup: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GITHUB_REPOSITORY", raising=False)
    made = setup.metadata()
    assert made["project_urls"] == {}
    assert made["long_description"] == (ROOT / "README.md").read_text("utf-8")


def test_metadata_tells_who_what_and_for_whom() -> None:
    assert PROJECT["authors"] and len(PROJECT["keywords"]) > 5
    kinds = {line.partition(" :: ")[0] for line in PROJECT["classifiers"]}
    assert kinds >= {
        "Development Status",
        "Intended Audience",
        "Operating System",
        "Programming Language",
        "Topic",
        "Typing",
    }


def test_source_distribution_has_all_files_of_the_repository(tmp_path: Path) -> None:
    pytest.importorskip("setuptools", minversion="77", reason="needs setuptools 77")
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("needs the repository's git, which lists its files")
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    tracked = {name for name in listed.stdout.splitlines() if (ROOT / name).is_file()}
    for name in tracked:  # a copy, since setuptools writes beside the source
        target = tmp_path / "source" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, target)
    build = "from setuptools.build_meta import build_sdist; build_sdist('dist')"
    subprocess.run(
        [sys.executable, "-c", build], cwd=tmp_path / "source", capture_output=True, check=True
    )
    (archive,) = (tmp_path / "source" / "dist").iterdir()
    with tarfile.open(archive) as file:
        packed = {name.partition("/")[2] for name in file.getnames()}
    assert not tracked - packed


@pytest.mark.parametrize(
    ("tag", "wrong"), [("v{}", None), ("{}", "the tag"), ("v{}.1", "pyproject.toml")]
)
def test_a_tag_must_be_the_version(tag: str, wrong: str | None) -> None:
    release = script("tests/release.py")
    found = release.main(tag.format(PROJECT["version"]))
    assert (found is None) if wrong is None else wrong in found


def test_workflow_runs_what_contributing_says_that_ci_does() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    workflow = (ROOT / ".github/workflows/ci.yml").read_text("utf-8")
    contributing = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    (matrix,) = re.findall(r"target:\n((?: +- .+\n)+)", workflow)
    called = set(re.sub(r"- |\n", " ", matrix).split()) | {"docs"}
    table = re.findall(r"^\| (`make .+?) \|", contributing, re.MULTILINE)
    told = {
        target
        for cell in table
        for command in re.findall(r"`make ([^`]+)`", cell)
        for target in command.split()
        if "=" not in target
    }
    # the matrix of systems and Pythons runs `make test`
    assert told == called | {"test"}
    assert all(re.search(rf"^{target}:", makefile, re.MULTILINE) for target in told)
