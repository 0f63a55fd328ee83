"""Maximum over a window, dilated."""

import torch
import torch.nn.functional as F
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return F.max_pool2d(x, 3, stride=2, padding=1, dilation=2)


def get_inputs():
    return [torch.rand(2, 4, 20, 20)]


def get_init_inputs():
    return []
