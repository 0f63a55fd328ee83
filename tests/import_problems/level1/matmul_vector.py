"""Matrix times vector."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, a, b):
        return torch.matmul(a, b)


def get_inputs():
    return [torch.rand(96, 128), torch.rand(128, 1)]


def get_init_inputs():
    return []
