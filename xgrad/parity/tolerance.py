"""Tolerated errors of an op on a device: a few classes with their reasons, which the cases name.

Errors are counted in units. A unit is one ULP (unit in the last place) of the reference value. For
sums and for all gradients, it is one ULP of the magnitude of the value plus the effect of a
relative change of every input: where large terms cancel, no algorithm can do better than the exact
result for inputs that are rounded once (N. J. Higham, *Accuracy and Stability of Numerical
Algorithms*, 2002, section 1.5).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Tolerance:
    """The tolerated error of a class of ops, in units.

    `value` and `gradient` are the tolerated units of a value and of a gradient. `per_element` is
    added for each element of the largest input of a sample. `conditioned` tells whether values are
    counted in the units of sums, as gradients always are.
    """

    name: str
    value: float
    gradient: float
    reason: str
    per_element: float = 0.0
    conditioned: bool = False

    def limit(self, quantity: str, elements: int) -> float:
        """Return the tolerance for a quantity of a sample."""
        return (self.value if quantity == "value" else self.gradient) + self.per_element * elements


EXACT = Tolerance(
    "exact",
    0,
    0,
    "Moves, comparisons and counts do not round, forward or backward.",
)
SELECTED = Tolerance(
    "selected",
    0,
    1,
    "A selection of inputs does not round; its gradient is a sum where an input was broadcast or an"
    " index repeats.",
)
ROUNDED = Tolerance(
    "correctly rounded",
    0.501,
    2.5,
    "IEEE 754 requires the nearest number, 0.5 ULP, and the reference is itself rounded, at 2^-11"
    " of that. A gradient is two or three such operations.",
)
ROOTS = Tolerance(
    "root",
    1,
    2,
    "IEEE 754 requires 0.5 ULP, but the float32 vector kernel of PyTorch 2.13 is up to 0.72 off.",
)
FUNCTIONS = Tolerance(
    "elementary function",
    4,
    6,
    "No standard requires an accuracy. CUDA documents 1 to 4 ULP, of which 4 are tan's; NumPy's"
    " vector kernels were within 1.6 in float32 and 0.8 in float64. A gradient has two more"
    " roundings, or the error of the result where its rule uses that.",
)
SATURATING = Tolerance(
    "saturating function",
    4,
    12,
    "As elementary functions; but 1 - out**2, in the rule, cancels where the function saturates,"
    " and multiplies the error of the result by up to four. The gradient was within 4.0 in"
    " float32.",
)
COMPOSED = Tolerance(
    "composed",
    4,
    5,
    "A few elementary functions and a sum; together they were within 2.0, and 2.5 in a gradient.",
    conditioned=True,
)
SUMS = Tolerance(
    "sum",
    1,
    2,
    "Orders of summation differ. n terms are within (n - 1)/2 units in any order; on average errors"
    " cancel, and a sixteenth of a unit for each element of the input was enough.",
    per_element=1 / 16,
    conditioned=True,
)
PRODUCTS = Tolerance(
    "product",
    1,
    2,
    "n factors are within (n - 1)/2 ULP, in any order.",
    per_element=1 / 8,
)
POWERS = Tolerance(
    "power",
    4,
    4,
    "exp(y log x) in more than the working precision, or up to three products: NumPy and PyTorch"
    " were within 1.9, CUDA documents 4.",
)
MATRICES = Tolerance(
    "matrix function",
    4,
    12,
    "Libraries use different algorithms, all of them backward stable: the result is that of inputs"
    " with errors of a modest multiple of the precision, growing with the size (Higham, section 1.5"
    " and chapters 9 to 19).",
    per_element=1,
    conditioned=True,
)
SPECIAL = Tolerance(
    "special function",
    12,
    24,
    "Series and rational approximations of several ranges, and recurrences: kernels of SciPy and"
    " PyTorch were within 8.6 units, and gradients, in which kernels are multiplied and subtracted,"
    " within 14.",
    conditioned=True,
)
DISTRIBUTIONS = Tolerance(
    "distribution",
    32,
    32,
    "Distribution functions and their inverses. SciPy's kernels for incomplete gamma and beta"
    " functions were within 20 units, in float32, where they compute in float32, and in float64.",
    conditioned=True,
)
RECURRENCES = Tolerance(
    "recurrence",
    4,
    24,
    "Each step adds the errors of a product and of saturating functions, and 1 - out**2 and gate *"
    " (1 - gate), in the rules, cancel where they saturate. Gradients were within 12 in three"
    " steps.",
    conditioned=True,
)
ATTENTION = Tolerance(
    "attention",
    4,
    16,
    "A softmax between two products. In its gradient terms of the size of the scores cancel:"
    " gradients were within 14 in float32.",
    conditioned=True,
)
TRANSFORMS = Tolerance(
    "transform",
    3,
    3,
    "A fast Fourier transform of n points is a sum in log2(n) steps of multiplications and"
    " additions: errors grow as slowly.",
    conditioned=True,
)
CLASSES = (
    EXACT,
    SELECTED,
    ROUNDED,
    ROOTS,
    FUNCTIONS,
    SATURATING,
    COMPOSED,
    SUMS,
    PRODUCTS,
    POWERS,
    MATRICES,
    SPECIAL,
    DISTRIBUTIONS,
    RECURRENCES,
    ATTENTION,
    TRANSFORMS,
)
