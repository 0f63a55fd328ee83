"""PyTorch's own decompositions, asked for until few operations are left: what `lowering` has to know.

Needs torch, so that only the confined child calls it.
"""

from collections.abc import Callable, Sequence
from typing import Any

_COMPOSED = [
    "_softmax",
    "_log_softmax",
    "native_layer_norm",
    "native_group_norm",
    "_native_batch_norm_legit",
    "_native_batch_norm_legit_no_training",
    "native_batch_norm",
    "gelu",
    "silu",
    "hardswish",
    "hardsigmoid",
    "softplus",
    "elu",
    "leaky_relu",
    "hardtanh",
    "mish",
    "log_sigmoid_forward",
    "nll_loss_forward",
    "nll_loss2d_forward",
    "mse_loss",
    "smooth_l1_loss",
    "huber_loss",
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "soft_margin_loss",
    "addmm",
    "addmv",
    "baddbmm",
    "linear",
    "var",
    "var_mean",
    "std",
    "std_mean",
    "logsumexp",
    "linalg_vector_norm",
    "softshrink",
    "hardshrink",
    "glu",
    "_prelu_kernel",
    "threshold",
    "upsample_nearest2d",
    "mean",
    "addcmul",
    "addcdiv",
    "lerp",
    "tril",
    "triu",
    "rsub",
    "_adaptive_avg_pool2d",
    "embedding",
    "dot",
    "mv",
    "rms_norm",
    "_fused_rms_norm",
    "diag_embed",
    "roll",
    "log1p",
    "squeeze",
    "unbind",
    "split",
    "native_dropout",
    "celu",
    "selu",
    "norm",
    "hinge_embedding_loss",
    "margin_ranking_loss",
    "upsample_bilinear2d",
]


def decomposed(torch: Any, function: Callable[..., Any], tensors: Sequence[Any]) -> Any:
    """The function's graph on these tensors, without changes in place and without operations that nothing uses."""
    from torch._decomp import core_aten_decompositions, get_decompositions
    from torch.fx.experimental.proxy_tensor import make_fx

    table = dict(core_aten_decompositions())
    for name in _COMPOSED:
        operation = getattr(torch.ops.aten, name, None)
        if operation is not None:
            table.update(get_decompositions([operation]))
    for name in ("max_pool2d_with_indices", "avg_pool2d", "convolution"):
        for overload in (getattr(torch.ops.aten, name).default,):
            table.pop(overload, None)
    for overload in (torch.ops.aten.eye.default, torch.ops.aten.eye.m):  # theirs counts in bytes without a sign
        table.pop(overload, None)
    functional = torch.func.functionalize(function, remove="mutations")
    graph = make_fx(functional, decomposition_table=table)(*tensors)
    graph.graph.eliminate_dead_code()
    graph.recompile()
    return graph
