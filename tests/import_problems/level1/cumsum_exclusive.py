"""Sums of what comes before."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        shifted = torch.cat((torch.zeros_like(x[:, :1]), x), dim=1)[:, :-1]
        return torch.cumsum(shifted, dim=1)


def get_inputs():
    return [torch.rand(16, 256)]


def get_init_inputs():
    return []
