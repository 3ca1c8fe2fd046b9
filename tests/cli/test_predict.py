import json
import sys

import numpy as np
import pytest

import xgrad
import xgrad.cli
from xgrad.cli.images import read_image
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
    scaled = {"of 0 to 1": image / 16, "of 0 to 1, short": (image / 16).astype(np.float32)}
    for array in (image, image.astype(np.int64), image.astype(np.float64), *scaled.values()):
        np.save("image.npy", array)
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
        (np.zeros((8, 8, 1)), "got float64 of shape (8, 8, 1) in image.npy"),
        (np.full((8, 8), 17), "got values from 17 to 17 in image.npy"),
        (np.linspace(-1, 1, 64).reshape(8, 8), "got values from -1.0 to 1.0 in image.npy"),
        (np.full((8, 8), np.nan), "got values from nan to nan in image.npy"),
        (np.where(np.eye(8), np.nan, 1), "got values from nan to nan in image.npy"),
        (np.where(np.eye(8), np.inf, 1), "got values from 1.0 to inf in image.npy"),
        (np.eye(8) * 1.01, "got float64 from 0.0 to 1.01 in image.npy, which is neither: scale it"),
        (np.eye(8, dtype=int), "got int64 from 0 to 1 in image.npy, which is neither: scale it"),
        (np.eye(8, dtype=bool), "got bool of shape (8, 8) in image.npy"),
        (np.full((8, 8), 1j), "got complex128 of shape (8, 8) in image.npy"),
        (np.full((8, 8), "x"), "got <U1 of shape (8, 8) in image.npy"),
        (b"no array", "got image.npy: "),
    ],
)
def test_what_is_no_image_is_refused(run, trained, tmp_path, image, message):
    if isinstance(image, bytes):
        (tmp_path / "image.npy").write_bytes(image)
    else:
        np.save("image.npy", image)
    status, out, err = run("predict", trained, "image.npy")
    expected = (
        "xgrad predict: expected a .npy file of grey values from 0 to 16, or of floats from 0 to 1, of shape (8, 8)"
    )
    assert status == 2 and not out and err.startswith(f"{expected}, {message}") and err.count("\n") == 1


def test_a_missing_image_is_not_found(run, trained, tmp_path):
    for name in ("image.npy", "photo.png"):
        assert run("predict", trained, name).err.startswith(f"xgrad predict: file not found: {name}: expected an image")
    (tmp_path / "folder").mkdir()
    assert run("predict", trained, "folder").err.startswith("xgrad predict: a folder: folder: expected an image")


# Pictures


@pytest.fixture
def pillow():
    return pytest.importorskip("PIL.Image", reason="needs Pillow: pip install 'xgrad[cli]'")


def drawn(index: int, size: int = 20) -> np.ndarray:
    """A test image as strengths from 0 to 1, each pixel a square."""
    return np.kron(digits().test.images[index] / 16, np.ones((size, size)))


PICTURES = {
    "dark on white": lambda pil, ink: pil.fromarray((255 * (1 - ink)).astype(np.uint8)),
    "light on black": lambda pil, ink: pil.fromarray((255 * ink).astype(np.uint8)),
    "blue on grey paper": lambda pil, ink: pil.fromarray((200 - ink[..., None] * [180, 150, 20]).astype(np.uint8)),
    "ink on transparency": lambda pil, ink: pil.fromarray(
        np.stack([0 * ink, 0 * ink, 0 * ink, 255 * ink], axis=-1).astype(np.uint8)
    ),
    "16 bits": lambda pil, ink: pil.fromarray((60000 - 50000 * ink).astype(np.uint16)),
    "palette": lambda pil, ink: pil.fromarray((255 * (1 - ink)).astype(np.uint8)).convert("P"),
}


@pytest.mark.parametrize("kind", PICTURES)
def test_a_picture_is_read_as_the_training_set_has_it(run, trained, pillow, kind):
    for index in (3, 7):
        expected = run("predict", trained, "--index", index).out.partition(";")[0]
        PICTURES[kind](pillow, drawn(index)).save("photo.png")
        status, out, err = run("predict", trained, "photo.png")
        assert status == 0 and not err
        name, _, chance = first(out).partition(", with a probability of ")
        assert name == expected[0] and abs(float(chance.rstrip("%")) - float(expected.split()[-1].rstrip("%"))) < 2


def test_a_picture_has_the_values_of_the_image_that_it_shows(pillow, tmp_path):
    image = digits().test.images[7]
    for kind in PICTURES:
        PICTURES[kind](pillow, drawn(7)).save(tmp_path / "photo.png")
        read = read_image(tmp_path / "photo.png", (8, 8), 16.0)
        assert read.dtype == np.float32 and np.abs(read - image).max() < 0.2
    photo = pillow.fromarray((250 - 200 * drawn(7)).astype(np.uint8))
    photo.save(tmp_path / "photo.jpg", quality=90)
    assert np.abs(read_image(tmp_path / "photo.jpg", (8, 8), 16.0) - image).max() < 1
    turned = pillow.Exif()
    turned[0x0112] = 6  # the camera was turned: what is stored has to be turned by 90 degrees
    photo.rotate(90).save(tmp_path / "photo.jpg", quality=90, exif=turned)
    assert np.abs(read_image(tmp_path / "photo.jpg", (8, 8), 16.0) - image).max() < 1


def test_a_picture_keeps_its_proportions(pillow, tmp_path):
    bar = np.full((40, 80), 255, np.uint8)
    bar[:, 20:60] = 0  # touches the edges above and below
    pillow.fromarray(bar).save(tmp_path / "photo.png")
    read = read_image(tmp_path / "photo.png", (8, 8), 16.0)
    expected = np.zeros((8, 8))
    expected[2:6, 2:6] = 16
    assert read.tolist() == expected.tolist()


@pytest.mark.parametrize(
    ("pixels", "message"),
    [
        (np.full((9, 9), 255, np.uint8), "got grey values from 255 to 255 on a background of 255: give one with more"),
        (np.full((9, 9), 0, np.uint8), "got grey values from 0 to 0 on a background of 0"),
        (np.pad([[240]], 4, constant_values=250).astype(np.uint8), "from 240 to 250 on a background of 250"),
        (None, "expected a picture that Pillow can read, got photo.png: cannot identify image file"),
    ],
)
def test_what_is_no_picture_is_refused(run, trained, pillow, tmp_path, pixels, message):
    if pixels is None:
        (tmp_path / "photo.png").write_bytes(b"no picture")
    else:
        pillow.fromarray(pixels).save("photo.png")
    status, out, err = run("predict", trained, "photo.png")
    assert status == 2 and not out and message in err and err.count("\n") == 1


def test_a_picture_needs_pillow(run, trained, tmp_path, monkeypatch):
    (tmp_path / "photo.png").write_bytes(b"")
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    status, out, err = run("predict", trained, "photo.png")
    assert status == 2 and not out and err.startswith("xgrad predict: photo.png: expected a .npy file, since Pillow")
    assert err.endswith("pip install 'xgrad[cli]'\n")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("", "expected a folder that `xgrad train` wrote, got nowhere: [Errno 2]"),
        ("--index 360", "--index: expected one below 360, the number of test images, got 360"),
        ("--index -1", "--index: expected an integer of 0 or more, got '-1'"),
        ("image.npy --index 3", "--index: expected no image with it, got image.npy: give one of the two"),
        ("image.npy --data x", "--data: expected no image with it, got image.npy: give one of the two"),
        ("--data x", "--data: expected a network that was trained on files, got one of digits, and 'x'"),
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


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"image_shape": [4, 16]},
            "expected a network for images and classes of digits, (8, 8, 10), got one for (4, 16",
        ),
        ({"classes": 3, "class_names": None}, "expected a network for images and classes of digits, (8, 8, 10), got"),
        ({"class_names": ["a", "b"]}, "config.json has 10 classes and class_names ['a', 'b']"),
        ({"grey_values": {"mean": 0, "std": float("inf"), "largest": 16}}, "config.json has grey_values"),
        ({"grey_values": {"mean": 0, "std": 1, "largest": float("nan")}}, "config.json has grey_values"),
    ],
)
def test_configurations_that_do_not_fit_are_refused(run, trained, tmp_path, changes, message):
    config = json.loads((trained / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | changes))
    (tmp_path / "weights.safetensors").write_bytes((trained / "weights.safetensors").read_bytes())
    status, out, err = run("predict", tmp_path)
    assert status == 2 and not out and message in err and err.count("\n") == 1


def test_weights_that_are_not_finite_are_refused(run, trained, tmp_path):
    weights = xgrad.load(trained / "weights.safetensors")
    weights["0.weight"] = weights["0.weight"] * float("nan")
    xgrad.save(weights, tmp_path / "weights.safetensors")
    (tmp_path / "config.json").write_bytes((trained / "config.json").read_bytes())
    status, out, err = run("predict", tmp_path)
    assert status == 2 and not out and "that give finite probabilities, got [nan" in err and err.count("\n") == 1


def test_mnist_images_need_mnist(run, trained, tmp_path):
    config = json.loads((trained / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, "dataset": "mnist"}))
    status, _, err = run("predict", tmp_path)
    assert status == 2 and err.startswith("xgrad predict: MNIST: files not found: ") and err.count("\n") == 1
