"""Gated linear unit of two products."""

import torch
import torch.nn.functional as F
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(24, 48, bias=False)
        self.up = nn.Linear(24, 48, bias=False)
        self.down = nn.Linear(48, 24, bias=False)

    def forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))


def get_inputs():
    return [torch.rand(8, 24)]


def get_init_inputs():
    return []
