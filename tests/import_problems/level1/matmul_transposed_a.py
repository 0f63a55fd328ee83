"""Product with the first matrix turned."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, a, b):
        return torch.matmul(a.T, b)


def get_inputs():
    return [torch.rand(48, 64), torch.rand(48, 40)]


def get_init_inputs():
    return []
