"""Twice the size, between neighbours."""

import torch
import torch.nn.functional as F
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return F.interpolate(x, scale_factor=2, mode="bilinear")


def get_inputs():
    return [torch.randn(1, 2, 6, 6)]


def get_init_inputs():
    return []
