"""``xgrad predict``: test images, arrays, pictures, errors.

Predictions for arrays and pictures are compared with those for the same test images.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

import xgrad
import xgrad.cli
from xgrad.cli.images import read_image
from xgrad.data import digits


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    out = tmp_path_factory.mktemp("predict") / "out"
    options = ("--hidden", "32", "--epochs", "3", "--dropout", "0.1", "--device", "cpu", "--quiet")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("xgrad.cli.training_run.TrainingRun.draw", lambda self, trainer: None)
        assert xgrad.cli.main(["train", "digits", *options, "--out", str(out)]) == 0
    return out


@pytest.fixture
def copied(trained, tmp_path) -> Path:
    """A copy of the folder of the training run."""
    return Path(shutil.copytree(trained, tmp_path / "copied"))


def first(text: str) -> str:
    return text.splitlines()[0]


def refused(run, *argv) -> str:
    """Return the message of a refusal without the name of the command."""
    status, out, err = run("predict", *argv)
    assert status == 2 and not out and err.startswith("xgrad predict: ") and err.count("\n") == 1
    return err.removeprefix("xgrad predict: ")


def test_test_image_is_classified_with_its_label(run, trained):
    labels = digits().test.labels
    correct = 0
    for index in range(20):
        status, out, err = run("predict", trained, "--index", index)
        assert status == 0 and not err and first(out).endswith(f"; the label is {labels[index]}")
        correct += int(out[0]) == labels[index]
        percents = [float(line.split()[1].rstrip("%")) for line in out.splitlines()[1:]]
        assert len(percents) == 10 and sum(percents) == pytest.approx(100, abs=0.1)
        assert np.argmax(percents) == int(out[0])
    assert correct >= 17
    assert run("predict", trained) == run("predict", trained, "--index", "0")  # dropout is off


def test_array_is_classified_as_the_test_image_it_shows(run, trained):
    expected = run("predict", trained, "--index", "7").out
    image = digits().test.images[7]
    scaled = (image / 16, (image / 16).astype(np.float32))
    for array in (image, image.astype(np.int64), image.astype(np.float64), *scaled):
        np.save("image.npy", array)
        status, out, _ = run("predict", trained, "image.npy")
        assert status == 0 and first(out) == first(expected).partition(";")[0]
        assert out.splitlines()[1:] == expected.splitlines()[1:]


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
        (
            np.eye(8) * 1.01,
            "got float64 from 0.0 to 1.01 in image.npy: scale it to one of these ranges",
        ),
        (
            np.eye(8, dtype=int),
            "got int64 from 0 to 1 in image.npy: scale it to one of these ranges",
        ),
        (np.eye(8, dtype=bool), "got bool of shape (8, 8) in image.npy"),
        (np.full((8, 8), 1j), "got complex128 of shape (8, 8) in image.npy"),
        (np.full((8, 8), "x"), "got <U1 of shape (8, 8) in image.npy"),
        (b"no array", "got image.npy: "),
    ],
)
def test_invalid_array_is_refused(run, trained, image, message):
    if isinstance(image, bytes):
        Path("image.npy").write_bytes(image)
    else:
        np.save("image.npy", image)
    expected = (
        "expected a .npy file of grey values from 0 to 16, or of floats from 0 to 1, of shape (8,"
        " 8), "
    )
    assert refused(run, trained, "image.npy").startswith(expected + message)


# Pictures


@pytest.fixture
def pillow():
    return pytest.importorskip("PIL.Image", reason="needs Pillow: pip install 'xgrad[cli]'")


def drawn(index: int, size: int = 20) -> np.ndarray:
    """Return a test image as strengths from 0 to 1, each pixel a square."""
    return np.kron(digits().test.images[index] / 16, np.ones((size, size)))


PICTURES = {
    "dark on white": lambda pil, ink: pil.fromarray((255 * (1 - ink)).astype(np.uint8)),
    "light on black": lambda pil, ink: pil.fromarray((255 * ink).astype(np.uint8)),
    "blue on grey paper": lambda pil, ink: pil.fromarray(
        (200 - ink[..., None] * [180, 150, 20]).astype(np.uint8)
    ),
    "ink on transparency": lambda pil, ink: pil.fromarray(
        np.stack([0 * ink, 0 * ink, 0 * ink, 255 * ink], axis=-1).astype(np.uint8)
    ),
    "16 bits": lambda pil, ink: pil.fromarray((60000 - 50000 * ink).astype(np.uint16)),
    "palette": lambda pil, ink: pil.fromarray((255 * (1 - ink)).astype(np.uint8)).convert("P"),
}


@pytest.mark.parametrize("kind", PICTURES)
def test_picture_is_classified_as_the_test_image_it_shows(run, trained, pillow, kind):
    for index in (3, 7):
        expected = run("predict", trained, "--index", index).out.partition(";")[0]
        PICTURES[kind](pillow, drawn(index)).save("photo.png")
        values = read_image(Path("photo.png"), (8, 8), 16.0)
        assert (
            values.dtype == np.float32 and np.abs(values - digits().test.images[index]).max() < 0.2
        )
        status, out, err = run("predict", trained, "photo.png")
        assert status == 0 and not err
        name, _, probability = first(out).partition(", with a probability of ")
        assert name == expected[0]
        assert abs(float(probability.rstrip("%")) - float(expected.split()[-1].rstrip("%"))) < 2


def test_photo_has_the_values_of_the_image_it_shows_at_any_orientation(pillow, tmp_path):
    path, image = tmp_path / "photo.jpg", digits().test.images[7]
    photo = pillow.fromarray((250 - 200 * drawn(7)).astype(np.uint8))
    turned = pillow.Exif()
    turned[0x0112] = 6  # to be turned by 90 degrees
    for stored, options in ((photo, {}), (photo.rotate(90), {"exif": turned})):
        stored.save(path, quality=90, **options)
        assert np.abs(read_image(path, (8, 8), 16.0) - image).max() < 1


def test_picture_keeps_its_proportions(pillow, tmp_path):
    bar = np.full((40, 80), 255, np.uint8)
    bar[:, 20:60] = 0  # touches the edges above and below
    pillow.fromarray(bar).save(tmp_path / "photo.png")
    expected = np.zeros((8, 8))
    expected[2:6, 2:6] = 16
    assert read_image(tmp_path / "photo.png", (8, 8), 16.0).tolist() == expected.tolist()


@pytest.mark.parametrize("suffix", ["png", "jpg", "gif", "bmp", "tiff", "webp", "pgm"])
def test_picture_of_each_format_is_read(pillow, suffix, tmp_path):
    path = tmp_path / f"photo.{suffix}"
    pillow.fromarray((250 - 200 * drawn(7)).astype(np.uint8)).save(path)
    assert np.abs(read_image(path, (8, 8), 16.0) - digits().test.images[7]).max() < 1


@pytest.mark.parametrize("kind", ["eps", "pcx", "tga", "ico", "pdf"])
def test_picture_of_another_format_is_refused_unread(run, trained, pillow, kind):
    """Under the name of a PNG file: Pillow goes by the content."""
    with open("photo.png", "wb") as file:
        pillow.fromarray((250 - 200 * drawn(7)).astype(np.uint8)).save(file, kind)
    assert "got photo.png: cannot identify image file" in refused(run, trained, "photo.png")


@pytest.mark.parametrize(
    ("pixels", "message"),
    [
        (
            np.full((9, 9), 255, np.uint8),
            "got grey values from 255 to 255 on a background of 255: give one with more",
        ),
        (np.full((9, 9), 0, np.uint8), "got grey values from 0 to 0 on a background of 0"),
        (
            np.pad([[240]], 4, constant_values=250).astype(np.uint8),
            "from 240 to 250 on a background of 250",
        ),
        (
            None,
            (
                "expected a picture of the formats PNG, JPEG, GIF, BMP, TIFF, WEBP, PPM, got"
                " photo.png: cannot identify"
            ),
        ),
    ],
)
def test_invalid_picture_is_refused(run, trained, pillow, pixels, message):
    if pixels is None:
        Path("photo.png").write_bytes(b"no picture")
    else:
        pillow.fromarray(pixels).save("photo.png")
    assert message in refused(run, trained, "photo.png")


def test_picture_needs_pillow(run, trained, monkeypatch):
    Path("photo.png").write_bytes(b"")
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    message = refused(run, trained, "photo.png")
    assert message.startswith("photo.png: expected a .npy file, since Pillow")
    assert message.endswith("pip install 'xgrad[cli]'\n")


# Errors


@pytest.mark.parametrize(
    ("folder", "options", "message"),
    [
        ("nowhere", "", "expected a folder that `xgrad train` wrote, got nowhere: no such folder"),
        (
            "copied",
            "--index 360",
            "--index: expected one below 360, the number of test images, got 360",
        ),
        ("copied", "--index -1", "--index: expected an integer of 0 or more, got '-1'"),
        (
            "copied",
            "image.npy --index 3",
            "--index: expected no image with it, got image.npy: give one of the two",
        ),
        (
            "copied",
            "image.npy --data x",
            "--data: expected no image with it, got image.npy: give one of the two",
        ),
        (
            "copied",
            "--data x",
            "--data: expected a network that was trained on files, got one of digits, and 'x'",
        ),
        (
            "copied",
            "--device gpu",
            "--device: expected auto or a device that can be used, got 'gpu'",
        ),
        ("copied", "image.npy", "file not found: image.npy: expected an image"),
        ("copied", "photo.png", "file not found: photo.png: expected an image"),
        ("copied", "copied", "a folder: copied: expected an image"),
    ],
)
def test_invalid_arguments_are_refused(run, copied, folder, options, message):
    assert refused(run, folder, *options.split()).startswith(message)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"hidden": [7]},
            (
                "expected the weights of `xgrad train` in copied: config.json describes a network"
                " of 535 "
            ),
        ),
        (
            {"classes": ...},
            "expected a folder that `xgrad train` wrote, got copied: config.json lacks classes",
        ),
        (
            {"image_shape": [4, 16]},
            "expected a network for images and classes of digits, (8, 8, 10), got one for (4, ",
        ),
        (
            {"classes": 3, "class_names": None},
            "expected a network for images and classes of digits, (8, 8, 10), got",
        ),
        ({"class_names": ["a", "b"]}, "config.json has 10 classes and class_names ['a', 'b']"),
        (
            {"grey_values": {"mean": 0, "std": float("inf"), "largest": 16}},
            "config.json has grey_values",
        ),
        (
            {"grey_values": {"mean": 0, "std": 1, "largest": float("nan")}},
            "config.json has grey_values",
        ),
    ],
)
def test_inconsistent_configuration_is_refused(run, copied, changes, message):
    config = json.loads((copied / "config.json").read_text()) | changes
    config = {name: value for name, value in config.items() if value is not ...}
    (copied / "config.json").write_text(json.dumps(config))
    assert message in refused(run, "copied")


def test_run_in_or_beside_a_folder_is_suggested(run, copied):
    expected = "expected a folder that `xgrad train` wrote, got"
    meant = "did you mean copied?"
    assert refused(run, "copyed") == f"{expected} copyed: no such folder: {meant}\n"
    assert refused(run, ".") == f"{expected} .: no config.json in it: {meant}\n"
    assert refused(run, "other") == f"{expected} other: no such folder\n"
    assert run("train", "--resume", "copyed").err.endswith(f", got copyed: {meant}\n")


def test_missing_data_set_is_reported_with_advice(run, copied):
    config = json.loads((copied / "config.json").read_text()) | {"dataset": "mnist"}
    (copied / "config.json").write_text(json.dumps(config))
    status, out, err = run("predict", "copied")
    assert (status, out) == (2, "") and err.startswith("xgrad predict: MNIST was not found in ")
    assert "\nwhat to do:\n  xgrad train mnist " in err


def test_missing_and_infinite_weights_are_refused(run, copied):
    weights = xgrad.load(copied / "weights.safetensors")
    (copied / "weights.safetensors").unlink()
    assert refused(run, "copied").startswith(
        "expected the weights of `xgrad train` in copied: load: file not found"
    )
    weights["0.weight"] = weights["0.weight"] * float("nan")
    xgrad.save(weights, copied / "weights.safetensors")
    assert "that give finite probabilities, got [nan" in refused(run, "copied")
    for state in (3, [], {"0.weight": 1}):
        xgrad.save(state, copied / "weights.safetensors")
        assert refused(run, "copied").startswith(
            "expected the weights of `xgrad train` in copied: "
        )
    (copied / "config.json").write_text("{")
    assert "expected a folder that `xgrad train` wrote" in refused(run, "copied")
