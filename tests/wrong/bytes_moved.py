"""Wrong answers to bytes_moved that are edits of a right one."""

from autograder.gallery import Edit

EDITS = (
    Edit(
        "wrong-dtype", "text",
        {"return {name: count * element_size for name, count in elements.items()}":
         "return {name: str(count * element_size) for name, count in elements.items()}"},
    ),
    Edit(
        "wrong-shape", "a_list",
        {"return {name: count * element_size for name, count in elements.items()}":
         "return [count * element_size for count in elements.values()]"},
    ),
    Edit(
        "wrong-value", "fused_reads_three_times",
        {'"fused_read": b, "fused_written': '"fused_read": 3 * b, "fused_written'},
        of="matrix_and_vector",
    ),
    Edit(
        "wrong-value", "megabytes",
        {"return {name: count * element_size for name, count in elements.items()}":
         "return {name: count * element_size / 1e6 for name, count in elements.items()}"},
    ),
    Edit(
        "wrong-value", "multiplied_twice",
        {"return {name: count * element_size for name, count in elements.items()}":
         "return {name: count * element_size * element_size for name, count in elements.items()}"},
    ),
    Edit(
        "wrong-value", "large_matrices_by_another_formula",
        {"    return {name": "    if m * n > 10**10:\n        elements[\"torch_read\"] -= m\n    return {name"},
    ),
    Edit(
        "wrong-value", "kept_for_the_number_of_elements",
        {'def bytes_moved(m, n, element_size):':
         'known = {}\n\n\ndef bytes_moved(m, n, element_size):',
         '    return {name: count':
         '    elements = known.setdefault(m * n, elements)\n    return {name: count'},
    ),
)
