"""Convolution, mean pool, sigmoid, sum."""

import torch
import torch.nn.functional as F
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3)

    def forward(self, x):
        return torch.sum(torch.sigmoid(F.avg_pool2d(self.conv(x), 2)), dim=[1, 2, 3])


def get_inputs():
    return [torch.rand(4, 3, 18, 18)]


def get_init_inputs():
    return []
