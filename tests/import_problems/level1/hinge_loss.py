"""Hinge loss."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, predictions, targets):
        return torch.mean(torch.clamp(1 - predictions * targets, min=0))


def get_inputs():
    return [torch.rand(64), torch.randint(0, 2, (64,)).float() * 2 - 1]


def get_init_inputs():
    return []
