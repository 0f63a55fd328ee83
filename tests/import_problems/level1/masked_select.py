"""Elements over a half: the shape depends on values."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return x[x > 0.5]


def get_inputs():
    return [torch.rand(16, 256)]


def get_init_inputs():
    return []
