"""Batched product."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, a, b):
        return torch.bmm(a, b)


def get_inputs():
    return [torch.rand(4, 24, 32), torch.rand(4, 32, 40)]


def get_init_inputs():
    return []
