"""Data: files, and the image sets that the examples learn from."""

from xgrad.data.datasets import Dataset, Split, digits, mnist
from xgrad.data.idx import DataError, DataNotFoundError, read_idx

__all__ = ["DataError", "DataNotFoundError", "Dataset", "Split", "digits", "mnist", "read_idx"]
