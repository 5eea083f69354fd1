"""A driver for machines without a GPU, so that host code which asks Triton for its device still runs.

Triton's own tutorial computes the number of persistent programs from the driver's device properties, and
autotune asks the driver for a stopwatch. This one answers with a small made-up device of two compute units, so that
a persistent kernel has to loop, and a stopwatch that always says 1 ms, so that autotune takes the first
configuration. No lesson shows its numbers as properties of real hardware.
"""

from __future__ import annotations

import torch
import triton
from triton.backends.compiler import GPUTarget

TARGET = "gfx942"
PROPERTIES = {
    "multiprocessor_count": 2,
    "max_num_regs": 65536,
    "max_shared_mem": 65536,
    "warpSize": 64,
    "sm_clock_rate": 0,
    "mem_clock_rate": 0,
    "mem_bus_width": 0,
}


class StandInDriver:
    target = GPUTarget("hip", TARGET, 64)  # what is compiled for

    class utils:
        @staticmethod
        def get_device_properties(device):
            return dict(PROPERTIES)

    def get_current_target(self):
        return self.target

    def get_active_torch_device(self):
        return torch.device("cpu")

    def get_current_device(self):
        return 0

    def get_current_stream(self, device=0):
        return 0

    def get_device_interface(self):
        return torch.cpu

    def get_benchmarker(self):
        return lambda function, *, quantiles=None, **_: [1.0] * len(quantiles or [0])

    def is_active(self):
        return True


def install():
    triton.runtime.driver.set_active(StandInDriver())
