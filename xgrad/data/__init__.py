"""Data: datasets, batches, files, and the image sets used in the examples."""

from xgrad.data.collate import default_collate
from xgrad.data.dataset import ConcatDataset, Dataset, Subset, TensorDataset, random_split
from xgrad.data.idx import DataError, DataNotFoundError, read_idx
from xgrad.data.images import Split, TrainTestImages, digits, emnist, fashion_mnist, kmnist, mnist
from xgrad.data.loader import DataLoader
from xgrad.support import hints

__all__ = [
    "ConcatDataset",
    "DataError",
    "DataLoader",
    "DataNotFoundError",
    "Dataset",
    "Split",
    "Subset",
    "TensorDataset",
    "TrainTestImages",
    "default_collate",
    "digits",
    "emnist",
    "fashion_mnist",
    "kmnist",
    "mnist",
    "random_split",
    "read_idx",
]
hints.install(__name__)
