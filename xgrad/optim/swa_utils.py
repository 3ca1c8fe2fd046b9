"""Averages of a model's parameters over the steps of a training run."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from typing import Any

from xgrad.backend.device import Device
from xgrad.core.modes import no_grad
from xgrad.core.tensor import Tensor
from xgrad.nn import Module
from xgrad.ops import where, zeros
from xgrad.support import hints
from xgrad.support.hints import shown

__all__ = ["AveragedModel", "get_ema_avg_fn", "get_swa_avg_fn", "update_bn"]
hints.install(__name__)

# A function of the average, the new value, and the number of averaged values
Average = Callable[[Tensor, Tensor, Tensor], Tensor]


def get_ema_avg_fn(decay: float = 0.999) -> Average:
    r"""Return a function that computes an exponential moving average [1]_, for `AveragedModel`.

    Parameters
    ----------
    decay : float, default 0.999
        The weight of the average so far, from 0 to 1.

    Returns
    -------
    callable
        A function of the average a, the current value x, and the number of averaged values.

    Raises
    ------
    ValueError
        If the decay is not from 0 to 1.

    Notes
    -----
    .. math:: a \gets \mathrm{decay}\, a + (1 - \mathrm{decay})\, x

    References
    ----------
    .. [1] B. T. Polyak, A. B. Juditsky, "Acceleration of stochastic approximation by averaging",
       SIAM Journal on Control and Optimization 30, 1992.

    Examples
    --------
    >>> import xgrad
    >>> average = xgrad.optim.swa_utils.get_ema_avg_fn(0.75)
    >>> average(xgrad.asarray(4.0), xgrad.asarray(8.0), xgrad.asarray(1))
    Tensor(5.)
    """
    if not 0 <= decay <= 1:
        raise ValueError(f"get_ema_avg_fn: expected a decay from 0 to 1, got {shown(decay)}")
    return lambda averaged, current, num_averaged: averaged + (1 - decay) * (current - averaged)


def get_swa_avg_fn() -> Average:
    r"""Return a function that computes the mean of all values, for `AveragedModel`.

    This is the mean that stochastic weight averaging uses [1]_.

    Returns
    -------
    callable
        A function of the average a, the current value x, and the number n of averaged values.

    Notes
    -----
    .. math:: a \gets a + \frac{x - a}{n + 1}

    References
    ----------
    .. [1] P. Izmailov et al., "Averaging weights leads to wider optima and better generalization",
       UAI 2018.

    Examples
    --------
    >>> import xgrad
    >>> mean = xgrad.optim.swa_utils.get_swa_avg_fn()
    >>> mean(xgrad.asarray(4.0), xgrad.asarray(7.0), xgrad.asarray(2))
    Tensor(5.)
    """
    return lambda averaged, current, num_averaged: (
        averaged + (current - averaged) / (num_averaged + 1).astype(averaged.dtype)
    )


class AveragedModel(Module):
    """A copy of a model with averaged parameters.

    The average is taken over the calls of `update_parameters`.

    Integer buffers are copied, and floating ones too unless `use_buffers`. The attributes and the
    ``state_dict()`` have PyTorch's names: ``module`` is the copy, and ``n_averaged`` the number of
    averaged values.

    Parameters
    ----------
    model : Module
        The model; it is not changed.
    device : str or Device, optional
        By default the `default_device`.
    avg_fn : callable, optional
        A function that returns the new average of a tensor, given the average, the current tensor,
        and the number of averaged values as a tensor; by default the result of `get_swa_avg_fn`.
    use_buffers : bool, default False
        Whether floating buffers, such as running statistics, are averaged as well.

    Raises
    ------
    TypeError
        If `model` is no module, or `avg_fn` is no function.

    Examples
    --------
    >>> import xgrad
    >>> model = xgrad.nn.Linear(2, 1)
    >>> average = xgrad.optim.swa_utils.get_ema_avg_fn(0.9)
    >>> averaged = xgrad.optim.swa_utils.AveragedModel(model, avg_fn=average)
    >>> for _ in range(3):  # after each step of the optimizer
    ...     averaged.update_parameters(model)
    >>> averaged(xgrad.ones((5, 2))).shape
    (5, 1)
    """

    n_averaged: Tensor

    def __init__(
        self,
        model: Module,
        device: str | Device | None = None,
        avg_fn: Average | None = None,
        use_buffers: bool = False,
    ) -> None:
        super().__init__()
        if not isinstance(model, Module):
            raise TypeError(f"AveragedModel: expected a module, got {shown(model)}")
        if avg_fn is not None and not callable(avg_fn):
            raise TypeError(f"AveragedModel: expected a function for avg_fn, got {shown(avg_fn)}")
        self.module = copy.deepcopy(model)
        first = next(self.module.parameters(), None)
        place = device if device is not None or first is None else first.device
        if device is not None:
            self.module.to(device)
        self.register_buffer("n_averaged", zeros((), dtype="int64", device=place))
        self.avg_fn, self.use_buffers = avg_fn or get_swa_avg_fn(), use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Call the averaged copy."""
        return self.module(*args, **kwargs)

    @no_grad()
    def update_parameters(self, model: Module) -> None:
        """Update the averages; the first call copies the values.

        The call may be part of a captured step: the number of averaged values is read when the step
        is replayed.

        Parameters
        ----------
        model : Module
            The model, with parameters and buffers of the same names and shapes as at the beginning.

        Raises
        ------
        ValueError
            If the names or shapes differ.
        """
        new = {**dict(model.named_parameters()), **dict(model.named_buffers())}
        parameters = dict(self.module.named_parameters())
        old = {**parameters, **dict(self.module.named_buffers())}
        if {name: x.shape for name, x in new.items()} != {name: x.shape for name, x in old.items()}:
            raise ValueError(
                "update_parameters: expected a model with tensors of the names and shapes at the"
                f" beginning, got {sorted(set(new) ^ set(old)) or 'other shapes'}"
            )
        for name, averaged in old.items():
            current = new[name].detach().to(averaged.device)
            if averaged.dtype.kind in "fc" and (self.use_buffers or name in parameters):
                number = self.n_averaged.to(averaged.device)
                current = where(
                    number == 0, current, self.avg_fn(averaged.detach(), current, number)
                )
            averaged[...] = current
        self.n_averaged[...] = self.n_averaged + 1


@no_grad()
def update_bn(loader: Iterable[Any], model: Module, device: str | Device | None = None) -> None:
    """Recompute the running statistics of batch normalization, as means over batches.

    Parameters
    ----------
    loader : iterable
        Batches: tensors, or tuples or lists that begin with one.
    model : Module
        The model, such as an `AveragedModel`; it is called with each batch in training mode.
    device : str or Device, optional
        The device to move batches to; by default they are not moved.

    Examples
    --------
    >>> import xgrad
    >>> model = xgrad.nn.Sequential(xgrad.nn.BatchNorm1d(3))
    >>> xgrad.optim.swa_utils.update_bn([xgrad.ones((4, 3)), 3 * xgrad.ones((4, 3))], model)
    >>> model[0].running_mean
    Tensor([2., 2., 2.])
    """
    layers: list[Any] = [x for x in model.modules() if getattr(x, "running_mean", None) is not None]
    before, training = [layer.momentum for layer in layers], model.training
    try:
        model.train()
        for layer in layers:
            layer.reset_running_stats()
            layer.momentum = None
        for batch in loader if layers else ():
            x = batch[0] if isinstance(batch, (tuple, list)) else batch
            model(x if device is None else x.to(device))
    finally:
        model.train(training)
        for layer, momentum in zip(layers, before, strict=True):
            layer.momentum = momentum
