import torch


def add(x, y):
    numbers = [0.0] * (1 << 40)
    return torch.tensor(numbers)
