"""The exercises in the order they are taught, with the points each can earn."""

from dataclasses import dataclass

from workshop.advice import did_you_mean


@dataclass(frozen=True)
class Lesson:
    """One exercise of the course. A stretch exercise is for those who want more."""

    name: str
    notebook: str
    points: int
    stretch: bool = False


SYLLABUS = {
    lesson.name: lesson
    for lesson in (
        Lesson("first_kernel", "00_setup", 1),
        Lesson("vector_add", "01_vector_add", 5),
        Lesson("vector_add_autotuned", "01_vector_add", 3),
        Lesson("bug_hunt", "01_vector_add", 3),
        Lesson("outer_add", "01b_tiles", 2),
        Lesson("row_bias", "01b_tiles", 2),
        Lesson("transpose", "01b_tiles", 2),
        Lesson("column_sum", "01b_tiles", 2),
        Lesson("gather_rows", "01b_tiles", 2),
        Lesson("lost_lane", "01b_tiles", 2),
        Lesson("found_race", "01b_tiles", 2),
        Lesson("found_nan", "01b_tiles", 2),
        Lesson("scale_vector", "02_naive_softmax", 1),
        Lesson("bytes_moved", "02_naive_softmax", 2),
        Lesson("naive_softmax", "02_naive_softmax", 4),
        Lesson("row_sum", "03_online_softmax", 1),
        Lesson("online_softmax", "03_online_softmax", 5),
        Lesson("online_softmax_masked", "03_online_softmax", 2),
        Lesson("row_max_and_sum", "04_fused_softmax", 1),
        Lesson("fused_softmax", "04_fused_softmax", 4),
        Lesson("occupancy_launch", "04_fused_softmax", 3),
        Lesson("wide_softmax", "04_fused_softmax", 3),
        Lesson("leaky_dropout", "05_jax_dropout", 4),
        Lesson("leaky_dropout_grad", "05_jax_dropout", 3, stretch=True),
        Lesson("read_the_isa", "06_amd_optimization", 3),
        Lesson("occupancy", "06_amd_optimization", 3),
        Lesson("tune_for_mi300x", "06_amd_optimization", 4),
        Lesson("weighted_sum", "07_attention_decode", 1),
        Lesson("decode_scores", "07_attention_decode", 2),
        Lesson("decode_attention", "07_attention_decode", 4),
        Lesson("split_decode_attention", "07_attention_decode", 4),
        Lesson("paged_decode_attention", "07_attention_decode", 4, stretch=True),
        Lesson("int8_decode_attention", "07_attention_decode", 3, stretch=True),
        Lesson("logsumexp_rows", "08_backward", 1),
        Lesson("softmax_backward", "08_backward", 3),
        Lesson("cross_entropy", "08_backward", 4),
        Lesson("rms_norm_weight_grad", "08_backward", 3),
        Lesson("add_2d", "09_matmul", 1),
        Lesson("tile_dot", "09_matmul", 5),
        Lesson("matmul", "09_matmul", 4),
        Lesson("swizzle", "09_matmul", 2),
        Lesson("linear_gelu", "09_matmul", 3),
        Lesson("skinny_matmul", "09_matmul", 3, stretch=True),
        Lesson("rms_norm", "10_ship_it", 5),
        Lesson("rms_norm_op", "10_ship_it", 3),
    )
}


def find(name: str) -> Lesson:
    """The exercise of that name. Raises ValueError that names similar ones."""
    try:
        return SYLLABUS[name]
    except KeyError:
        raise ValueError(f"there is no exercise {name!r}. {did_you_mean(name, SYLLABUS)}") from None
