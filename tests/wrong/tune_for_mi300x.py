"""Wrong answers to tune_for_mi300x that are edits of a right one."""

from autograder.gallery import Edit

EDITS = (
    Edit(
        "not-attempted", "none",
        {'return {"BLOCK_SIZE": 4096, "num_warps": 8, "waves_per_eu": 0, "num_stages": 1}': "return None"},
    ),
    Edit(
        "wrong-shape", "no_dict",
        {'return {"BLOCK_SIZE": 4096, "num_warps": 8, "waves_per_eu": 0, "num_stages": 1}': "return 4096, 8, 0, 1"},
    ),
    Edit(
        "wrong-value", "missing_key",
        {'return {"BLOCK_SIZE": 4096, "num_warps": 8, "waves_per_eu": 0, "num_stages": 1}':
         'return {"BLOCK_SIZE": 4096, "num_warps": 8}'},
    ),
)
