"""Product of lower triangles."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, a, b):
        return torch.tril(torch.matmul(torch.tril(a), torch.tril(b)))


def get_inputs():
    return [torch.rand(48, 48), torch.rand(48, 48)]


def get_init_inputs():
    return []
