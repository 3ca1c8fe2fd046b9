"""The bilinear form of two vectors: `bilinear`."""

from __future__ import annotations

from xgrad.core.arguments import as_tensor
from xgrad.core.tensor import Tensor
from xgrad.ops.manipulation import permute_dims, reshape
from xgrad.ops.matrix_products import matmul
from xgrad.ops.precision import upcast


@upcast
def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    r"""Return ``input1 @ weight[k] @ input2 + bias[k]`` for each k.

    Parameters
    ----------
    input1, input2 : Tensor
        Of shapes (..., in1) and (..., in2), floating.
    weight : Tensor
        Of shape (out, in1, in2).
    bias : Tensor, optional
        Of shape (out,).

    Returns
    -------
    Tensor
        Of shape (..., out).

    Raises
    ------
    ValueError
        If the shapes do not fit.

    Notes
    -----
    .. math:: y_k = x_1^\top W_k x_2 + b_k

    - Gradient for `input1`: :math:`\sum_k \bar y_k W_k x_2`
    - Gradient for `input2`: :math:`\sum_k \bar y_k W_k^\top x_1`
    - Gradient for `weight`: :math:`\bar y_k\, x_1 x_2^\top` for :math:`W_k`, summed over the
      batch
    - Gradient for `bias`: :math:`\bar y`

    Examples
    --------
    >>> import xgrad
    >>> x1, x2 = xgrad.asarray([1.0, 2.0]), xgrad.asarray([3.0, 5.0])
    >>> xgrad.nn.functional.bilinear(x1, x2, xgrad.reshape(xgrad.eye(2), (1, 2, 2)))
    Tensor([13.])
    """
    name = "bilinear"
    input1, input2 = as_tensor(name, "input1", input1), as_tensor(name, "input2", input2)
    weight = as_tensor(name, "weight", weight)
    if weight.ndim != 3:
        raise ValueError(f"{name}: expected weight of shape (out, in1, in2), got {weight.shape}")
    out, in1, in2 = weight.shape
    shapes = (in1,), (in2,)
    if (input1.shape[-1:], input2.shape[-1:]) != shapes or input1.shape[:-1] != input2.shape[:-1]:
        raise ValueError(
            f"{name}: expected inputs of shapes (..., {in1}) and (..., {in2}), got {input1.shape}"
            f" and {input2.shape}"
        )
    rows = matmul(input1, reshape(permute_dims(weight, (1, 0, 2)), (in1, out * in2)))
    products = reshape(rows, (*input1.shape[:-1], out, in2))
    result = matmul(products, input2[..., None])[..., 0]
    if bias is None:
        return result
    bias = as_tensor(name, "bias", bias)
    if bias.shape != (out,):
        raise ValueError(f"{name}: expected bias of shape ({out},), got shape {bias.shape}")
    return result + bias
