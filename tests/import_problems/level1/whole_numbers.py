"""Integers: quotients rounded down, remainders, bits, and a product that overflows."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, a, b):
        return (a * b - 7) // b, a % b, ((a ^ b) & ~15) | (a >> 3), a * 1103515245 + 12345, a.clamp(min=3)


def get_inputs():
    return [torch.randint(-1000, 1000, (64,), dtype=torch.int32), torch.randint(1, 50, (64,), dtype=torch.int32)]


def get_init_inputs():
    return []
