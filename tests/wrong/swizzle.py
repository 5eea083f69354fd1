"""Wrong answers to swizzle that are edits of a right one."""

from autograder.gallery import Edit

EDITS = (
    Edit(
        "wrong-value", "row_by_row",
        {
            "pid_m = first_m + within % height":
            "pid_m = pid // num_n",
            "pid_n = within // height":
            "pid_n = pid % num_n",
        },
    ),
    Edit(
        "wrong-value", "column_by_column",
        {
            "pid_m = first_m + within % height":
            "pid_m = pid % num_m",
            "pid_n = within // height":
            "pid_n = pid // num_m",
        },
    ),
    Edit(
        "wrong-value", "last_group_too_high",
        {
            "height = min(num_m - first_m, group)":
            "height = group",
        },
    ),
    Edit(
        "wrong-value", "rows_inside_a_group",
        {
            "first_m + within % height":
            "first_m + within // num_n",
            "pid_n = within // height":
            "pid_n = within % num_n",
        },
    ),
    Edit(
        "wrong-value", "exchanged",
        {
            "return pid_m, pid_n":
            "return pid_n, pid_m",
        },
    ),
    Edit(
        "wrong-value", "each_group_from_row_0",
        {
            "pid_m = first_m + within % height":
            "pid_m = within % height",
        },
    ),
    Edit(
        "wrong-value", "column_by_the_whole_group",
        {
            "pid_n = within // height":
            "pid_n = within // group",
        },
    ),
    Edit(
        "wrong-shape", "one_number",
        {
            "return pid_m, pid_n":
            "return pid_m * num_n + pid_n",
        },
    ),
    Edit(
        "wrong-value", "group_number_not_row",
        {
            "first_m = pid // (group * num_n) * group":
            "first_m = pid // (group * num_n)",
        },
    ),
    Edit(
        "wrong-value", "product_with_the_reciprocal",
        {"first_m = pid // (group * num_n) * group":
         "first_m = int(pid * (1 / (group * num_n))) * group"},
    ),
    Edit(
        "wrong-value", "kept_for_each_size_of_the_grid",
        {"def swizzle(pid, num_m, num_n, group):":
         "heights = {}\n"
         "\n"
         "\n"
         "def swizzle(pid, num_m, num_n, group):\n"
         "    group = heights.setdefault((num_m, num_n), group)"},
    ),
    Edit(
        "wrong-value", "number_in_the_grid_for_that_in_the_group",
        {"within % height":
         "pid % height"},
        "Triton's own tutorial had this line once.",
    ),
)
