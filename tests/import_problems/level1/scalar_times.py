"""Matrix times scalar."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, factor):
        super().__init__()
        self.factor = factor

    def forward(self, a):
        return a * self.factor


def get_inputs():
    return [torch.rand(16, 256)]


def get_init_inputs():
    return [3.14]
