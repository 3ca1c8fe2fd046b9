"""Data: datasets, batches, files, and the image sets used in the examples."""

from xgrad.data import transforms
from xgrad.data.collate import default_collate, default_convert
from xgrad.data.dataset import (
    ChainDataset,
    ConcatDataset,
    Dataset,
    IterableDataset,
    StackDataset,
    Subset,
    TensorDataset,
    random_split,
)
from xgrad.data.grids import make_grid, save_image
from xgrad.data.idx import DataError, DataNotFoundError, read_idx
from xgrad.data.images import Split, TrainTestImages, digits, emnist, fashion_mnist, kmnist, mnist
from xgrad.data.loader import DataLoader
from xgrad.data.samplers import (
    BatchSampler,
    DistributedSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)
from xgrad.data.workers import get_worker_info
from xgrad.support import hints

__all__ = [
    "BatchSampler",
    "ChainDataset",
    "ConcatDataset",
    "DataError",
    "DataLoader",
    "DataNotFoundError",
    "Dataset",
    "DistributedSampler",
    "IterableDataset",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "Split",
    "StackDataset",
    "Subset",
    "SubsetRandomSampler",
    "TensorDataset",
    "TrainTestImages",
    "WeightedRandomSampler",
    "default_collate",
    "default_convert",
    "digits",
    "emnist",
    "fashion_mnist",
    "get_worker_info",
    "kmnist",
    "make_grid",
    "mnist",
    "random_split",
    "read_idx",
    "save_image",
    "transforms",
]
hints.install(__name__)
