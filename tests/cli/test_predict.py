import json

import numpy as np
import pytest

import xgrad.cli
from xgrad.data import digits


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    out = tmp_path_factory.mktemp("predict") / "out"
    options = ("--hidden", "32", "--epochs", "3", "--device", "cpu", "--quiet")
    assert xgrad.cli.main(["train", "digits", *options, "--out", str(out)]) == 0
    return out


def first(text: str) -> str:
    return text.splitlines()[0]


def test_a_test_image_is_named_with_its_label(run, trained):
    labels = digits().test.labels
    right = 0
    for index in range(20):
        status, out, err = run("predict", trained, "--index", index)
        assert status == 0 and not err and first(out).endswith(f"; the label is {labels[index]}")
        right += int(out[0]) == labels[index]
        chances = [float(line.split()[1].rstrip("%")) for line in out.splitlines()[1:]]
        assert len(chances) == 10 and sum(chances) == pytest.approx(100, abs=0.1)
        assert np.argmax(chances) == int(out[0])
    assert right >= 17
    assert run("predict", trained) == run("predict", trained, "--index", "0")


def test_an_image_of_a_file_is_named(run, trained, tmp_path):
    expected = run("predict", trained, "--index", "7").out
    image = digits().test.images[7]
    for dtype in (np.uint8, np.float64):
        np.save("image.npy", image.astype(dtype))
        status, out, _ = run("predict", trained, "image.npy")
        assert status == 0 and first(out) == first(expected).partition(";")[0]
        assert out.splitlines()[1:] == expected.splitlines()[1:]


def test_a_network_with_dropout_leaves_nothing_out(run, tmp_path):
    options = ("--hidden", "32,16", "--dropout", "0.2", "--epochs", "1", "--device", "cpu", "--quiet", "--out", "out")
    assert run("train", "digits", *options).status == 0
    assert run("predict", "out").status == 0
    assert run("predict", "out") == run("predict", "out")


@pytest.mark.parametrize(
    ("image", "message"),
    [
        (np.zeros((28, 28)), "got float64 of shape (28, 28) in image.npy"),
        (np.full((8, 8), 17), "got values from 17 to 17 in image.npy"),
        (np.full((8, 8), np.nan), "got values from nan to nan in image.npy"),
        (np.full((8, 8), "x"), "got <U1 of shape (8, 8) in image.npy"),
        (b"no array", "got image.npy: "),
        (None, "got image.npy: [Errno 2] No such file or directory: 'image.npy'"),
    ],
)
def test_what_is_no_image_is_refused(run, trained, tmp_path, image, message):
    if isinstance(image, bytes):
        (tmp_path / "image.npy").write_bytes(image)
    elif image is not None:
        np.save("image.npy", image)
    status, out, err = run("predict", trained, "image.npy")
    expected = "xgrad predict: expected a .npy file of grey values from 0 to 16, of shape (8, 8), "
    assert status == 2 and not out and err.startswith(expected + message) and err.count("\n") == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("", "expected a folder that `xgrad train` wrote, got nowhere: [Errno 2]"),
        ("--index 360", "--index: expected one below 360, the number of test images, got 360"),
        ("--index -1", "--index: expected an integer of 0 or more, got '-1'"),
        ("--device gpu", "--device: expected auto or a device that can be used, got 'gpu'"),
    ],
)
def test_what_cannot_be_is_refused(run, trained, options, message):
    status, out, err = run("predict", trained if options else "nowhere", *options.split())
    assert status == 2 and not out and err.startswith(f"xgrad predict: {message}") and err.count("\n") == 1


def test_folders_that_do_not_fit_are_refused(run, trained, tmp_path):
    config = json.loads((trained / "config.json").read_text())
    (tmp_path / "config.json").write_text("{")
    assert "expected a folder that `xgrad train` wrote" in run("predict", tmp_path).err
    (tmp_path / "config.json").write_text(json.dumps({**config, "hidden": [7]}))
    assert run("predict", tmp_path).err.startswith("xgrad predict: expected the weights of `xgrad train` in ")
    (tmp_path / "weights.safetensors").write_bytes((trained / "weights.safetensors").read_bytes())
    status, _, err = run("predict", tmp_path)
    assert status == 2 and err.count("\n") == 1 and "shape" in err
    del config["classes"]
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert "config.json lacks classes" in run("predict", tmp_path).err


def test_mnist_images_need_mnist(run, trained, tmp_path):
    config = json.loads((trained / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, "dataset": "mnist"}))
    status, _, err = run("predict", tmp_path)
    assert status == 2 and err.startswith("xgrad predict: MNIST: files not found: ") and err.count("\n") == 1
