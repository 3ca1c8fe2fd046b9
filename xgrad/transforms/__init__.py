"""Transforms that compute derivatives of functions, such as `grad`, `vjp`, `jvp` and `jacobian`.

A transform calls the function with copies of the arguments, which separates its graph from the
graphs of transforms within it or around it. The derivatives have a graph of their own, and can be
differentiated again, if they depend on a tensor that has one: an argument, or another tensor that
the function uses.
"""

from xgrad.transforms.gradients import grad, value_and_grad
from xgrad.transforms.jacobians import hessian, jacfwd, jacobian, jacrev
from xgrad.transforms.mapping import vmap
from xgrad.transforms.products import hvp, jvp, vjp
from xgrad.transforms.scanning import scan

__all__ = [
    "grad",
    "hessian",
    "hvp",
    "jacfwd",
    "jacobian",
    "jacrev",
    "jvp",
    "scan",
    "value_and_grad",
    "vjp",
    "vmap",
]
