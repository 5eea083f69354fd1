"""Wrong answers to read_the_isa that are edits of a right one."""

from autograder.gallery import Edit

EDITS = (
    Edit(
        "wrong-dtype", "text",
        {'return {"vgprs": 64, "lds_bytes": 16, "load_bits": 128, "spills": spills}':
         'return {"vgprs": "64", "lds_bytes": "16", "load_bits": "128", "spills": str(spills)}'},
        of="by_version",
    ),
    Edit(
        "wrong-value", "accumulation_registers",
        {'return {"vgprs": 64, "lds_bytes": 16, "load_bits": 128, "spills": spills}':
         'return {"vgprs": 0, "lds_bytes": 16, "load_bits": 128, "spills": spills}'},
        of="by_version",
    ),
    Edit(
        "wrong-value", "bytes",
        {'return {"vgprs": 64, "lds_bytes": 16, "load_bits": 128, "spills": spills}':
         'return {"vgprs": 64, "lds_bytes": 16, "load_bits": 16, "spills": spills}'},
        of="by_version",
    ),
    Edit(
        "wrong-value", "double_words",
        {'return {"vgprs": 64, "lds_bytes": 16, "load_bits": 128, "spills": spills}':
         'return {"vgprs": 64, "lds_bytes": 16, "load_bits": 4, "spills": spills}'},
        of="by_version",
    ),
    Edit(
        "wrong-value", "no_lds",
        {'return {"vgprs": 64, "lds_bytes": 16, "load_bits": 128, "spills": spills}':
         'return {"vgprs": 64, "lds_bytes": 0, "load_bits": 128, "spills": spills}'},
        of="by_version",
    ),
    Edit("wrong-value", "spills_misread", {"spills[triton.__version__[:3]]": "7"}),
    Edit(
        "wrong-value", "vgprs_misread",
        {'return {"vgprs": 64, "lds_bytes": 16': 'return {"vgprs": 60, "lds_bytes": 16'},
    ),
)
