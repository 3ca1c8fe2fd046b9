"""The parameters of a model as one vector."""

from __future__ import annotations

import math
from collections.abc import Iterable

from xgrad.core.arguments import check_tensor, check_tensors
from xgrad.core.modes import no_grad
from xgrad.core.tensor import Tensor
from xgrad.ops import astype, concat, reshape


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """Return parameters concatenated into one vector; differentiable.

    Parameters
    ----------
    parameters : iterable of Tensor
        At least one parameter, all on one device.

    Returns
    -------
    Tensor
        A vector.

    Raises
    ------
    DeviceError
        If the parameters are on several devices.
    ValueError
        If there are none.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.utils.parameters_to_vector(xgrad.nn.Linear(3, 2).parameters()).shape
    (8,)
    """
    tensors = check_tensors("parameters_to_vector", "parameters", parameters)
    if not tensors:
        raise ValueError("parameters_to_vector: expected parameters, got none")
    return concat([reshape(p, (-1,)) for p in tensors])


@no_grad()
def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Assign the parts of a vector to parameters, in the order of `parameters_to_vector`.

    The assignment is not recorded.

    Parameters
    ----------
    vec : Tensor
        A vector with as many elements as the parameters, on their device.
    parameters : iterable of Tensor
        The parameters, which keep their dtypes.

    Raises
    ------
    ValueError
        If `vec` has another shape.

    Examples
    --------
    >>> import xgrad
    >>> layer = xgrad.nn.Linear(1, 2)
    >>> xgrad.nn.utils.vector_to_parameters(xgrad.arange(4.0), layer.parameters())
    >>> layer.bias.detach()
    Tensor([2., 3.])
    """
    vec = check_tensor("vector_to_parameters", "vec", vec)
    tensors, start = check_tensors("vector_to_parameters", "parameters", parameters), 0
    size = math.fsum([p.size for p in tensors])
    if vec.shape != (size,):
        raise ValueError(
            f"vector_to_parameters: expected vec of shape ({size:.0f},), got {vec.shape}"
        )
    for p in tensors:
        p.data = astype(reshape(vec[start : start + p.size], p.shape), p.dtype)
        start += p.size
