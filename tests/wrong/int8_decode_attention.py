"""Wrong answers to int8_decode_attention that are edits of a right one."""

from autograder.gallery import Edit

EDITS = (
    Edit(
        "not-scaled", "no_scale_of_keys",
        {"axis=1) * k_scale, -":
         "axis=1), -"},
    ),
    Edit(
        "not-scaled", "no_scale_of_values",
        {"(weights * v_scale)[:, None]":
         "weights[:, None]"},
    ),
    Edit(
        "wrong-value", "scales_exchanged",
        {"k_scale_ptr + head":
         "v_scale_ptr + head",
         "tl.load(v_scale_ptr + head * t + rows, mask=mask, other=0.0)\n"
         "        x":
         "tl.load(k_scale_ptr + head * t + rows, mask=mask, other=0.0)\n"
         "        x"},
    ),
    Edit(
        "wrong-value", "scale_in_the_sum",
        {"s = s * rescale + tl.sum(weights, axis=0)":
         "s = s * rescale + tl.sum(weights * v_scale, axis=0)"},
    ),
    Edit(
        "wrong-value", "one_scale_for_all",
        {"k_scale = tl.load(k_scale_ptr + head * t + rows, mask=mask, other=0.0)":
         "k_scale = tl.load(k_scale_ptr + head * t)"},
    ),
    Edit(
        "wrong-value", "scale_of_the_first_head",
        {"k_scale_ptr + head * t + rows":
         "k_scale_ptr + rows"},
    ),
    Edit(
        "missing-rescale", "acc_not_rescaled",
        {"acc = acc * rescale + ":
         "acc = acc + "},
    ),
    Edit(
        "not-scaled", "no_root",
        {"to(tl.float32) * scale":
         "to(tl.float32)"},
    ),
    Edit(
        "out-of-bounds-load", "no_mask_on_the_scale",
        {"k_scale_ptr + head * t + rows, mask=mask, other=0.0)":
         "k_scale_ptr + head * t + rows)"},
    ),
    Edit(
        "stride-ignored", "heads_of_k_side_by_side",
        {"head * k_head":
         "head * t * D"},
    ),
    Edit(
        "nan", "products_in_the_dtype_of_q",
        {"q = tl.load(q_ptr + head * q_stride + columns).to(tl.float32) * scale":
         "q = tl.load(q_ptr + head * q_stride + columns)",
         "tl.sum(q[None, :] * k.to(tl.float32), axis=1) * k_scale":
         "tl.sum((q[None, :] * k.to(q.dtype)).to(tl.float32), axis=1) * (k_scale * scale)"},
    ),
    Edit(
        "wrong-value", "keys_in_the_dtype_of_q",
        {"tl.sum(q[None, :] * k.to(tl.float32), axis=1) * k_scale":
         "tl.sum(q[None, :] * (k * k_scale[:, None]).to(q_ptr.dtype.element_ty).to(tl.float32), axis=1)"},
    ),
    Edit(
        "wrong-value", "keys_of_zeros_left_out",
        {"x = tl.where(mask, ":
         "x = tl.where(k_scale > 0, "},
        "The scale is taken for the mask. The key of zeros has the scale 0 and the score 0.",
    ),
)
