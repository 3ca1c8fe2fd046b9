"""The pages of the reference: which public names are on which page, without Sphinx.

`reference.py` writes them for the site; ``tests/test_reference.py`` compares them with the public
names of the package.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any

import xgrad
from public_names import function_of, is_value, members, source_of

#: Modules to import that no ``__all__`` leads to.
MODULES = ("xgrad.backend", "xgrad.capture", "xgrad.einops", "xgrad.serialization")
#: Public names of a module without ``__all__``.
NAMES = {"xgrad.backend": ["Backend", "DeviceError"]}


@dataclass(frozen=True)
class Page:
    """A page: its title, the sentence for it on the index, and the names that it documents.

    `sections` has the source modules of the names by heading, or single names of these. A name of
    one of `modules` is in the first section, of the first page, that has its source module; a
    section without source modules takes the names that remain.
    """

    title: str
    summary: str
    modules: str = "xgrad"
    sections: dict[str, str] = field(default_factory=lambda: {"": ""})

    @property
    def name(self) -> str:
        """The name of the page's file."""
        return "_".join(self.title.lower().replace(":", "").replace(",", "").split())


#: Pages by group.
GROUPS: dict[str, list[Page]] = {
    "Tensors": [
        Page(
            "Tensor",
            "The class of arrays with gradients: its methods by kind, and its operators.",
            sections={"": "core.tensor"},
        ),
        Page(
            "Creation",
            "Tensors from data, from other libraries, and full of values.",
            sections={
                "From data": "ops.tensor_conversion ops.dlpack",
                "From shapes": "ops.creation",
                "Indices and codes": "ops.triangle_indices ops.encoding",
            },
        ),
        Page(
            "Dtypes and constants",
            "The dtypes, how they combine, and numbers such as pi.",
            sections={
                "Dtypes": "numpy",
                "Functions": "core.dtypes ops.dtype_functions",
                "Constants": "builtins",
            },
        ),
        Page(
            "Devices and the namespace",
            "Devices, numbers of threads, and what the namespace says of itself.",
            sections={"": "backend namespace_info"},
        ),
        Page(
            "Files",
            "Tensors and state dictionaries in files.",
            "xgrad xgrad.serialization",
            {"": "serialization"},
        ),
    ],
    "Array functions": [
        Page(
            "Elementwise functions",
            "Arithmetic, exponentials, trigonometry, rounding, comparisons and logic.",
            sections={
                "Arithmetic": "ops.elementwise.arithmetic ops.remainders ops.nonfinite.nan_to_num",
                "Exponentials, logarithms and powers": (
                    "ops.elementwise.exponentials ops.elementwise.logistic"
                ),
                "Trigonometry": "ops.elementwise.trigonometry",
                "Rounding and signs": "ops.elementwise.rounding",
                "Comparisons": "ops.elementwise.comparisons ops.comparing",
                "Logic and bits": "ops.elementwise.logic",
                "Complex numbers": "ops.elementwise.complex_parts",
            },
        ),
        Page(
            "Shapes and joining",
            "Reshaping, exchanging, broadcasting, padding, joining and repeating.",
            sections={
                "Shapes": "ops.manipulation",
                "Joining, repeating and padding": "ops.joining ops.padding",
            },
        ),
        Page(
            "Reductions",
            "Sums, extrema, means and variances over axes, and running sums.",
            sections={
                "Over axes": "ops.statistical ops.nonfinite",
                "Along an axis": "ops.scans ops.differences",
            },
        ),
        Page(
            "Statistics and integrals",
            "Quantiles, covariances, histograms, distances, interpolation and integrals.",
            sections={
                "Statistics": "ops.quantiles ops.covariance ops.histograms ops.distances",
                "Integrals and interpolation": "ops.integration",
            },
        ),
        Page(
            "Indexing, searching and sets",
            "Elements at indices, the order of elements, and sets of values.",
            sections={
                "Indexing": "ops.indexing",
                "Searching and sorting": "ops.searching ops.selection",
                "Sets": "ops.sets",
            },
        ),
        Page(
            "Products",
            "Products of matrices and tensors, and diagonals.",
            sections={"": "ops.matrix_products ops.contractions ops.diagonals"},
        ),
        Page("linalg", "Decompositions, solvers, norms and functions of matrices.", "xgrad.linalg"),
        Page("fft", "Fourier transforms.", "xgrad.fft"),
        Page(
            "special",
            "SciPy's special functions, with derivatives.",
            "xgrad.special",
            {
                "Gamma and beta functions": "ops.special.gamma_functions",
                "Error functions": "ops.special.error_functions",
                "Bessel functions": "ops.special.bessel",
                "Exponential integrals": "ops.special.exponential_integrals",
                "Elliptic integrals, hypergeometric and Legendre functions": (
                    "ops.special.hypergeometric"
                ),
                "Distribution functions": (
                    "ops.special.continuous_distributions ops.special.discrete_distributions"
                ),
                "Powers, exponentials and angles": "ops.special.powers ops.special.angles",
                "Entropy, losses and softmax": "",
            },
        ),
        Page(
            "random",
            "Random numbers and generators, the same on every device.",
            "xgrad xgrad.random",
            {
                "Random numbers": "random.distributions random.sampling",
                "Generators": "random.generator",
            },
        ),
    ],
    "Gradients and programs": [
        Page(
            "Gradients",
            "Modes of recording, and functions with a derivative of their own.",
            sections={"": "core.modes core.function diagnostics.lost_gradients"},
        ),
        Page("autograd", "Backward passes, checkpoints and anomalies.", "xgrad.autograd"),
        Page(
            "Transforms",
            "Gradients, Jacobians, products with them, batching and loops as functions.",
            sections={"": "transforms"},
        ),
        Page(
            "Differential equations",
            "Solutions of initial value problems, with gradients.",
            sections={"": "integration"},
        ),
        Page(
            "Captured steps",
            "Steps that are recorded once and replayed.",
            "xgrad xgrad.capture",
            {"": "capture backend.recording"},
        ),
        Page(
            "Graphs, profiles and memory",
            "Pictures of graphs, times of ops, and the memory that graphs hold.",
            sections={"": "inspection diagnostics.memory"},
        ),
        Page("testing", "Comparison of derivatives with finite differences.", "xgrad.testing"),
    ],
    "Neural networks": [
        Page(
            "nn: modules and containers",
            "The base of models, parameters, and containers of modules.",
            "xgrad.nn",
            {
                "Modules and parameters": "nn.module nn.parameter nn.state_dict",
                "Containers": "nn.containers nn.parameter_containers nn.mlp",
            },
        ),
        Page(
            "nn: layers",
            "Linear, convolution, pooling, normalization, recurrent and attention layers.",
            "xgrad.nn",
            {
                "Linear and embedding layers": "nn.linear nn.bilinear nn.embedding",
                "Convolution": "nn.convolution nn.volume_convolution",
                "Pooling": "nn.pooling nn.volume_pooling nn.unpooling",
                "Normalization": (
                    "nn.normalization nn.running_normalization nn.volume_normalization"
                    " nn.response_norm"
                ),
                "Dropout": "nn.dropout",
                "Recurrent layers": "nn.recurrent nn.recurrent_cells",
                "Attention and transformers": "nn.attention nn.transformer nn.transformer_decoder",
                "Padding": "nn.padding",
                "Shapes and images": "nn.shapes nn.folding nn.upsampling",
                "Distances": "nn.distances",
            },
        ),
        Page(
            "nn: activations",
            "Activation functions as modules.",
            "xgrad.nn",
            {"": "nn.activations nn.randomized_relu nn.softmaxes"},
        ),
        Page("nn: losses", "Losses as modules.", "xgrad.nn"),
        Page(
            "nn.functional",
            "Layers, activations and losses as functions.",
            "xgrad.nn.functional",
            {
                "Activations": (
                    "ops.activations ops.piecewise_activations ops.gelu ops.gumbel_softmax"
                    " ops.randomized_relu ops.softmaxes"
                ),
                "Linear functions, embedding and attention": (
                    "ops.matrix_products ops.bilinear ops.embedding ops.embedding_bag ops.attention"
                ),
                "Convolution": "ops.convolution ops.volume_convolution",
                "Pooling": ("ops.image_pooling ops.volume_pooling ops.unpooling ops.lp_pooling"),
                "Normalization": "ops.normalization ops.response_norm",
                "Dropout": "ops.dropout ops.alpha_dropout",
                "Losses": ("ops.losses ops.class_losses ops.ctc ops.margin_losses ops.likelihoods"),
                "Images, distances and padding": "",
            },
        ),
        Page("nn.init", "Initial values of parameters.", "xgrad.nn.init"),
        Page(
            "nn.utils",
            "Clipped gradients, vectors of parameters, and reparametrized weights.",
            "xgrad.nn.utils",
        ),
        Page(
            "nn.utils.parametrizations",
            "Parametrizations of weights that come with xgrad.",
            "xgrad.nn.utils.parametrizations",
        ),
        Page(
            "nn.utils.parametrize",
            "Weights that are functions of other parameters.",
            "xgrad.nn.utils.parametrize",
        ),
        Page("nn.utils.rnn", "Sequences of different lengths.", "xgrad.nn.utils.rnn"),
    ],
    "Training": [
        Page("optim", "Optimizers, and the base class of your own.", "xgrad.optim"),
        Page("optim.lr_scheduler", "Schedules of the learning rate.", "xgrad.optim.lr_scheduler"),
        Page("optim.swa_utils", "Averages of weights.", "xgrad.optim.swa_utils"),
        Page("amp", "Training in float16 and float32.", "xgrad.amp"),
        Page("training", "The training loop and its callbacks.", "xgrad.training"),
        Page(
            "data",
            "Data sets, samplers, and loaders of batches.",
            "xgrad.data",
            {
                "Loaders": "data.loader data.collate data.workers",
                "Data sets": "data.dataset",
                "Samplers": "data.samplers",
                "Sets of images": "",
            },
        ),
        Page("data.transforms", "Transforms of images.", "xgrad.data.transforms"),
        Page("distributed", "Training with several processes.", "xgrad.distributed"),
        Page("onnx", "Export of models to ONNX.", "xgrad.onnx"),
    ],
    "Probability": [
        Page(
            "distributions",
            "Probability distributions: samples, densities and divergences.",
            "xgrad.distributions",
        ),
        Page(
            "distributions.constraints",
            "Sets of valid parameters and values.",
            "xgrad.distributions.constraints",
        ),
        Page(
            "distributions.transforms",
            "Invertible transforms of random values.",
            "xgrad.distributions.transforms",
        ),
    ],
    "Other libraries": [
        Page("ops", "Ops that are not functions of the standard.", "xgrad.ops"),
        Page("backend", "The interface of array libraries.", "xgrad.backend"),
        Page("einops", "Registration of tensors in einops.", "xgrad.einops"),
    ],
}

#: Members of public classes that are no promise to users, with the reason. Members of a name are
#: left out in all classes.
INTERNAL = {
    "extra_repr": "a part of repr(), which shows it",
    "function": "what the module calls: the page has the function under its own name",
    "ratio": "a factor of a schedule, of which the class documents the formula",
    "half_log_det": "an intermediate value of log_prob",
    "Device.of": "a device of an array, for ops",
    "Function.apply": "an error for PyTorch's way to call functions",
    "Function.of": "a function from a rule, for declarations of ops",
    "Function.signature": "the inputs and options of an op, for its calls",
    "Function.kernel": "the rule on a device, for calls of ops",
    "Function.named": "names of inputs, for errors of ops",
    "Function.bind": "arguments by inputs and options, for calls of ops",
    "Communicator.sum_array": "a part of all_reduce",
    "Communicator.sum_parts": "a part of the reduction of gradients in DataParallel",
    "Communicator.gather_parts": "a part of the update of weights in DataParallel",
    "Communicator.own_random_numbers": "random numbers of ranks, for DataParallel",
    "Trainer.means": "a part of fit and evaluate",
    "Optimizer.apply_update": "a part of step, which captured steps replay",
    "Optimizer.pack": "a part of step, which captured steps replay",
    "Optimizer.flats": "the buffers of parameters, for captured steps",
    "Optimizer.is_packed": "the state of the buffers, for captured steps",
    "LBFGS.apply_update": "a part of step, which captured steps refuse",
    "LBFGS.is_packed": "the state of the buffers, for captured steps",
}

#: Methods and properties of `xgrad.Tensor` by kind.
TENSOR_METHODS = {
    "Attributes": "shape dtype device ndim size T mT data",
    "Autograd": (
        "backward detach grad grad_fn is_leaf register_hook requires_grad requires_grad_"
        " retain_grad"
    ),
    "Conversion to Python and NumPy": "item numpy tolist",
    "Device and dtype": (
        "astype bool byte clone contiguous cpu cuda double element_size float half int is_complex"
        " is_floating_point long short to to_device type_as"
    ),
    "New tensors": "bernoulli new_full new_ones new_zeros",
    "Arithmetic": (
        "abs absolute add addcdiv addcmul clamp clamp_max clamp_min clip div divide floor_divide"
        " fmod lerp maximum minimum mul multiply nan_to_num neg negative reciprocal remainder relu"
        " square sub subtract true_divide"
    ),
    "Exponentials, logarithms and powers": (
        "erf exp expm1 log log10 log1p log2 log_softmax logaddexp pow rsqrt sigmoid softmax sqrt"
    ),
    "Trigonometry": "acos acosh asin asinh atan atan2 atanh cos cosh hypot sin sinh tan tanh",
    "Rounding and signs": "ceil conj copysign floor frac round sign signbit trunc",
    "Comparisons and logic": (
        "allclose bitwise_and bitwise_not bitwise_or bitwise_xor eq ge greater greater_equal gt"
        " isclose isfinite isinf isnan le less less_equal logical_and logical_not logical_or"
        " logical_xor lt ne not_equal"
    ),
    "Reductions": (
        "all amax amin any argmax argmin bincount corrcoef count_nonzero cov logsumexp max mean min"
        " norm prod std sum var"
    ),
    "Along an axis": "argsort cumprod cumsum diff topk",
    "Shape": (
        "dim expand expand_as flatten flip fliplr flipud moveaxis movedim numel permute ravel"
        " repeat_interleave reshape reshape_as roll rot90 squeeze swapaxes t tile transpose"
        " unsqueeze view view_as"
    ),
    "Indexing and parts": (
        "chunk gather index_add index_copy index_fill index_select masked_fill masked_select narrow"
        " scatter scatter_add split tensor_split tril triu unbind unfold where"
    ),
    "Linear algebra": "addmm baddbmm bmm dot matmul mm outer",
    "In place": (
        "abs_ add_ addcdiv_ addcmul_ addmm_ clamp_ clamp_max_ clamp_min_ clip_ copy_ div_ divide_"
        " exp_ fill_ fmod_ index_add_ index_copy_ index_fill_ lerp_ masked_fill_ mul_ multiply_"
        " nan_to_num_ neg_ pow_ scatter_ scatter_add_ sqrt_ sub_ subtract_ zero_"
    ),
}

#: Operators of tensors, and what they compute.
OPERATORS = {
    "x + y, x - y, x * y, x / y": "`xgrad.add`, `xgrad.subtract`, `xgrad.multiply`, `xgrad.divide`",
    "x // y, x % y, x ** y": "`xgrad.floor_divide`, `xgrad.remainder`, `xgrad.pow`",
    "x @ y": "`xgrad.matmul`",
    "-x, +x, abs(x)": "`xgrad.negative`, `xgrad.positive`, `xgrad.abs`",
    "x == y, x != y, x < y, x <= y, x > y, x >= y": (
        "`xgrad.equal`, `xgrad.not_equal`, `xgrad.less`, `xgrad.less_equal`, `xgrad.greater`,"
        " `xgrad.greater_equal`"
    ),
    "x & y, x | y, x ^ y, ~x, x << y, x >> y": (
        "`xgrad.bitwise_and`, `xgrad.bitwise_or`, `xgrad.bitwise_xor`, `xgrad.bitwise_invert`,"
        " `xgrad.bitwise_left_shift`, `xgrad.bitwise_right_shift`; of bools, logic"
    ),
    "x += y": "The same op, and each other operator, in place: a write to `x`, differentiable.",
    "x[key], x[key] = y": (
        "A part of the tensor, which is a view for slices and numbers; a write to it,"
        " differentiable. Keys are as in NumPy."
    ),
    "len(x), for row in x": "The length of the first axis, and the parts along it.",
    "bool(x), int(x), float(x), complex(x)": "The only element; ValueError if there are several.",
    "np.exp(x), np.sum(x), array + x": (
        "NumPy's functions and operators of arrays, computed by xgrad's functions."
    ),
    "np.asarray(x), np.from_dlpack(x)": (
        "The values as NumPy's array; an error if the tensor needs a gradient: use ``.detach()``."
    ),
    "x.__array_namespace__()": "`xgrad`, or an earlier version of the standard.",
    "x.__dlpack__(), x.__dlpack_device__()": "The exchange of arrays with other libraries.",
    "copy.deepcopy(x), pickle.dumps(x)": "A copy of a leaf, with its device and its values.",
}


#: Rows of the index that lead to other pages of the site, by group.
OTHER_PAGES = {
    "Other libraries": [
        (
            ":doc:`compat.torch </docs/howto/pytorch_script>`",
            "PyTorch's names and signatures over the functions of xgrad, for programs of PyTorch.",
        )
    ]
}

#: What a page says between its title and its tables.
INTRODUCTIONS = {
    "special": "Names and arguments are SciPy's: ``from xgrad import special``.",
    "ops": "`xgrad.ops` also has the functions of the standard, which are in `xgrad`.",
    "einops": (
        "``einops.rearrange`` and the other functions of einops take tensors of xgrad without a"
        " call of this function if einops was imported before; its layers are in"
        " ``xgrad.compat.einops_layers``."
    ),
}


@dataclass(frozen=True)
class Entry:
    """A public name of a page, by its qualified name; `same_as` is the entry that documents it."""

    name: str
    value: Any
    same_as: str = ""


def public_names(module: str) -> list[str]:
    """Return the public names of a module, in the order of the reference."""
    names = NAMES.get(module) or import_module(module).__all__
    return sorted(names, key=lambda name: (name.lower(), name))


def public_modules() -> list[str]:
    """Return the public modules: those that public names are, from `xgrad` on, and `MODULES`."""
    found = ["xgrad", *MODULES]
    for module in found:  # grows by the modules within
        values = [getattr(import_module(module), name) for name in public_names(module)]
        found += [
            value.__name__
            for value in values
            if isinstance(value, ModuleType) and value.__name__ not in found
        ]
    return found


def pages() -> list[Page]:
    """Return the pages in order."""
    return [page for group in GROUPS.values() for page in group]


@cache
def entries() -> dict[str, dict[str, list[Entry]]]:
    """Return the entries by the titles of pages and the headings of their sections.

    A function or a class is documented once, by its first name; its other names are entries that
    lead there. `xgrad.ops` also has the functions of `xgrad` under their names, which are not
    listed again.
    """
    found: dict[str, dict[str, list[Entry]]] = {
        page.title: {heading: [] for heading in page.sections} for page in pages()
    }
    first: dict[int, str] = {}
    for module in dict.fromkeys(" ".join([page.modules for page in pages()]).split()):
        for name in public_names(module):
            value = getattr(import_module(module), name)
            known = "" if is_value(value) else first.setdefault(id(value), f"{module}.{name}")
            is_listed = module == "xgrad.ops" and known == f"xgrad.{name}"
            if not isinstance(value, ModuleType) and not is_listed:
                title, heading = _place(module, name, source_of(value))
                same_as = known if known != f"{module}.{name}" else ""
                found[title][heading].append(Entry(f"{module}.{name}", value, same_as))
    return found


def _place(module: str, name: str, source: str) -> tuple[str, str]:
    """Return the page and the section of a public name, given its source module."""
    for page in pages():
        for heading, sources in page.sections.items():
            names = f"{source}.{name}."
            fits = not sources or any(names.startswith(f"{s}.") for s in sources.split())
            if module in page.modules.split() and fits:
                return page.title, heading
    raise LookupError(
        f"{module}.{name}: expected a page of the reference for names from {source}: add its module"
        " to a section in docs/sphinx/reference_pages.py"
    )


def documented_names() -> list[tuple[str, str]]:
    """Return the names that the pages document, members included, by module."""
    found = [entry for page in entries().values() for section in page.values() for entry in section]
    names = []
    for entry in found:
        module, _, name = entry.name.rpartition(".")
        names.append((module, name))
        if isinstance(entry.value, type) and not entry.same_as:
            is_tensor = entry.name == "xgrad.Tensor"
            members = " ".join(TENSOR_METHODS.values()).split()
            names += [
                (module, f"{name}.{member}")
                for member in (members if is_tensor else members_of(entry.value))
            ]
    return names


def tensor_method(name: str) -> Any:
    """Return a method or a property of `xgrad.Tensor`, unbound."""
    return inspect.getattr_static(xgrad.Tensor, name)


@cache
def documented_classes() -> set[type]:
    """Return the classes that have an entry."""
    sections = [section for page in entries().values() for section in page.values()]
    return {e.value for section in sections for e in section if isinstance(e.value, type)}


def members_of(kind: type) -> list[str]:
    """Return the methods and properties of a class that its entry documents.

    `INTERNAL` names others. An override is documented by the class whose method it overrides,
    unless it has other parameters, and `forward` of one input by the class of the module.
    """
    found = members(kind, documented_classes()).items()
    return [
        name
        for name, (member, overridden) in found
        if not {name, f"{kind.__name__}.{name}"} & INTERNAL.keys()
        and not (overridden and _says_the_same(name, member, overridden))
    ]


def _says_the_same(name: str, member: Any, overridden: Any) -> bool:
    """Return whether a member needs no documentation beside the one that it overrides."""
    function, base = function_of(member), function_of(overridden)
    if base is None or isinstance(member, property):
        return True
    parameters = list(inspect.signature(function).parameters.values())
    named = [p for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    same = [p.name for p in parameters] == list(inspect.signature(base).parameters)
    return same or (name == "forward" and len(named) <= 2)
