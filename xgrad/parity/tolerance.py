"""How far devices may be apart on an op, and why: a few classes, which the rows of the table name.

Errors are counted in units. A unit is one ULP (unit in the last place) of the reference value. For sums, and for every
gradient, it is one ULP of what the value and a change of the inputs by one ULP come to together: where large terms
cancel, no algorithm can do better than the exact result for inputs that are rounded once (N. J. Higham, *Accuracy and
Stability of Numerical Algorithms*, 2002, section 1.5).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Tolerance:
    """Units for a value and for a gradient, and how many more for each element of the largest input of a sample.

    `conditioned` says in which units values are counted: whether those of a sum. Gradients always are.
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


# fmt: off
EXACT = Tolerance(
    "exact", 0, 0,
    "It moves, compares or counts: nothing is rounded, on the way there or back.",
)
SELECTED = Tolerance(
    "selected", 0, 1,
    "It chooses among its inputs without rounding; the gradient is added up where an input was broadcast or an index "
    "repeats.",
)
ROUNDED = Tolerance(
    "correctly rounded", 0.501, 2.5,
    "IEEE 754 asks for the nearest number, 0.5 ULP, and the reference is itself rounded, at 2^-11 of that. A gradient "
    "is two or three such operations.",
)
ROOTS = Tolerance(
    "root", 1, 2,
    "IEEE 754 asks for 0.5 ULP, but the float32 vector kernel of PyTorch 2.13 is up to 0.72 off.",
)
FUNCTIONS = Tolerance(
    "elementary function", 4, 6,
    "No standard says how exact they are. CUDA documents 1 to 4 ULP, of which 4 are tan's; NumPy's vector kernels "
    "were seen within 1.6 in float32 and 0.8 in float64. A gradient takes two roundings more, or the error of the "
    "result where its rule uses that.",
)
SATURATING = Tolerance(
    "saturating function", 4, 12,
    "As elementary functions; but 1 - out**2, in the rule, cancels where the function saturates, and makes up to four "
    "units of each ULP by which the result is off. The gradient was seen within 4.0 in float32.",
)
COMPOSED = Tolerance(
    "composed", 4, 5,
    "A few elementary functions and a sum, of which together 2.0 were seen, and 2.5 in a gradient.", conditioned=True,
)
SUMS = Tolerance(
    "sum", 1, 2,
    "Orders of summation differ. n terms are within (n - 1)/2 units in any order; on average errors cancel, and a "
    "sixteenth of a unit for each element of the input was never needed.", per_element=1 / 16, conditioned=True,
)
PRODUCTS = Tolerance(
    "product", 1, 2,
    "n factors are within (n - 1)/2 ULP, in any order.", per_element=1 / 8,
)
POWERS = Tolerance(
    "power", 4, 4,
    "exp(y log x) in more than the working precision: NumPy and PyTorch were seen within 0.9, CUDA documents 4.",
)
MATRICES = Tolerance(
    "matrix function", 4, 12,
    "Algorithms differ from library to library. Those in use are backward stable: their result is that of inputs which "
    "are off by a modest multiple of the precision, growing with the size (Higham, section 1.5 and chapters 9 to 19).",
    per_element=1, conditioned=True,
)
SPECIAL = Tolerance(
    "special function", 12, 24,
    "Series and rational approximations of several ranges, and recurrences: kernels of SciPy's and PyTorch's were seen "
    "within 8.6 units, and gradients, in which kernels are multiplied and subtracted, within 14.", conditioned=True,
)
DISTRIBUTIONS = Tolerance(
    "distribution", 32, 32,
    "Distribution functions and their inverses. SciPy's kernels for incomplete gamma and beta functions were seen off "
    "by 20 units, in float32, in which they work for those, and in float64.", conditioned=True,
)
TRANSFORMS = Tolerance(
    "transform", 3, 3,
    "A fast Fourier transform of n points is a sum in log2(n) steps, of which each multiplies and adds: errors grow "
    "as slowly.", conditioned=True,
)
# fmt: on

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
    TRANSFORMS,
)
