"""Scaled dot-product attention of one head."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, q, k, v):
        weights = torch.softmax(q @ k.transpose(-2, -1) / 4.0, dim=-1)
        return weights @ v


def get_inputs():
    return [torch.rand(2, 24, 16), torch.rand(2, 24, 16), torch.rand(2, 24, 16)]


def get_init_inputs():
    return []
