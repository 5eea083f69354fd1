"""Pictures that move: change a number and see what a kernel does with it. One picture per file.

Each function here returns something that a notebook shows with sliders, with or without a kernel. Outside of a notebook
the same object prints as text.
"""

from workshop.explore.compute_unit import occupancy
from workshop.explore.difference import difference
from workshop.explore.grid import launch_grid
from workshop.explore.l2_tiles import l2_tiles
from workshop.explore.multiprocessor import programs
from workshop.explore.passes import passes
from workshop.explore.predict import Prediction, predict, predict_bytes
from workshop.explore.roofline import recorded_products, roofline
from workshop.explore.softmax_steps import online_softmax, online_softmax_steps
from workshop.explore.tensors import memory_traffic
from workshop.explore.tile_walk import tile_walk

__all__ = [
    "Prediction",
    "difference",
    "l2_tiles",
    "launch_grid",
    "memory_traffic",
    "occupancy",
    "online_softmax",
    "online_softmax_steps",
    "passes",
    "predict",
    "predict_bytes",
    "programs",
    "recorded_products",
    "roofline",
    "tile_walk",
]
