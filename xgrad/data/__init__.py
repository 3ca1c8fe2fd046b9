"""Data: files, batches, and the image sets that the examples learn from."""

from xgrad import hints
from xgrad.data.datasets import Dataset, Split, digits, mnist
from xgrad.data.idx import DataError, DataNotFoundError, read_idx
from xgrad.data.loader import DataLoader, TensorDataset

__all__ = [
    "DataError",
    "DataLoader",
    "DataNotFoundError",
    "Dataset",
    "Split",
    "TensorDataset",
    "digits",
    "mnist",
    "read_idx",
]
hints.install(__name__)
