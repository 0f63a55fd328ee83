"""Mean over windows that fill a grid."""

import torch
import torch.nn.functional as F
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return F.adaptive_avg_pool2d(x, (4, 4))


def get_inputs():
    return [torch.rand(2, 4, 16, 16)]


def get_init_inputs():
    return []
