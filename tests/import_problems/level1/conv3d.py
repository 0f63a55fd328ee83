"""3D convolution."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv3d(2, 4, 3)

    def forward(self, x):
        return self.conv(x)


def get_inputs():
    return [torch.rand(1, 2, 6, 8, 8)]


def get_init_inputs():
    return []
