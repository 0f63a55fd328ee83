"""Three linear layers with ReLU."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(20, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 5))

    def forward(self, x):
        return self.layers(x)


def get_inputs():
    return [torch.rand(8, 20)]


def get_init_inputs():
    return []
