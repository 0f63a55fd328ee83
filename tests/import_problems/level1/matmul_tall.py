"""Tall times flat."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, a, b):
        return torch.matmul(a, b)


def get_inputs():
    return [torch.rand(160, 8), torch.rand(8, 96)]


def get_init_inputs():
    return []
