"""Product with the second matrix turned."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, a, b):
        return torch.matmul(a, b.T)


def get_inputs():
    return [torch.rand(64, 48), torch.rand(40, 48)]


def get_init_inputs():
    return []
