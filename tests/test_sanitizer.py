"""What compute-sanitizer prints, and what the judge makes of it. The tool itself is tried in test_gpu.py."""

from autograder.box.compute_sanitizer import Access, parse

# compute-sanitizer 2025.3 on an H200, triton 3.6
LOG = """========= COMPUTE-SANITIZER
========= Invalid __global__ read of size 8 bytes
=========     at add_kernel+0xb0 in san.py:9
=========     by thread (116,0,0) in block (3,0,0)
=========     Access to 0x7f3c12800fa0 is out of bounds
=========     and is 1 bytes after the nearest allocation at 0x7f3c12800000 of size 4,000 bytes
========= 
========= ERROR SUMMARY: 14 errors
"""


def test_the_first_access_is_read():
    assert parse(LOG) == Access("load", 8, "add_kernel", 9, (3, 0, 0))
    assert parse(LOG.replace(" read ", " write ").replace("san.py", "<answer>")).kind == "store"


def test_a_clean_run_has_none():
    assert parse("========= COMPUTE-SANITIZER\n========= ERROR SUMMARY: 0 errors\n") is None
