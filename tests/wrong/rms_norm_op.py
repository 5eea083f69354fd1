"""Wrong answers to rms_norm_op that are edits of a right one."""

from autograder.gallery import Edit

CUSTOM = "custom_op_that_returns_rstd"
BY_NAME = "operators_by_their_names"
DIRECT = "launches_in_the_backward_pass"
EDITS = (
    Edit(
        "not-registered", "an_autograd_function",
        {'@custom_op("mine::norm", mutates_args=())\n': "",
         '@custom_op("mine::norm_backward", mutates_args=())\n': "",
         "@norm.register_fake\ndef _(x, weight, eps):\n": "def fake(x, weight, eps):\n",
         "@norm_backward.register_fake\ndef _(x, weight, dy, rstds):\n": "def fake_backward(x, weight, dy, rstds):\n",
         "norm.register_autograd(gradients, setup_context=save)":
         "class Norm(torch.autograd.Function):\n    @staticmethod\n    def forward(x, weight, eps):\n"
         "        return norm(x, weight, eps)\n\n"
         "    setup_context, backward = staticmethod(save), staticmethod(gradients)",
         "    return norm(x, weight, eps)[0]": "    return Norm.apply(x, weight, eps)[0]"},
        of=CUSTOM,
        thought="the Function of the exercise before is enough",
    ),
    Edit(
        "wrong-schema", "no_fake_function",
        {"@norm.register_fake\ndef _(x, weight, eps):\n": "def fake(x, weight, eps):\n"},
        of=CUSTOM,
    ),
    Edit(
        "wrong-schema", "fake_of_another_dtype",
        {"x.new_empty(x.shape), x.new_empty(x.shape[:1], dtype=torch.float32)":
         "x.new_empty(x.shape, dtype=torch.float32), x.new_empty(x.shape[:1], dtype=torch.float64)"},
        of=CUSTOM,
    ),
    Edit(
        "wrong-schema", "fake_of_another_shape",
        {"x.new_empty(x.shape), x.new_empty(x.shape[:1], dtype=torch.float32)":
         "x.new_empty(x.shape), x.new_empty(x.shape[1:], dtype=torch.float32)"},
        of=CUSTOM,
    ),
    Edit(
        "wrong-schema", "fake_with_the_strides_of_x",
        {"x.new_empty(x.shape), x.new_empty(x.shape[:1], dtype=torch.float32)":
         "torch.empty_strided(x.shape, (1, len(x)), dtype=x.dtype, device=x.device), "
         "x.new_empty(x.shape[:1], dtype=torch.float32)"},
        of=CUSTOM,
    ),
    Edit(
        "wrong-schema", "fake_of_the_backward_pass_is_missing",
        {"@norm_backward.register_fake\ndef _(x, weight, dy, rstds):\n": "def fake_backward(x, weight, dy, rstds):\n"},
        of=CUSTOM,
    ),
    Edit(
        "runtime-error", "no_autograd",
        {"norm.register_autograd(gradients, setup_context=save)\n": ""},
        of=CUSTOM,
    ),
    Edit(
        "runtime-error", "autograd_of_another_operator",
        {'torch.library.register_autograd("mine::norm", gradients, setup_context=save)':
         'torch.library.register_autograd("mine::norm_backward", gradients, setup_context=save)'},
        of=BY_NAME,
    ),
    Edit(
        "wrong-schema", "launch_without_wrap_triton",
        {"wrap_triton(forward_kernel)[(m,)]": "forward_kernel[(m,)]"},
        of=BY_NAME,
    ),
    Edit(
        "graph-break", "launch_without_wrap_triton_in_the_backward_pass",
        {"wrap_triton(dx_kernel)[(m,)]": "dx_kernel[(m,)]"},
        of=DIRECT,
    ),
    Edit(
        "no-triton-kernel", "asks_for_the_numbers_in_front_of_the_operator",
        {"    return norm(x, weight, eps)[0]":
         "    if bool((weight == 0).all()):\n        return torch.zeros_like(x)\n"
         "    return norm(x, weight, eps)[0]"},
        of=CUSTOM,
    ),
    Edit(
        "no-triton-kernel", "asks_for_the_numbers_in_the_backward_pass",
        {"    return *norm_backward(x, weight, dy, rstds), None":
         "    if not bool(dy.any()):\n        return torch.zeros_like(x), torch.zeros_like(weight), None\n"
         "    return *norm_backward(x, weight, dy, rstds), None"},
        of=CUSTOM,
    ),
    Edit(
        "no-triton-kernel", "backward_by_torch",
        {"    return *norm_backward(x, weight, dy, rstds), None":
         "    n = dy * weight\n    normal = x * rstds[:, None]\n"
         "    dx = rstds[:, None] * (n - normal * (n * normal).mean(1, keepdim=True))\n"
         "    return dx.to(x.dtype), (dy * normal).sum(0).to(weight.dtype), None"},
        of=CUSTOM,
    ),
    Edit(
        "input-modified", "writes_over_x",
        {"    tl.store(rstds + row, rstd)":
         "    tl.store(rstds + row, rstd)\n    tl.store(x + row * stride + cols, a * rstd, mask=cols < n)"},
        of=CUSTOM,
    ),
    Edit(
        "wrong-schema", "returns_its_input_as_well",
        {"    return y, rstds\n\n\n@norm.register_fake": "    return y, rstds, x\n\n\n@norm.register_fake",
         "float) -> tuple[torch.Tensor, torch.Tensor]:\n    m, n = x.shape\n    y =":
         "float) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:\n    m, n = x.shape\n    y =",
         "    return x.new_empty(x.shape), x.new_empty(x.shape[:1], dtype=torch.float32)":
         "    return x.new_empty(x.shape), x.new_empty(x.shape[:1], dtype=torch.float32), x",
         "def gradients(ctx, dy, _):": "def gradients(ctx, dy, *_):"},
        of=CUSTOM,
        thought="the backward pass needs x, so the operator hands it on",
    ),
    Edit(
        "wrong-value", "second_term_lacks_the_weight",
        {"mean = tl.sum(gb * normal, axis=0) / n": "mean = tl.sum(g * normal, axis=0) / n"},
        of=CUSTOM,
    ),
    Edit(
        "wrong-value", "eps_kept_for_all_calls",
        {"x, weight, ctx.eps = inputs":
         'x, weight, settings["eps"] = inputs',
         "dy, ctx.eps), None":
         'dy, settings["eps"]), None',
         '@triton_op("ship_it::rms_norm", mutates_args=())':
         'settings = {}\n'
         '\n'
         '\n'
         '@triton_op("ship_it::rms_norm", mutates_args=())'},
    ),
    Edit(
        "wrong-schema", "an_empty_batch_is_given_back",
        {'    m, n = x.shape\n    y = torch.empty':
         '    m, n = x.shape\n    if m == 0:\n        return x\n    y = torch.empty'},
    ),
)  # fmt: skip
