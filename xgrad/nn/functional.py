"""Layers and losses as functions without state."""

from xgrad.ops import linear, log_softmax, sigmoid, softmax, tanh
from xgrad.ops.activations import (
    celu,
    elu,
    glu,
    leaky_relu,
    logsigmoid,
    mish,
    prelu,
    relu,
    selu,
    silu,
    softplus,
    softsign,
    tanhshrink,
)
from xgrad.ops.alpha_dropout import alpha_dropout, feature_alpha_dropout
from xgrad.ops.attention import scaled_dot_product_attention
from xgrad.ops.bilinear import bilinear
from xgrad.ops.class_losses import cross_entropy, multi_margin_loss, nll_loss
from xgrad.ops.convolution import conv1d, conv2d, conv_transpose1d, conv_transpose2d
from xgrad.ops.ctc import ctc_loss
from xgrad.ops.distances import cosine_similarity, normalize, pairwise_distance
from xgrad.ops.dropout import dropout, dropout1d, dropout2d, dropout3d
from xgrad.ops.embedding import embedding
from xgrad.ops.embedding_bag import embedding_bag
from xgrad.ops.encoding import one_hot
from xgrad.ops.folding import channel_shuffle, fold, pixel_shuffle, pixel_unshuffle, unfold
from xgrad.ops.gelu import gelu
from xgrad.ops.grid_sampling import affine_grid, grid_sample
from xgrad.ops.gumbel_softmax import gumbel_softmax
from xgrad.ops.image_pooling import (
    adaptive_avg_pool1d,
    adaptive_avg_pool2d,
    adaptive_max_pool1d,
    adaptive_max_pool2d,
    avg_pool1d,
    avg_pool2d,
    max_pool1d,
    max_pool2d,
)
from xgrad.ops.interpolation import interpolate, upsample
from xgrad.ops.likelihoods import gaussian_nll_loss, poisson_nll_loss
from xgrad.ops.losses import (
    binary_cross_entropy,
    binary_cross_entropy_with_logits,
    huber_loss,
    kl_div,
    l1_loss,
    mse_loss,
    smooth_l1_loss,
)
from xgrad.ops.lp_pooling import lp_pool1d, lp_pool2d, lp_pool3d
from xgrad.ops.margin_losses import (
    cosine_embedding_loss,
    hinge_embedding_loss,
    margin_ranking_loss,
    multilabel_margin_loss,
    multilabel_soft_margin_loss,
    soft_margin_loss,
    triplet_margin_loss,
    triplet_margin_with_distance_loss,
)
from xgrad.ops.normalization import batch_norm, group_norm, instance_norm, layer_norm, rms_norm
from xgrad.ops.piecewise_activations import (
    hardshrink,
    hardsigmoid,
    hardswish,
    hardtanh,
    relu6,
    softshrink,
    threshold,
)
from xgrad.ops.randomized_relu import rrelu
from xgrad.ops.response_norm import local_response_norm
from xgrad.ops.softmaxes import softmin
from xgrad.ops.torch_padding import pad
from xgrad.ops.unpooling import max_unpool1d, max_unpool2d, max_unpool3d
from xgrad.ops.volume_convolution import conv3d, conv_transpose3d
from xgrad.ops.volume_pooling import (
    adaptive_avg_pool3d,
    adaptive_max_pool3d,
    avg_pool3d,
    max_pool3d,
)
from xgrad.support import hints

__all__ = [
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "adaptive_avg_pool3d",
    "adaptive_max_pool1d",
    "adaptive_max_pool2d",
    "adaptive_max_pool3d",
    "affine_grid",
    "alpha_dropout",
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
    "batch_norm",
    "bilinear",
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "celu",
    "channel_shuffle",
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "cosine_embedding_loss",
    "cosine_similarity",
    "cross_entropy",
    "ctc_loss",
    "dropout",
    "dropout1d",
    "dropout2d",
    "dropout3d",
    "elu",
    "embedding",
    "embedding_bag",
    "feature_alpha_dropout",
    "fold",
    "gaussian_nll_loss",
    "gelu",
    "glu",
    "grid_sample",
    "group_norm",
    "gumbel_softmax",
    "hardshrink",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "hinge_embedding_loss",
    "huber_loss",
    "instance_norm",
    "interpolate",
    "kl_div",
    "l1_loss",
    "layer_norm",
    "leaky_relu",
    "linear",
    "local_response_norm",
    "log_softmax",
    "logsigmoid",
    "lp_pool1d",
    "lp_pool2d",
    "lp_pool3d",
    "margin_ranking_loss",
    "max_pool1d",
    "max_pool2d",
    "max_pool3d",
    "max_unpool1d",
    "max_unpool2d",
    "max_unpool3d",
    "mish",
    "mse_loss",
    "multi_margin_loss",
    "multilabel_margin_loss",
    "multilabel_soft_margin_loss",
    "nll_loss",
    "normalize",
    "one_hot",
    "pad",
    "pairwise_distance",
    "pixel_shuffle",
    "pixel_unshuffle",
    "poisson_nll_loss",
    "prelu",
    "relu",
    "relu6",
    "rms_norm",
    "rrelu",
    "scaled_dot_product_attention",
    "selu",
    "sigmoid",
    "silu",
    "smooth_l1_loss",
    "soft_margin_loss",
    "softmax",
    "softmin",
    "softplus",
    "softshrink",
    "softsign",
    "tanh",
    "tanhshrink",
    "threshold",
    "triplet_margin_loss",
    "triplet_margin_with_distance_loss",
    "unfold",
    "upsample",
]
hints.install(__name__)
