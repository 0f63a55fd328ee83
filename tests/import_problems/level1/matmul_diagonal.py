"""Diagonal times matrix."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, a, b):
        return torch.diag(a) @ b


def get_inputs():
    return [torch.rand(64), torch.rand(64, 48)]


def get_init_inputs():
    return []
