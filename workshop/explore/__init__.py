# ruff: noqa: F401  lessons take these names from here
"""Pictures that move: change a number and see what a kernel does with it.

Each function here returns something that a notebook shows with sliders, with or without a kernel. Outside of a notebook
the same object prints as text.
"""

from workshop.explore.compiled import difference, occupancy, programs
from workshop.explore.launches import launch_grid, memory_traffic
from workshop.explore.matmul import l2_tiles, recorded_products, roofline, tile_walk
from workshop.explore.predict import Prediction, predict, predict_bytes
from workshop.explore.softmax import online_softmax, online_softmax_steps, passes
