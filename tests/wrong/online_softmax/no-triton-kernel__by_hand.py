import torch


def online_softmax(x):
    e = torch.exp(x.float() - x.float().max(dim=1, keepdim=True).values) if x.shape[0] else x.float()
    return (e / e.sum(dim=1, keepdim=True)).to(x.dtype)
