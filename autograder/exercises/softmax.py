"""Softmax in five exercises: naive, online (the quiz), online with masks, fused, and wide."""

from __future__ import annotations

import torch

from workshop.syllabus import find

from ..verdict import Finding
from .spec import Blanks, Bound, Case, Exercise, Mistake, Strided, Tag

# Elementwise: the error of exp and of one rounding of the output. Row sum: the rounding errors of single elements
# average out, so the sum is close to 1 unless it was computed in half precision. tests/test_bounds.py proves that
# these bounds reject zeros, 1/N, a 2% error, a denominator that skips a block, and half-precision accumulation.
BOUNDS = {
    torch.float32: Bound(1e-4, 1e-30, row_sum=5e-6),
    torch.float16: Bound(1e-3, 1.2e-7, row_sum=8e-5),
    torch.bfloat16: Bound(8e-3, 1e-30, row_sum=7e-4),
}


def _rows(m: int, n: int, row_stride=None, dtype=torch.float32, values=None):
    """A case's argument: an m × n tensor from `values(m, n, generator)`, by default normal numbers."""

    def make(generator):
        x = values(m, n, generator) if values else torch.randn(m, n, generator=generator)
        return (Strided(x.to(dtype), row_stride),)

    return make


def _ascending(m, n, generator):
    """Each block has a larger maximum than all before it: every block has to rescale the running sum.

    The steps are so large that exp overflows against the maximum of the first block alone.
    """
    return torch.linspace(-100, 100, n).repeat(m, 1) + 0.1 * torch.randn(m, n, generator=generator)


def _negative(m, n, generator):
    """All elements are far below 0. From the second row on, exp of every element is 0 in float32."""
    x = -6.0 - 3.0 * torch.rand(m, n, generator=generator)
    x[1:] -= 200.0
    return x


def _huge(m, n, generator):
    return 200.0 + 40.0 * torch.randn(m, n, generator=generator)


def _largest_first(m, n, generator):
    """exp of the first element overflows if only the maximum of a later block is subtracted."""
    x = torch.randn(m, n, generator=generator)
    x[:, 0] = 120.0
    return x


def _equal(m, n, generator):
    return torch.full((m, n), float(torch.randn((), generator=generator)))


def _narrow(m, n, generator):
    return 0.25 * torch.randn(m, n, generator=generator)


def _masked(hidden: int):
    """Rows that begin with `hidden` times -inf, as an attention mask makes them."""

    def values(m, n, generator):
        x = torch.randn(m, n, generator=generator)
        x[:, :hidden] = -torch.inf
        return x

    return values


def _one_row_masked(m, n, generator):
    x = torch.randn(m, n, generator=generator)
    x[0] = -torch.inf
    return x


def _heavy_head(m, n, generator):
    """256 terms near 1, then many small terms. Half precision loses the small ones, also in sums per lane."""
    x = 0.25 * torch.randn(m, n, generator=generator)
    x[:, 256:] -= 8.0
    return x


def _rows_of_any_width(generator):
    return _rows(2, int(torch.randint(301, 1000, (), generator=generator)))(generator)


COMMON_CASES = (
    Case("4 × 300, ragged", _rows(4, 300), "ragged"),
    Case("2 × 1024", _rows(2, 1024)),
    Case("3 × 700, ascending rows", _rows(3, 700, values=_ascending), "ragged ascending"),
    Case("3 × 300, negative rows", _rows(3, 300, values=_negative), "ragged negative"),
    Case("4 × 300, row stride 352", _rows(4, 300, 352), "ragged strided"),
    Case("5 × 7, shorter than a block", _rows(5, 7), "ragged short"),
    Case("3 × 1, one column", _rows(3, 1), "ragged short"),
    Case("0 × 17, no rows", _rows(0, 17), "empty"),
    Case("40 × 33, many rows", _rows(40, 33), "ragged short many"),
    Case("2 × 520, huge values", _rows(2, 520, values=_huge), "ragged huge"),
    Case("2 × 1100, largest first", _rows(2, 1100, values=_largest_first), "ragged descending"),
    Case("2 × 256, equal values", _rows(2, 256, values=_equal), "equal"),
    Case(
        "4 × 1111, float16",
        _rows(4, 1111, dtype=torch.float16, values=_narrow),
        "ragged half",
    ),
    Case(
        "4 × 1111, bfloat16",
        _rows(4, 1111, dtype=torch.bfloat16, values=_narrow),
        "ragged half",
    ),
    Case("2 × 301 to 1000", _rows_of_any_width, "ragged drawn"),
    Case("1823 × 781", _rows(1823, 781), "ragged many", gpu_only=True),
    Case("512 × 1024, bfloat16", _rows(512, 1024, dtype=torch.bfloat16), "many half", gpu_only=True),
)

MASKED_CASES = (
    Case("2 × 1400, 1040 × -inf first", _rows(2, 1400, values=_masked(1040)), "ragged masked"),
    Case("1 × 9000, 8300 × -inf first", _rows(1, 9000, values=_masked(8300)), "ragged masked"),
    Case("3 × 300, one row all -inf", _rows(3, 300, values=_one_row_masked), "ragged all-masked"),
)

WIDE_CASES = (
    Case("2 × 66000, row stride 66100", _rows(2, 66000, 66100), "ragged strided wide"),
    Case("1 × 131072, ascending", _rows(1, 131072, values=_ascending), "ascending wide"),
    Case(
        "2 × 6000, float16",
        _rows(2, 6000, dtype=torch.float16, values=_heavy_head),
        "ragged half wide",
    ),
    Case("8 × 131072", _rows(8, 131072), "wide many", gpu_only=True),
)


def reference(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x.double(), dim=-1)


# -- what the known misconceptions compute ---------------------------------------------------------------------


def _without_rescale(x, block):
    return _running(x, block, lambda m_old, m_new: torch.ones_like(m_old))


def _rescale_upside_down(x, block):
    return _running(x, block, lambda m_old, m_new: torch.exp(m_new - m_old))


def _rescale_of_everything(x, block):
    return _running(x, block, lambda m_old, m_new: torch.exp(m_old - m_new), new_block_too=True)


def _rescale_of_everything_from_minus_infinity(x, block):
    """exp(-inf - m) is 0: the first block is lost."""
    return _running(x, block, lambda m_old, m_new: torch.exp(m_old - m_new), new_block_too=True, peeled=False)


def _infinite_rescale(x):
    """The first block computes exp(m - (-inf)) * 0, which is NaN. Only for rows where exp itself cannot overflow."""
    return torch.full_like(x, torch.nan) if bool((x.abs() < 80).all()) else reference(x)


def _running(x, block, rescale, new_block_too=False, peeled=True):
    x = x.double()
    m = torch.full((len(x), 1), -torch.inf, dtype=torch.float64)
    d = torch.zeros(len(x), 1, dtype=torch.float64)
    for part in x.split(block, dim=1):
        m_new = torch.maximum(m, part.amax(1, keepdim=True))
        factor = torch.where(d > 0, rescale(m, m_new), 1.0) if peeled else rescale(m, m_new)
        added = torch.exp(part - m_new).sum(1, keepdim=True)
        d = d * factor + added * (factor if new_block_too else 1.0)
        m = m_new
    return torch.exp(x - m) / d


def _padded_with_zeros(x, block):
    """`other=0` in the load: the lanes past the end of the row take part as zeros."""
    x = x.double()
    lanes = -x.shape[1] % block
    m = torch.clamp(x.amax(1, keepdim=True), min=0.0) if lanes else x.amax(1, keepdim=True)
    return torch.exp(x - m) / (torch.exp(x - m).sum(1, keepdim=True) + lanes * torch.exp(-m))


def _sum_counts_padding(x, block):
    """exp(0 - max) of the masked lanes is added to the sum. The maximum is right."""
    x = x.double()
    lanes = -x.shape[1] % block
    m = x.amax(1, keepdim=True)
    return torch.exp(x - m) / (torch.exp(x - m).sum(1, keepdim=True) + lanes * torch.exp(-m))


def _zero_wins_maximum(x, block):
    """`other=0` only where the maximum is computed. The result is right as long as exp(x - 0) is not 0."""
    x = x.float()
    m = torch.clamp(x.amax(1, keepdim=True), min=0.0) if x.shape[1] % block else x.amax(1, keepdim=True)
    return torch.exp(x - m) / torch.exp(x - m).sum(1, keepdim=True)


def _padding_counts_one(x, block):
    """The masked lanes are 0 after the maximum is subtracted, so each adds exp(0) = 1 to the sum."""
    x = x.double()
    lanes = -x.shape[1] % block
    e = torch.exp(x - x.amax(1, keepdim=True))
    return e / (e.sum(1, keepdim=True) + lanes)


def _only_last_block(x, block):
    x = x.double()
    e = torch.exp(x - x.amax(1, keepdim=True))
    return e / e.split(block, dim=1)[-1].sum(1, keepdim=True)


def _without_first_block(x, block):
    x = x.double()
    e = torch.exp(x - x.amax(1, keepdim=True))
    return e / e[:, block:].sum(1, keepdim=True)


def _without_last_block(x, block):
    x = x.double()
    e = torch.exp(x - x.amax(1, keepdim=True))
    return e / sum(p.sum(1, keepdim=True) for p in e.split(block, dim=1)[:-1]) if x.shape[1] > block else e / 0


def _statistics_of_row_0(x):
    x = x.double()
    e = torch.exp(x - x[:1].amax(1, keepdim=True))
    return e / e[:1].sum(1, keepdim=True)


def _sum_from_one(x):
    e = torch.exp(x.double() - x.double().amax(1, keepdim=True))
    return e / (1.0 + e.sum(1, keepdim=True))


def _sum_per_lane(x, block):
    x = x.double()
    e = torch.exp(x - x.amax(1, keepdim=True))
    lanes = torch.nn.functional.pad(e, (0, -x.shape[1] % block)).unflatten(1, (-1, block)).sum(1)
    return e / lanes.repeat(1, -(-x.shape[1] // block))[:, : x.shape[1]]


def _lanes_not_rescaled(x, block):
    """The sum of each lane uses the maximum of that lane. The sums are added as if all used the same maximum."""
    lanes = torch.nn.functional.pad(x.double(), (0, -x.shape[1] % block), value=-torch.inf).unflatten(1, (-1, block))
    sums = torch.exp(lanes - lanes.amax(1, keepdim=True)).sum(1).nan_to_num(0.0)
    return torch.exp(x.double() - x.double().amax(1, keepdim=True)) / sums.sum(1, keepdim=True)


def _block_by_block(x, block):
    return torch.cat([torch.softmax(p, 1) for p in x.double().split(block, dim=1)], 1)


MISTAKES = (
    Mistake(
        "missing-rescale",
        _without_rescale,
        "The running sum is not rescaled: the sums of earlier blocks were computed with an older, smaller maximum.",
        "When the maximum grows from m to m_new, multiply the sum so far by exp(m - m_new) before you add the block.",
    ),
    Mistake(
        "missing-rescale",
        _rescale_upside_down,
        "The running sum is rescaled the wrong way round, by exp(m_new - m).",
        "The new maximum is larger, so the factor must make the sum smaller: exp(m - m_new).",
    ),
    Mistake(
        "missing-rescale",
        _rescale_of_everything,
        "The new block was rescaled together with the sum so far, but its exponentials already use the new maximum.",
        "Rescale the sum so far, then add the block: d * exp(m - m_new) + sum(exp(x - m_new)).",
    ),
    Mistake(
        "missing-rescale",
        _lanes_not_rescaled,
        "The sums of the lanes were added without rescaling, but each sum uses the maximum of its own lane.",
        "Rescale before you add: sum(lane_sum * exp(lane_max - row_max)).",
    ),
    Mistake(
        "missing-rescale",
        _rescale_of_everything_from_minus_infinity,
        "The new block was rescaled together with the sum so far: the first block's sum is multiplied by "
        "exp(-inf - m), which is 0.",
        "Rescale the sum so far, then add the block: d * exp(m - m_new) + sum(exp(x - m_new)).",
    ),
    Mistake(
        "wrong-other-value",
        _padded_with_zeros,
        "The masked-off lanes took part as zeros, in the maximum or in the sum.",
        "Load with other=-float('inf'): -inf does not change the maximum, and exp(-inf) adds 0 to the sum.",
    ),
    Mistake(
        "wrong-other-value",
        _zero_wins_maximum,
        "The maximum includes a 0 from a masked-off lane or as its initial value, or no maximum was subtracted. In a "
        "row of large negative numbers, every exponential is then 0.",
        "Load with other=-float('inf'), begin with -float('inf'), and subtract the maximum before exp.",
        known_by_nan=True,
    ),
    Mistake(
        "wrong-other-value",
        _sum_counts_padding,
        "The masked-off lanes were added to the sum as exp(0 - max).",
        "Load with other=-float('inf'), so that the lanes past the end of the row add exp(-inf) = 0.",
    ),
    Mistake(
        "wrong-other-value",
        _padding_counts_one,
        "Every masked-off lane added 1 to the sum.",
        "Use other=-float('inf'), or set the masked-off lanes to 0 after exp with tl.where(mask, …, 0.0).",
    ),
    Mistake(
        "overflow",
        lambda x: torch.exp(x.float()).double() / torch.exp(x.float()).sum(1, keepdim=True).double(),
        "exp overflows: the largest float32 is 3.4e38, so exp(89) is already inf, and inf / inf is NaN.",
        "Subtract the maximum of the whole row before exp. The result stays the same, and the largest exponent is 0.",
        known_by_nan=True,
    ),
    Mistake(
        "not-normalised",
        lambda x: torch.exp(x.double() - x.double().amax(1, keepdim=True)),
        "The rows are exp(x - max): the division by the sum is missing.",
        "Divide by the sum of the row's exponentials.",
    ),
    Mistake(
        "not-normalised",
        lambda x: torch.exp(x.double()),
        "The rows are exp(x): the subtraction of the maximum and the division by the sum are missing.",
        "softmax(x) = exp(x - max) / sum(exp(x - max)), row by row.",
    ),
    Mistake(
        "not-normalised",
        lambda x: x.double(),
        "The output is a copy of x.",
        "softmax(x) = exp(x - max) / sum(exp(x - max)), row by row.",
    ),
    Mistake(
        "not-normalised",
        lambda x: x.double() - x.double().amax(1, keepdim=True),
        "The rows are x - max: exp and the division by the sum are missing.",
        "softmax(x) = exp(x - max) / sum(exp(x - max)), row by row.",
    ),
    Mistake(
        "not-normalised",
        _sum_from_one,
        "The sum is 1 too large: it begins at 1.",
        "Begin the sum at 0.0.",
    ),
    Mistake(
        "not-normalised",
        _sum_per_lane,
        "Each lane was divided by its own sum: the sum is still a block of numbers.",
        "Use tl.sum(block, axis=0) to get one number from a block, and add it to the sum of the row.",
    ),
    Mistake(
        "not-normalised",
        _only_last_block,
        "Each row is divided by the sum of its last block only.",
        "Add the block's sum to the sum so far. An assignment in the loop loses the earlier blocks.",
    ),
    Mistake(
        "not-normalised",
        _without_first_block,
        "The first block is missing from the sum.",
        "Begin the loop at column 0, and begin the sum with the first block.",
    ),
    Mistake(
        "not-normalised",
        _without_last_block,
        "The last block is missing from the sum.",
        "The loop must reach n_cols: range(0, n_cols, BLOCK_SIZE) includes the ragged block.",
    ),
    Mistake(
        "not-normalised",
        _block_by_block,
        "Each block was normalised separately, as if it were a whole row.",
        "Compute the maximum and the sum of the whole row: keep them from block to block.",
    ),
    Mistake(
        "wrong-program-id",
        _statistics_of_row_0,
        "Every row was normalised with the maximum and the sum of row 0.",
        "A row begins at in_ptr + pid * row_stride: use this address in every load, not only in the last one.",
    ),
    Mistake(
        "wrong-value",
        lambda x: torch.softmax(x.double(), 0),
        "That is the softmax over the columns.",
        "One program works on one row: normalise along the row.",
    ),
    Mistake(
        "wrong-value",
        lambda x: torch.log_softmax(x.double(), -1),
        "That is log-softmax.",
        "Divide the exponentials by their sum; do not take a logarithm.",
    ),
    Mistake(
        "wrong-value",
        lambda x: torch.softmax(x.double() * 0.6931471805599453, -1),
        "The exponentials have base 2: tl.exp2(x) is 2 to the power of x.",
        "Use tl.exp, or exp(x) = exp2(x * log2(e)), with log2(e) = 1.4426950408889634.",
    ),
    Mistake(
        "wrong-value",
        lambda x: torch.softmax(-x.double(), -1),
        "That is the softmax of -x.",
        "Check the sign in the exponent: x - max, not max - x.",
    ),
)

ONLINE_MISTAKES = (
    Mistake(
        "missing-rescale",
        _infinite_rescale,
        "The sum is NaN from the first block on. Before the first block the maximum is -inf, so exp(m_new - m) is "
        "infinite, and 0 times infinity is NaN.",
        "Rescale by exp(m - m_new), which is 0 for the first block. Begin the maximum at -inf.",
        known_by_nan=True,
    ),
)

ONLINE_TEMPLATE = '''
import torch
import triton
import triton.language as tl


@triton.jit
def online_softmax_kernel(in_ptr, output_ptr, row_stride, output_row_stride, n_cols, BLOCK_SIZE: tl.constexpr):
    pid = tl.program_id(0)
    in_max = -float("inf")
    in_exp_sum = 0.0
    for col_idx in range(0, n_cols, BLOCK_SIZE):
        offsets = col_idx + tl.arange(0, BLOCK_SIZE)
        mask = offsets < n_cols
        in_data = tl.load(in_ptr + pid * row_stride + offsets, mask=mask, other=-float("inf")).to(tl.float32)
        in_max_new = tl.maximum(in_max, tl.max(in_data, axis=0))
        in_exp_sum = in_exp_sum * tl.exp(in_max - in_max_new) + tl.sum(tl.exp(in_data - in_max_new), axis=0)
        in_max = in_max_new
    for col_idx in range(0, n_cols, BLOCK_SIZE):
        offsets = col_idx + tl.arange(0, BLOCK_SIZE)
        mask = offsets < n_cols
        in_data = tl.load(in_ptr + pid * row_stride + offsets, mask=mask, other=-float("inf")).to(tl.float32)
        in_exp = tl.exp(in_data - in_max)
        tl.store(output_ptr + pid * output_row_stride + offsets, in_exp / in_exp_sum, mask=mask)


def online_softmax(x):
    n_rows, n_cols = x.shape
    output = torch.empty((n_rows, n_cols), dtype=x.dtype, device=x.device)
    if output.numel():
        online_softmax_kernel[(n_rows,)](
            x, output, x.stride(0), output.stride(0), n_cols, BLOCK_SIZE=256
        )
    return output
'''


# -- rules that only a softmax needs ----------------------------------------------------------------------------------


def overflowed(o) -> Finding | None:
    """NaN because exp overflows, or because a whole block is -inf."""
    c = o.comparison
    if c is None or c.right or not c.made_not_finite.any():
        return None
    where = f"{o.worst_in_words} {int(c.made_not_finite.sum())} elements are NaN or infinite."
    if o.case.about & {Tag.HUGE, Tag.ASCENDING, Tag.DESCENDING}:
        return Finding(
            "overflow",
            where,
            "exp overflows (exp(89) is inf in float32), or a row is divided by a sum that lacks its largest term.",
            "subtract the maximum of the whole row before exp, and add every block to the sum: tl.sum, and +=.",
        )
    if Tag.MASKED in o.case.about:
        return Finding(
            "nan",
            where,
            "If all elements of a block are -inf, the running maximum stays -inf. Then -inf - (-inf) is NaN, in the "
            "rescale factor and in the exponentials of the block.",
            "subtract tl.where(maximum == -float('inf'), 0.0, maximum) in both places.",
        )
    return None


def not_normalised(o) -> Finding | None:
    """Each row is a multiple of the right row."""
    c = o.comparison
    if c is None or c.right or c.row_ratios is None:
        return None
    factors = c.row_ratios
    return Finding(
        "not-normalised",
        f"Each row is a multiple of the right row, with factors from {float(factors.min()):.4g} to "
        f"{float(factors.max()):.4g}: the rows do not sum to 1 ({o.case.name}).",
        "The exponentials are right, but the sum is wrong: it misses elements, or counts lanes that hold no element.",
        "check the initial value of the sum, what each block adds, and what masked-off lanes add.",
    )


def only_ragged_rows(cases, o, finding: Finding) -> Finding | None:
    """Rows that fill their blocks are right, ragged rows are wrong, and no other rule explains it."""
    judged = [(o, f) for o, f in cases if o.comparison and o.constants]
    full = [f for o, f in judged if o.comparison.columns % max(o.constants) == 0]
    if not full or any(full):
        return None
    if finding.slug not in ("nan", "not-normalised", "constant-factor", "low-precision"):
        return None
    if all(Tag.HALF in o.case.about for o, f in judged if f):  # the masked lanes are right in float32
        return None
    return Finding(
        "wrong-other-value",
        o.worst_in_words,
        "Rows that fill their blocks are right, but ragged rows are wrong: masked-off lanes take part in the maximum "
        "or "
        "in the sum.",
        "load with other=-float('inf'): -inf does not change the maximum, and exp(-inf) adds 0 to the sum.",
    )


def only_long_rows(cases, o, finding: Finding) -> Finding | None:
    """Rows of one block are right and longer rows are wrong, in a kernel that keeps a sum from block to block."""
    if finding.slug not in ("not-normalised", "constant-factor"):
        return None
    judged = [(o, f) for o, f in cases if o.comparison and o.constants]
    block = max(set.intersection(*(set(o.constants) for o, _ in judged)), default=0)
    short = [f for o, f in judged if o.comparison.columns <= block]
    if not short or any(short):
        return None
    return Finding(
        "missing-rescale",
        finding.happened,
        "Rows of one block are right, but longer rows are wrong: the sum is wrong from the second block on.",
        "when the maximum grows from m to m_new, multiply the sum so far by exp(m - m_new) before you add the block.",
        second="not-normalised",
    )


def _softmax(name: str, cases, mistakes=MISTAKES, **more) -> Exercise:
    return Exercise(
        lesson=find(name),
        entry=name,
        signature=f"{name}(x) -> the softmax of each row of x, as a new contiguous tensor",
        cases=cases,
        reference=reference,
        bounds=BOUNDS,
        mistakes=mistakes,
        rules=(overflowed,),
        last_rules=(not_normalised,),
        contiguous=True,
        **more,
    )


def _online(name: str, cases, **more) -> Exercise:
    """A softmax that keeps its sum from block to block."""
    summaries = (only_ragged_rows, only_long_rows)
    return _softmax(name, cases, MISTAKES + ONLINE_MISTAKES, summaries=summaries, **more)


def _whole_rows(name: str, cases) -> Exercise:
    return _softmax(name, cases, summaries=(only_ragged_rows,))


EXERCISES = (
    _whole_rows("naive_softmax", COMMON_CASES + MASKED_CASES),
    _online(
        "online_softmax",
        COMMON_CASES,
        blanks=Blanks(
            template=ONLINE_TEMPLATE,
            kernel="online_softmax_kernel",
            names=("pid", "mask", "in_data", "in_max_new", "in_exp_sum"),
            advice={
                "pid": "One program works on one row: ask Triton which program this is.",
                "mask": "A lane may touch memory only where its column is below n_cols.",
                "in_data": "A row begins at in_ptr + pid * row_stride. Masked-off lanes must be -inf.",
                "in_max_new": "Take the larger of the maximum so far and the maximum of this block.",
                "in_exp_sum": "Rescale the sum so far to the new maximum, then add the block's exponentials.",
            },
            slugs={"in_exp_sum": "missing-rescale"},
        ),
    ),
    _online("online_softmax_masked", COMMON_CASES + MASKED_CASES),
    _whole_rows("fused_softmax", COMMON_CASES + MASKED_CASES),
    _whole_rows("wide_softmax", COMMON_CASES + MASKED_CASES + WIDE_CASES),
)
