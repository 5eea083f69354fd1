"""What runs beside learners' code. workshop comes first: it has kernels run on the executor where no GPU is."""

import workshop  # noqa: F401
