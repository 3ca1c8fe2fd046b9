"""Batches of tensors, gathered on the device where the tensors are."""

from collections.abc import Iterator

from xgrad.backend import DeviceError
from xgrad.ops import take
from xgrad.random import Generator, randperm
from xgrad.tensor import Tensor


class TensorDataset:
    """Tensors whose first axes run over the same samples.

    Parameters
    ----------
    *tensors : Tensor
        At least one; of one length, and on one device.

    Raises
    ------
    ValueError
        If there is no tensor, or their lengths differ.
    DeviceError
        If they are on several devices.

    Examples
    --------
    >>> import xgrad
    >>> pairs = xgrad.data.TensorDataset(xgrad.arange(3), xgrad.asarray([5, 0, 4]))
    >>> len(pairs), pairs[2]
    (3, (Tensor(2), Tensor(4)))
    """

    def __init__(self, *tensors: Tensor) -> None:
        for x in tensors:
            if not isinstance(x, Tensor):
                raise TypeError(f"TensorDataset: expected tensors, got {type(x).__name__}: make one with xgrad.asarray")
        shapes = [x.shape for x in tensors]
        if not tensors or () in shapes or len({shape[0] for shape in shapes}) > 1:
            raise ValueError(
                "TensorDataset: expected one or more tensors whose first axes have one length, got shapes "
                f"{shapes}: give each a row for every sample"
            )
        if len({x.device for x in tensors}) > 1:
            places = ", ".join(str(x.device) for x in tensors)
            raise DeviceError(
                f"TensorDataset: expected tensors of one device, got {places}: move them with .to(device)"
            )
        self.tensors = tensors

    def __len__(self) -> int:
        return len(self.tensors[0])

    def __getitem__(self, key: int | slice | Tensor) -> tuple[Tensor, ...]:
        """Return what each tensor has at a key: of one sample, of a slice, or of a tensor of indices."""
        if isinstance(key, Tensor):
            return tuple([take(x, key, axis=0) for x in self.tensors])
        return tuple([x[key, ...] for x in self.tensors])


class DataLoader:
    """Batches of a `TensorDataset`, in order or shuffled anew at each iteration.

    Batches are made on the device of the tensors; nothing passes through the host. Equal seeds give equal
    batches on every device.

    Parameters
    ----------
    dataset : TensorDataset
        What to draw from.
    batch_size : int, default 1
        The number of samples in a batch.
    shuffle : bool, default False
        Whether every iteration draws a new order.
    drop_last : bool, default False
        Whether to leave out a last batch of fewer samples.
    generator : xgrad.random.Generator, optional
        What draws the order; by default the one that `xgrad.manual_seed` seeds.

    Yields
    ------
    tuple of Tensor
        A batch of each of the tensors.

    Raises
    ------
    TypeError, ValueError
        If an argument is none of the above.

    Examples
    --------
    >>> import xgrad
    >>> pairs = xgrad.data.TensorDataset(xgrad.arange(5), xgrad.zeros((5, 2)))
    >>> [x.tolist() for x, _ in xgrad.data.DataLoader(pairs, batch_size=2)]
    [[0, 1], [2, 3], [4]]
    """

    def __init__(
        self,
        dataset: TensorDataset,
        batch_size: int = 1,
        shuffle: bool = False,
        drop_last: bool = False,
        generator: Generator | None = None,
    ) -> None:
        if not isinstance(dataset, TensorDataset):
            raise TypeError(
                f"DataLoader: expected a TensorDataset, got {type(dataset).__name__}: "
                "make one with xgrad.data.TensorDataset(images, labels)"
            )
        if isinstance(batch_size, bool) or not isinstance(batch_size, int) or batch_size < 1:
            raise ValueError(f"DataLoader: expected a batch_size of 1 or more, got {batch_size!r}")
        self.dataset = dataset
        self.batch_size = batch_size
        self.shuffle = shuffle
        self.drop_last = drop_last
        self.generator = generator

    def __len__(self) -> int:
        """Return the number of batches of one iteration."""
        size = len(self.dataset)
        return size // self.batch_size if self.drop_last else -(-size // self.batch_size)

    def __iter__(self) -> Iterator[tuple[Tensor, ...]]:
        size, device = len(self.dataset), self.dataset.tensors[0].device
        order = randperm(size, device=device, generator=self.generator) if self.shuffle else None
        for start in range(0, len(self) * self.batch_size, self.batch_size):
            rows = slice(start, min(start + self.batch_size, size))  # the standard knows no slices beyond the end
            yield self.dataset[rows if order is None else order[rows]]
