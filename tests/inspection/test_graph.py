"""Recorded graphs as text, DOT and SVG, folded by module, compared with the expected text."""

from __future__ import annotations

import itertools
import re
import shutil
import subprocess
from typing import Any
from xml.etree import ElementTree

import pytest

import xgrad
from helpers import check_error, leaf
from xgrad import Tensor, nn
from xgrad.inspection.drawing import Drawing

SVG = "{http://www.w3.org/2000/svg}"
EXPRESSION = """\
10 ops, 2 leaves; float32 on cpu
● mean                ()      1.001
● add                 (4, 2)
├─● x2: divide        (4, 2)
│ ● sin               (4, 2)
│ └─○ x: see tanh #1
● exp                 (4, 2)  0.6434 to 0.8656, mean 0.7545
● multiply            (4, 2)
├─○ x2: see tanh #1
● negative            (4, 2)  -0.664 to -0.3799, mean -0.522
● tanh #1             (4, 2)  0.3799 to 0.664, mean 0.522
● add                 (4, 2)
├─○ x2: b             (2,)    [0.1, 0.2]
● matmul              (4, 2)
└─○ x2: w             (3, 2)  0 to 0.3, mean 0.15"""

FOLDED = """\
4 ops, 0 leaves; float32 on cpu
● mean      ()
● 2 Linear  (5, 2)  10 parameters
● relu      (5, 4)
● 0 Linear  (5, 4)  16 parameters"""

DOT = """\
  subgraph "cluster 0" {
    label="0 Linear"; labelloc=t;…
    0 [label=<weight<br/><font point-size="9">(4, 3)</font>>, fillcolor="#e4f4e4", color="#4a9a5b"]
    1 [label=<bias<br/><font point-size="9">(4,)</font>>, fillcolor="#e4f4e4", color="#4a9a5b"]
    4 [label=<linear<br/><font point-size="9">(5, 4)</font>>, fillcolor="#dbe8fb", color="#3d86e0"]
  }
…
  0 -> 4 [edgetooltip="weight"]
  1 -> 4 [edgetooltip="bias"]
  4 -> 5 [weight=8]
"""


def expression() -> tuple[Tensor, dict[str, Tensor]]:
    w, b = leaf([[0.0, 0.1], [0.1, 0.2], [0.2, 0.3]]), leaf([0.1, 0.2])
    h = xgrad.tanh(xgrad.ones((4, 3)) @ w + b)
    return (xgrad.exp(-h * h) + xgrad.sin(h) / 2).mean(), {"w": w, "b": b}


def mlp() -> tuple[Tensor, nn.Module]:
    net = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
    return net(xgrad.ones((5, 3))).mean(), net


def matches(text: str, pattern: str) -> bool:
    return re.search(".*".join(map(re.escape, pattern.split("…"))), text, re.DOTALL) is not None


def test_expression_is_a_tree_with_names_references_and_values() -> None:
    loss, named = expression()
    assert repr(xgrad.graph(loss, values=True, **named)) == EXPRESSION
    assert "1.001" not in repr(xgrad.graph(loss))


def test_modules_are_folded_at_their_depth_and_framed_in_dot() -> None:
    loss, net = mlp()
    assert repr(xgrad.graph(loss, net, depth=1)) == FOLDED
    whole = xgrad.graph(loss, net)
    assert sum(box.kind == "leaf" for box in whole.boxes) == 4
    assert matches(whole.dot(), DOT)


def test_large_graph_is_folded_by_layers_without_cycles() -> None:
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    net = nn.Sequential(nn.Embedding(10, 8), nn.TransformerEncoder(layer, 6), nn.Linear(8, 10))
    graph = xgrad.graph(net(xgrad.zeros((2, 5), dtype="int64")).sum(), net)
    (box,) = [box for box in graph.boxes if box.title == "1.layers.3 TransformerEncoderLayer"]
    count = sum(p.size for p in layer.parameters())
    assert len(graph.boxes) <= 40 and box.parameters == count and box.ops > 10
    positions = {box: i for i, box in enumerate(graph.boxes)}
    assert all(
        positions[origin] < positions[box] for box in graph.boxes for _, origin in box.inputs
    )


def test_many_layers_are_not_folded_into_one_box() -> None:
    net = nn.ModuleDict({"layers": nn.Sequential(*[nn.Linear(2, 2) for _ in range(50)])})
    graph = xgrad.graph(net["layers"](xgrad.ones(2)).sum(), net)
    assert [box.title for box in graph.boxes] == [*[f"layers.{i} Linear" for i in range(50)], "sum"]


def test_module_called_again_is_folded_into_a_box_for_each_call() -> None:
    inner, outer = nn.Linear(3, 3), nn.Linear(3, 3)
    net = nn.ModuleDict({"inner": inner, "outer": outer})
    graph = xgrad.graph(outer(inner(outer(xgrad.ones(3)))).sum(), net, depth=1)
    assert [box.title for box in graph.boxes] == [
        "outer Linear",
        "inner Linear",
        "outer Linear",
        "sum",
    ]


def test_long_and_wide_graphs_need_no_recursion() -> None:
    x = y = leaf(0.5)
    for _ in range(3000):
        y = y * y - x
    graph = xgrad.graph(y, x=x)
    assert len(str(graph).splitlines()) > 6000 and "3001 -> 3002" in graph.dot()
    assert graph._repr_html_().startswith("<pre>"), "too large for a picture"


def test_results_of_one_op_and_other_dtypes_are_shown() -> None:
    x = leaf([[1.0, 2.0], [3.0, 4.0]], dtype="float64")
    u, s, _ = xgrad.linalg.svd(x)
    text = repr(xgrad.graph((u.sum() + s.sum()).astype("float32")))
    assert "○ x: leaf" in text and "svd" in text and "float64 on cpu" in text.splitlines()[0]
    assert text.splitlines()[1].endswith("float32 on cpu")
    parts = xgrad.unstack(x)
    assert "2 of (2,)" in repr(xgrad.graph(parts[0] * parts[1]))


def test_freed_graph_shows_what_is_left() -> None:
    loss, named = expression()
    loss.backward()
    assert repr(xgrad.graph(loss, **named)).splitlines() == [
        "1 op, 0 leaves; float32 on cpu",
        "● mean  ()",
    ]


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("xp.graph(1.0)", "TypeError: graph: expected a tensor, got float"),
        ("xp.graph(x, 3)", "TypeError: graph: expected a module after the tensor, got 3"),
        (
            "xp.graph(x.detach())",
            "ValueError: graph: expected a tensor computed …, got one without a graph",
        ),
        ("xp.graph(2 * x, depth=0)", "ValueError: graph: expected a depth of 1 or more, got 0"),
        ("xp.graph(x)", "ValueError: graph: expected a tensor computed …"),
    ],
)
def test_refused_arguments_are_named(call: str, expected: str) -> None:
    check_error(call, expected, x=leaf())


def areas(svg: str) -> list[tuple[float, ...]]:
    """Return the left, top, right and bottom ends of all boxes of a picture, and its own first."""
    root = ElementTree.fromstring(svg)
    ends = [tuple(map(float, root.attrib["viewBox"].split()))]
    for rect in root.iter(f"{SVG}rect"):
        if rect.attrib["fill"] != "none":
            ends.append(tuple(float(rect.attrib[name]) for name in ("x", "y", "width", "height")))
    return [(x, y, x + width, y + height) for x, y, width, height in ends]


def transformer() -> tuple[Tensor, Any]:
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    net = nn.Sequential(nn.TransformerEncoder(layer, 2), nn.Linear(8, 3))
    return net(xgrad.ones((2, 4, 8))).sum(), net


def shared() -> tuple[Tensor, None]:
    x = y = leaf([0.5])
    for _ in range(6):
        y = y * x - xgrad.sin(y) * x
    return y, None


@pytest.mark.parametrize("make", [lambda: (expression()[0], None), mlp, transformer, shared])
def test_boxes_of_pictures_do_not_overlap(make: Any) -> None:
    graph = xgrad.graph(*make(), values=True)
    page, *boxes = areas(graph.svg())
    assert len(boxes) == len(graph.boxes)
    for left, top, right, bottom in boxes:
        assert page[0] < left < right < page[2] and page[1] < top < bottom < page[3]
    for a, b in itertools.combinations(boxes, 2):
        assert a[2] < b[0] or b[2] < a[0] or a[3] < b[1] or b[3] < a[1]


def test_leaves_with_several_users_are_in_the_frame_of_the_first_one() -> None:
    class Scaled(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.w, self.b = nn.Parameter(leaf([1.0])), nn.Parameter(leaf([2.0]))

        def forward(self, x: Tensor) -> Tensor:
            return (self.w + self.b) * (x * self.w - self.b)

    net = nn.Sequential(nn.Linear(1, 1), Scaled(), nn.Linear(1, 1))
    root = ElementTree.fromstring(xgrad.graph(net(xgrad.ones(1)).sum(), net).svg())
    y = {element.text: float(element.attrib["y"]) for element in root.iter(f"{SVG}text")}
    assert y["0 Linear"] < y["1 Scaled"] < y["1.w"] < y["1.b"] < y["2 Linear"]


def test_picture_is_xml_for_names_with_any_characters() -> None:
    x = leaf([1.0])
    for name, text in [
        ("<&\"'>", "<&\"'>"),
        ("a\x00\ud800b", "a\ufffd\ufffdb"),
        ("日本 ü", "日本 ü"),
    ]:
        root = ElementTree.fromstring(xgrad.graph(2 * x, **{name: x}).svg())
        assert text in [element.text for element in root.iter()]


def test_picture_has_all_names_and_an_edge_for_each_input() -> None:
    loss, net = transformer()
    graph = xgrad.graph(loss, net)
    svg = graph.svg()
    root = ElementTree.fromstring(svg)
    texts = ["".join(text.itertext()) for text in root.iter("{http://www.w3.org/2000/svg}text")]
    for box in graph.boxes:
        title = box.title.removeprefix("".join(f"{part}." for part in box.path))
        assert any(text.startswith(f"{title}{box.shape}") for text in texts), title
    assert {"0 TransformerEncoder", "layers.1 TransformerEncoderLayer", "1 Linear"} <= {*texts}
    names = [name.text for name in root.iter("{http://www.w3.org/2000/svg}title")]
    assert names == [name for box in graph.boxes for name, _ in box.inputs]


def test_edges_that_skip_ops_have_lanes_that_do_not_meet() -> None:
    drawing = Drawing(xgrad.graph(shared()[0]).boxes, {})
    spans: dict[str, list[list[float]]] = {}
    for edge in drawing.edges:
        if lane := re.search(r" H([\d.]+) q6,0 6,6 V([\d.]+)", edge):
            top = float(re.search(r"M[\d.-]+,([\d.]+)", edge)[1])
            spans.setdefault(lane[1], []).append([top, float(lane[2])])
    assert len(spans) > 1
    for lane in spans.values():
        for (top, bottom), (other, _) in itertools.pairwise(sorted(lane)):
            assert other == top or other >= bottom


def test_notebooks_show_the_picture_or_the_text_of_a_large_graph() -> None:
    graph = xgrad.graph(expression()[0])
    assert graph._repr_svg_() == graph.svg() and graph.svg() in graph._repr_html_()
    x = leaf()
    for _ in range(500):
        x = x + 1
    graph = xgrad.graph(x)
    assert graph._repr_svg_() is None and graph._repr_html_().startswith("<pre>")


def test_names_of_modules_are_escaped_in_pictures() -> None:
    name = 'a"<b>&'
    model = nn.ModuleDict({name: nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))})
    loss = (model[name](xgrad.ones((1, 2))) + 1).sum()
    root = ElementTree.fromstring(xgrad.graph(loss, model, depth=9).svg())
    assert any(text.startswith(f"{name} Sequential") for text in root.itertext())


def test_names_of_modules_are_escaped_in_dot() -> None:
    name = 'a"<b>&\\'
    model = nn.ModuleDict({name: nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))})
    loss = (model[name](xgrad.ones((1, 2))) + 1).sum()
    source = xgrad.graph(loss, model, depth=9).dot()
    assert 'subgraph "cluster a&quot;&lt;b&gt;&amp;\\\\.0" {' in source
    if shutil.which("dot"):
        drawn = subprocess.run(
            ["dot", "-Tsvg"], input=source, capture_output=True, check=True, text=True
        )
        assert not drawn.stderr and "a&quot;&lt;b&gt;&amp;\\" in drawn.stdout
