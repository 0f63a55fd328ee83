"""RMS norm over channels."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return x / torch.sqrt(torch.mean(x**2, dim=1, keepdim=True) + 1e-5)


def get_inputs():
    return [torch.rand(4, 16, 8, 8)]


def get_init_inputs():
    return []
