"""Arguments by name, of the constructor and of forward; tensors in a list."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, size, width=2):
        super().__init__()
        self.linear = nn.Linear(size, width)

    def forward(self, *, parts, scale):
        y = self.linear(torch.cat(parts, dim=1))
        return {"scaled": y * scale, "total": y.sum()}


def get_inputs():
    return {"parts": [torch.randn(8, 3), torch.randn(8, 5)], "scale": 0.5}


def get_init_inputs():
    return [[8], {"width": 4}]
