"""A recurrent layer."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.LSTM(6, 5)

    def forward(self, x):
        return self.cell(x)[0]


def get_inputs():
    return [torch.rand(3, 2, 6)]


def get_init_inputs():
    return []
