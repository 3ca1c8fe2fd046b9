"""What a reader meets first: extras, printed errors and drawings of the README and first pages."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path
from xml.etree import ElementTree

import pytest

import xgrad
from legibility import contrast
from xgrad.capture import CaptureError

ROOT = Path(__file__).parents[1]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
    "optional-dependencies"
]


def read(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


@pytest.mark.parametrize("page", ["README.md", "docs/install.md"])
def test_table_of_extras_lists_each_once(page: str) -> None:
    """Of pyproject.toml: a new extra, or one that is gone, is missing here."""
    _, _, table = read(page).partition("\n| extra |")
    rows = re.match(r"(.*\n)(\|.*\n)*", table)
    assert rows is not None
    names = [
        name
        for row in rows[0].splitlines()[2:]
        for name in re.findall(r"`([^`]+)`", row.split("|")[1])
    ]
    assert sorted(names) == sorted(EXTRAS)


#: Programs that print errors of the installation page: without some packages, and without xgrad's
#: own entry points.
REFUSED = (
    """
import sys, xgrad
sys.modules.update(dict.fromkeys(["scipy", "cupy"]))
for call in (
    lambda: xgrad.Device("cuda"),
    lambda: xgrad.special.gammaln(xgrad.ones(1)),
    lambda: xgrad.data.mnist("nowhere"),
):
    try:
        call()
    except (ImportError, OSError, xgrad.DeviceError) as error:
        print(error)
""",
    """
import importlib.metadata, xgrad
importlib.metadata.entry_points = lambda **options: ()
try:
    xgrad.ones(1)
except xgrad.DeviceError as error:
    print(error)
""",
)
#: Errors of pip and of Python on that page.
OTHERS = {
    "Package 'xgrad' requires a different Python",
    "externally-managed-environment",
    "module 'xgrad' has no attribute 'ones'",
}


def test_errors_of_the_installation_page_are_printed() -> None:
    table = read("docs/install.md").partition("## Errors")[2]
    messages = set(re.findall(r"^\| `([^`]+)` \|", table, re.MULTILINE))
    printed = ""
    for program in REFUSED:
        run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
        assert run.returncode == 0, run.stderr
        printed += run.stdout
    assert messages > OTHERS
    assert [message for message in messages - OTHERS if message not in printed] == []


def test_questions_have_answers_with_a_link() -> None:
    _, *answers = re.split(r"^### ", read("docs/faq.md"), flags=re.MULTILINE)
    assert len(answers) > 20
    for answer in answers:
        question, _, text = answer.partition("\n")
        assert question.endswith("?") and "](" in text, question


def test_answers_on_gradients_names_and_captured_steps_hold() -> None:
    x = xgrad.asarray([1.0, 2.0], requires_grad=True)
    square = x * x
    with pytest.warns(UserWarning, match="call retain_grad"):
        assert square.grad is None
    for call, other in (
        (lambda: xgrad.sum(x, dim=0), "write axis= for dim="),
        (lambda: x.sum(dim=0), "write axis= for dim="),
        (lambda: x.softmax(axis=0), "write dim= for axis="),
    ):
        with pytest.raises(TypeError, match=other):
            call()
    scale = {"k": 2.0}
    step = xgrad.capture(lambda x: x * scale["k"], verify=1)
    step(xgrad.ones(1))
    scale["k"] = 3.0
    with pytest.raises(CaptureError):
        step(xgrad.ones(1))


def test_texts_of_the_drawing_stand_on_boxes_of_their_own_color() -> None:
    """They are then legible on light and dark pages, on a package index too."""
    svg = ElementTree.parse(ROOT / "docs/images/architecture.svg").getroot()
    name = "{http://www.w3.org/2000/svg}"
    boxes = []
    for parent in svg.iter():
        for box in parent.findall(f"{name}rect"):
            fill = box.get("fill") or parent.get("fill")
            boxes.append((*[float(box.get(k, "")) for k in ("x", "y", "width", "height")], fill))
    style = svg.findtext(f"{name}style") or ""
    colors = dict(re.findall(r"(text|\.\w+) \{[^}]*fill: (#\w+)", style))
    texts = svg.findall(f"{name}text")
    assert len(texts) == 12 and len(boxes) == 9
    for text in texts:
        x, y = float(text.get("x", "")), float(text.get("y", ""))
        (box,) = [b for b in boxes if b[0] < x < b[0] + b[2] and b[1] < y < b[1] + b[3]]
        color = colors.get(f".{text.get('class')}", colors["text"])
        assert contrast(color, str(box[4])) > 4.5, text.text
        # a letter of a wide font has 0.6 of its size
        width = 0.6 * (15 if text.get("class") == "note" else 17) * len(text.text or "")
        assert x + width < box[0] + box[2], text.text


def test_pictures_of_the_first_page_need_no_other_file() -> None:
    for path in ("docs/images/architecture.svg", "docs/static/logo.svg"):
        assert ElementTree.parse(ROOT / path).getroot().get("viewBox")
        assert not re.search(r"href|url\(|@import|<image|<script", read(path)), path
