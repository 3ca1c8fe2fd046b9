"""``xgrad summary``: the layers of a network of ``xgrad train``."""

from __future__ import annotations

from collections.abc import Sequence

import xgrad
from xgrad.cli.arguments import Parser, UsageError, checked, integer, one_of, widths
from xgrad.cli.models import MODELS, make_model
from xgrad.cli.settings import DEFAULTS
from xgrad.cli.sources import DATASET_NAMES, DATASETS
from xgrad.data import digits
from xgrad.data.catalog import SETS


def run(argv: Sequence[str]) -> int:
    """Print the layers of a network with their output shapes, parameters and memory."""
    parser = Parser(
        "summary",
        "[dataset]",
        "Print the layers of a network, for the images and classes of a data set.",
    )
    add = parser.add_argument
    add(
        "dataset",
        nargs="?",
        type=one_of(*DATASETS),
        default="mnist",
        metavar="dataset",
        help=f"{DATASET_NAMES} (default: mnist)",
    )
    names = f"{', '.join(MODELS)} (default: mlp)"
    add("--model", type=one_of(*MODELS), default="mlp", metavar="NAME", help=names)
    layers = checked(widths, bool, "widths of hidden layers such as 256,128")
    add(
        "--hidden",
        type=layers,
        metavar="N,N",
        help="mlp: widths of the hidden layers (default: as in train)",
    )
    add(
        "--batch-size",
        type=integer(1),
        default=1,
        metavar="N",
        help="images in a batch, for the memory of activations (default: 1)",
    )
    args = parser.parse_args(argv)
    if args.model != "mlp" and "hidden" in args:
        raise UsageError(f"--hidden: expected --model mlp with it, got {args.model}")
    embedded = args.dataset == "digits"
    shape, classes = (
        ((8, 8), digits().classes) if embedded else ((28, 28), len(SETS[args.dataset].class_names))
    )
    hidden = getattr(args, "hidden", DEFAULTS["digits" if embedded else "mnist"]["hidden"])
    try:
        model = make_model(args.model, shape, classes, hidden, "relu", 0.0)
        print(model.summary(xgrad.zeros((args.batch_size, shape[0] * shape[1]))))
    except (MemoryError, ValueError) as error:
        if args.model == "mlp" or isinstance(error, MemoryError):
            raise UsageError(
                f"expected --hidden and --batch-size that fit into memory: {error}"
            ) from error
        raise UsageError(f"--model {args.model}: {error}") from error
    return 0
