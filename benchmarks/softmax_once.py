"""A script to profile: the fused softmax of lesson 4 and torch's own, ten launches each, 8192 × 8192 float32.

    ncu --section SpeedOfLight -k regex:rows_kernel -c 1 python benchmarks/softmax_once.py
    proton -n softmax benchmarks/softmax_once.py && proton-viewer -m time/us,time/% softmax.hatchet
    rocprofv3 --kernel-trace --stats -d profile -- python benchmarks/softmax_once.py

What the first two print on an H200 is in recorded/h200_ncu.txt and recorded/h200_proton.txt.
"""

import torch
from kernels.softmax import rows_softmax

x = torch.randn(8192, 8192, device="cuda")
for _ in range(10):
    rows_softmax(x)
    torch.softmax(x, dim=1)
torch.cuda.synchronize()
