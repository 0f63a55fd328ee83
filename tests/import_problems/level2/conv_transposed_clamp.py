"""Transposed convolution, bias, clamps and scales."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.ConvTranspose2d(4, 6, 3, stride=2)
        self.bias = nn.Parameter(torch.randn(6, 1, 1))

    def forward(self, x):
        x = torch.clamp(self.conv(x) + self.bias, 0.0, 1.0) * 2.0
        return torch.clamp(x, 0.0, 1.0) / 2.0


def get_inputs():
    return [torch.rand(2, 4, 6, 6)]


def get_init_inputs():
    return []
