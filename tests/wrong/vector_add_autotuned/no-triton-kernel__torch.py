import torch


def add_autotuned(x, y):
    return torch.add(x, y)
