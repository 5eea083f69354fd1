"""07_attention_decode: one query for each head against a long cache of keys and values."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import wraps

import torch

from workshop.device import STAND_IN

from .design import (
    NORMAL,
    OF_OTHER_ROWS,
    RAGGED,
    WHOLE,
    Dimension,
    Inputs,
    Level,
    TensorArgument,
    Values,
    between,
    fixed,
    odd,
    of_blocks,
    tried_once,
)
from .spec import Bound, Exercise, Mistake, bounds, changed, wrong_values
from .tiles import COLUMNS, LARGE_ONES, NEAR_1, ROWS

# What a kernel computes in float32, stored in the dtype of q. Weights may be rounded to the dtype of v before they meet
# it, as in FlashAttention: each by 2^-11 (float16) or 2^-8 (bfloat16).
# In float32, a score of 150 is rounded by 1e-5, and so is each of the sums that it is made of, and the exponent.
BOUNDS = bounds(Bound(8e-5, 4e-5), Bound(1e-3, 1e-3), Bound(8e-3, 8e-3))
SCORES = {dtype: Bound(1e-5, 2e-5) for dtype in BOUNDS}
SUMS = {dtype: Bound(1e-5, 2e-4) for dtype in BOUNDS}
LONG = 4096  # tokens, from which a cache must be split


def _along(q):
    """What must be added to a key for a score of 1."""
    return math.sqrt(q.shape[-1]) * (q / q.pow(2).sum(-1, keepdim=True))[:, None]


def _scored(lowest: float, highest: float, share: float = 1.0):
    """Scores that rise evenly from token to token, between these two, and a share of the usual ones."""

    def fill(q, k, v):
        return q, share * k + torch.linspace(lowest, highest, k.shape[1])[:, None] * _along(q), v

    return fill


def _one_large(q, k, v):
    """One score of each head is far above the others: a maximum that misses its token overflows.

    Its token is near the beginning in the first head, near the end in the next one, and so on.
    """
    heads, tokens = torch.arange(len(k)), k.shape[1]
    k[heads, (heads * 37 + heads % 2 * (2 * tokens // 3)) % tokens] += 120 * _along(q)[:, 0]
    return q, k, v


def _no_query(q, *cache):
    """All scores of a query of zeros are 0, as those of tokens that are not there: its weights are alike."""
    q[:1] = 0
    return q, *cache


def _lowest(q, k, v, *_):
    """All scores are -25,000. Of their sums, float32 keeps the logarithm as bfloat16 does."""
    return 0 * q - 64, 0 * k + 25_000 / 64 / math.sqrt(q.shape[-1]), v


def _large_values(q, k, v):
    """A few of them, with weights of nearly 1, are more than float16 holds."""
    return 0.1 * q, k, 2000 + 4000 * v.abs()


def _alike(q, k, v):
    """Equal scores, but for the first one, and equal values in a column.

    All terms of a sum are alike, and have many bits: in half precision, all of its steps round in the same direction.
    """
    first = torch.arange(k.shape[1])[:, None] == 0
    return q, first * (0.2 + q[:, :1].sigmoid())[:, None] * _along(q), 1 + v[:, :1].sigmoid().expand_as(v)


def _one_above(q, k, v):
    """The first score is so far above thousands of others that each of them weighs next to nothing. All of them do not.

    Only they have values: what leaves them out gives 0.
    """
    first = torch.arange(k.shape[1])[:, None] == 0
    return q, 0.1 * k + 17 * first * _along(q), torch.where(first, 0, 1 + v.sigmoid())


def _one_against_all(q, k, v):
    """The first token weighs as much as all others: a small error of its score shows. So the output is near 0.

    All elements of a query have one size, and so have those of this key: their roundings have one direction.
    """
    _, t, d = k.shape
    size = 1 + q[:, :1].sigmoid()
    signs = torch.where(q < 0, -1.0, 1.0)
    k, v = 0.3 * k, 0.3 * v - 4
    k[:, 0], v[:, 0] = math.log(t) / math.sqrt(d) / size * signs, 4
    return size * signs, k, v


def _one_above_in_pages(q, k, v, first):
    k, v = 0.1 * k, 1 + v.sigmoid()
    k[first, 0], v[first, 0] = 17 * _along(q)[:, 0], 0
    return q, k, v


def _cache(sizes, kind, dtype, generator):
    h, t, d = sizes["heads"], sizes["tokens"], sizes["d"]
    return kind.fill(*(torch.randn(shape, generator=generator) for shape in ((h, d), (h, t, d), (h, t, d))))


def _quantised(sizes, kind, dtype, generator):
    if kind.name in [each.name for each in (*SCORED, NEGATIVE) if each.name]:
        q, *cache = _cache(sizes, kind, dtype, generator)
        return q, *(part for x in cache for part in _to_int8(x))
    h, t, d = sizes["heads"], sizes["tokens"], sizes["d"]
    k, v = (torch.randint(-128, 128, (h, t, d), generator=generator) for _ in range(2))
    scales = [(0.5 + torch.rand(h, t, generator=generator)) / 64 for _ in range(2)]
    q = torch.randn(h, d, generator=generator)
    return kind.fill(q, k, scales[0], v, scales[1])


def _to_int8(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """int8 and the scale of each row."""
    scale = x.abs().amax(-1) / 127
    return (x / scale.clamp(min=1e-30)[..., None]).round(), scale


def _tokens_of_zeros(q, k, k_scale, v, v_scale):
    """Some keys are 0, and so is their scale: they have a weight like others. So are the values of other tokens."""
    for numbers, scales, first in ((k, k_scale, 0), (v, v_scale, 1)):
        numbers[:, first::3] = scales[:, first::3] = 0
    return q, k, k_scale, v, v_scale


HALF = ("float16", "bfloat16")
SHORTER = {"tokens": (RAGGED, WHOLE)}
ONE_FAR, FEW_TOKENS = "long, with one large score", "few"
PLAIN = Values("", fill=lambda *tensors: tensors)
# They show whether a key, or a query with its factor, was rounded to half precision. It is seen in most heads.
AGAINST_ALL = Values(
    "one score against all", fill=_one_against_all,
    only_with={"dtype": ("bfloat16",), "heads": ("few",), **SHORTER},
)  # fmt: skip
ONE_LARGE = tried_once("one large score each", _one_large, "huge", tokens=(RAGGED, ONE_FAR))
ONE_ABOVE = tried_once("one score above", _one_above, tokens=("many",), dtype=("float32",))
LOWEST = tried_once("very low scores", _lowest, tokens=(RAGGED,), dtype=("bfloat16",))
LARGE_VALUES = tried_once("large values", _large_values, tokens=(RAGGED,), dtype=("float16",))
NO_QUERY = tried_once("a query of zeros", _no_query, tokens=(RAGGED,))
# Their products with an int8 number are more than float16 can hold, and their scores are like the others'.
LARGE_QUERIES = tried_once("large queries", lambda q, k, k_scale, *more: (400 * q, k, k_scale / 400, *more),
                           dtype=("float16",))  # fmt: skip
SCORED = (
    PLAIN,
    # each block must rescale what was there; and scores of which exp overflows
    tried_once("ascending scores", _scored(-40, 40, 0.1), "ascending", **SHORTER),
    tried_once("huge scores", _scored(150, 150), "huge", tokens=(*SHORTER["tokens"], FEW_TOKENS)),
    NO_QUERY,
    AGAINST_ALL,
    LOWEST,
    LARGE_VALUES,
    # Not with 128 tokens, which may be one block: there no block comes behind the one with the large score.
    ONE_LARGE,
    # A masked lane with the score 0, or a maximum that begins there, is too large. More than once: a masked part shows
    # only there, and an answer may have a whole number of them. In float32, their rounding is larger than the bound.
    Values("low scores", about="negative", fill=_scored(-300, -300), only_with={"tokens": (RAGGED,), "dtype": HALF}),
    tried_once("equal scores", _alike, tokens=("thousands",), dtype=("float16",)),
    ONE_ABOVE,
)
# No softmax would tell them apart.
THOUSANDS = tried_once("scores of thousands", _scored(-4000, 4000), "huge", **SHORTER)
DIMENSIONS = (
    Dimension("heads", (Level("few", between(2, 4)), Level("none", fixed(0), once=True), Level("one", fixed(1)))),
    Dimension("d", (*(Level(str(d), fixed(d)) for d in (64, 128)), Level("any", fixed(16, 32, 256))), large=()),
    Dimension(
        "tokens",
        (
            *of_blocks(130, 777, 128, 256),
            Level("one", fixed(1), once=True, only_with={"heads": ("few",)}),
            Level(FEW_TOKENS, between(2, 60), once=True, only_with={"values": ("huge scores",), "heads": ("few",)}),
            Level("thousands", odd(LONG + 1, 5000), once=True, only_with={"values": ("equal scores",)}),
            Level("many", odd(3000, 5000), once=True, only_with={"values": (ONE_ABOVE.name,)}),
            Level("more", odd(9000, 9700), once=True, only_with={"values": ("",), "heads": ("one",), "d": ("64",)}),
            Level(ONE_FAR, odd(3000, 5000), once=True, only_with={"values": (ONE_LARGE.name,), "heads": ("few",)}),
        ),
        ((66_000, 72_000), (100_000, 200_000)),  # its parts, of 16 tokens, fit one block
    ),
)
QUERY = TensorArgument(("heads", "d"), row_stride=True)
CACHE = TensorArgument(("heads", "tokens", "d"), row_stride=True)
INT8 = TensorArgument(CACHE.shape, row_stride=True, dtype=torch.int8)
SCALE = TensorArgument(("heads", "tokens"), dtype=torch.float32)


def _inputs(*arguments: TensorArgument, together=_cache, values=SCORED, more: tuple[dict, ...] = ()) -> Inputs:
    first = {"heads": 2, "tokens": 300, "d": 64}, {"heads": 3, "tokens": 256, "d": 32}, *more
    # With a row stride of 0 all tokens are one: what is special about some of them would be lost.
    values = [replace(each, only_with={**each.only_with, **OF_OTHER_ROWS}) if each.name else each for each in values]
    return Inputs(arguments, DIMENSIONS, tuple(BOUNDS), tuple(values), first, together=together)


def decode_scores(q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
    """q·k / √d for each head and token. q (h, d), k (h, t, d) → (h, t), float64."""
    return torch.einsum("hd,htd->ht", q.double(), k.double()) / math.sqrt(k.shape[-1])


def _mixed(weights: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return torch.einsum("ht,htd->hd", weights, v.double())


def decode_attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Attention of one query for each head: softmax of the scores times v. → (h, d), float64."""
    return _mixed(decode_scores(q, k).softmax(-1), v)


def _scaled(rows: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    """Values from int8: each is int8 × the scale of its row."""
    return rows.double() * scale.double()[..., None]


def int8_decode_attention(q, k, k_scale, v, v_scale) -> torch.Tensor:
    """As `decode_attention`, of int8: k and v (h, t, d), their scales (h, t). → (h, d), float64."""
    return decode_attention(q, _scaled(k, k_scale), _scaled(v, v_scale))


def _pages(sizes, kind, dtype, generator):
    """Requests of 1 to `tokens` tokens, in pages that lie in any order. One of them is that long."""
    requests, page, shape = sizes["requests"], sizes["page"], (sizes["heads"], sizes["d"])
    most = -(-sizes["tokens"] // page)
    lengths = torch.randint(1, sizes["tokens"] + 1, (requests,), generator=generator)
    lengths[requests // 2 : requests // 2 + 1] = sizes["tokens"]
    pages = torch.randperm(requests * most + 3, generator=generator)
    more = sizes["tokens"] % page > 0  # a table is not always wider than its longest row
    table = torch.full((requests, most + more), 2_000_000_000)  # pages of nobody
    used = torch.arange(most) < (lengths[:, None] + page - 1) // page
    table[:, :most][used] = pages[: int(used.sum())]
    k, v = (torch.randn(len(pages), page, *shape, generator=generator) for _ in range(2))
    ragged = (lengths % page).nonzero()[:, 0]  # nobody has filled the end of their last page
    row, token = (torch.arange(page) >= lengths[ragged, None] % page).nonzero(as_tuple=True)
    last = table[ragged, lengths[ragged] // page][row]
    anything = torch.tensor([torch.nan, torch.inf, -torch.inf])[torch.arange(len(last)) % 3]
    k[last, token] = v[last, token] = anything[:, None, None]
    return *kind.fill(torch.randn(requests, *shape, generator=generator), k, v, table[:, 0]), table, lengths


def _whole_pages(sizes: dict[str, int]) -> dict[str, int]:
    """All requests are as long as whole pages, and each page belongs to one of them."""
    page, d = (64, 64) if sizes["tokens"] > 1000 else (16, 16)
    most = -(-sizes["tokens"] // page)
    return {"page": page, "d": d, "tokens": most * page, "most": most, "pages": sizes["requests"] * most}


PAGES = TensorArgument(("pages", "page", "heads", "d"))
TABLE = TensorArgument(("requests", "most"), dtype=torch.int32, span=lambda sizes: None)
LENGTHS = TensorArgument(("requests",), dtype=torch.int32, span=lambda sizes: (sizes["tokens"], sizes["tokens"] + 1))
FEW = {"requests": ("one",), "d": ("usual",), "page": ("16",)}
# A tile of a page: with wider rows, a compiler for a GPU takes 7 s.
LARGE_PAGES = Level("large", fixed(512), once=True, only_with={"tokens": ("large pages",), "d": ("usual",)})
SOME_THOUSANDS = ((3000, 4000),)  # the addresses of pages stand in memory: each lane is looked at
PAGED = Inputs(
    (TensorArgument(("requests", "heads", "d")), PAGES, PAGES, TABLE, LENGTHS),
    (
        Dimension(
            "requests",
            (Level("few", between(2, 4)), Level("one", fixed(1)), Level("none", fixed(0), once=True)),
            SOME_THOUSANDS,
        ),
        Dimension("heads", (Level("few", between(1, 4)),), SOME_THOUSANDS),
        Dimension("d", (Level("usual", fixed(64)), Level("any", fixed(16, 32, 128, 256))), large=()),
        Dimension("page", (Level("16", fixed(16)), Level("more", fixed(32, 64)), LARGE_PAGES), large=()),
        Dimension(
            "tokens",
            (
                Level(RAGGED, odd(70, 300)),
                Level(WHOLE, fixed(64, 128)),
                Level("one", fixed(1), once=True),
                Level("large pages", odd(600, 1500), once=True, only_with={"page": (LARGE_PAGES.name,)}),
                Level("many pages", odd(4200, 5000), once=True, only_with=FEW),  # more than a byte can count
                Level("many", odd(3000, 5000), once=True, only_with={"values": (ONE_ABOVE.name,), "page": ("more",)}),
            ),
            ((20_000, 40_000),),
        ),
    ),
    tuple(BOUNDS),
    (
        Values("", fill=lambda q, k, v, first: (q, k, v)),
        replace(ONE_ABOVE, fill=_one_above_in_pages),
        LOWEST,
    ),
    first=({"requests": 3, "heads": 2, "d": 32, "page": 16, "tokens": 40},),
    together=_pages,
    derived=_whole_pages,
)


def paged_decode_attention(q, k_pages, v_pages, block_table, lengths) -> torch.Tensor:
    """q (b, h, d), pages (p, page, h, d), block_table (b, most), lengths (b,) → (b, h, d), float64."""
    page, longest = k_pages.shape[1], max(lengths.tolist(), default=0)  # a table may be wider
    there = torch.arange(min(longest, block_table.shape[1] * page)) < lengths[:, None]
    pages = torch.where(there[:, ::page], block_table[:, : -(-there.shape[1] // page)], 0).long()
    tokens = (x[pages].flatten(1, 2)[:, : there.shape[1]].transpose(1, 2).double() for x in (k_pages, v_pages))
    k, v = (torch.where(there[:, None, :, None], x, 0.0) for x in tokens)
    scores = torch.einsum("bhd,bhtd->bht", q.double(), k) / math.sqrt(q.shape[-1])
    weights = scores.masked_fill(~there[:, None], -torch.inf).softmax(-1)
    return torch.einsum("bht,bhtd->bhd", weights, v)


ATTENTION_MISTAKES = (
    Mistake("not-normalised",
            lambda q, k, v: _mixed((decode_scores(q, k) - decode_scores(q, k).amax(-1, keepdim=True)).exp(), v),
            "The sum of the weights is missing: acc was stored as it is.", "Store acc / s."),
    Mistake("wrong-value", lambda q, k, v, block: _with_masked_rows(q, k, v, block),
            "The masked-off rows of the last block count as tokens with the score 0: the sum of the weights is too "
            "large.", "Give these rows the score -inf before the maximum: x = tl.where(mask, x, -float('inf'))."),
    Mistake("missing-rescale", lambda q, k, v, block: _without_rescale(q, k, v, block, of_sum=True, of_acc=True),
            "The sum and the vector still belong to older maxima.",
            "When the maximum grows, multiply s and acc by exp(m - m_new)."),
    Mistake("missing-rescale", lambda q, k, v, block: _without_rescale(q, k, v, block, of_sum=False, of_acc=True),
            "The sum is rescaled, and the vector acc is not.", "Multiply acc by the same exp(m - m_new) as s."),
    Mistake("missing-rescale", lambda q, k, v, block: _without_rescale(q, k, v, block, of_sum=True, of_acc=False),
            "The vector acc is rescaled, and the sum is not.", "Multiply s by the same exp(m - m_new) as acc."),
)  # fmt: skip


def _with_masked_rows(q, k, v, block: int) -> torch.Tensor:
    """What comes out if the last block's rows behind the end of the cache keep the score 0."""
    scores = torch.nn.functional.pad(decode_scores(q, k), (0, -k.shape[1] % block))
    return torch.einsum("ht,htd->hd", scores.softmax(-1)[:, : k.shape[1]], v.double())


def _without_rescale(q, k, v, block: int, of_sum: bool, of_acc: bool) -> torch.Tensor:
    """What the walk over blocks of `block` tokens computes, if the sum or the vector is not rescaled."""
    scores, v = decode_scores(q, k), v.double()
    m = torch.full(q.shape[:1], -torch.inf, dtype=torch.float64)
    s, acc = torch.zeros_like(m), torch.zeros(q.shape, dtype=torch.float64)
    for x, values in zip(scores.split(block, 1), v.split(block, 1), strict=True):
        m_new = torch.maximum(m, x.amax(1))
        rescale, weights = torch.exp(m - m_new), torch.exp(x - m_new[:, None])
        s = (s if of_sum else s * rescale) + weights.sum(1)
        acc = (acc if of_acc else acc * rescale[:, None]) + _mixed(weights, values)
        m = m_new
    return acc / s[:, None]


def _from_int8(mistake: Mistake) -> Mistake:
    @wraps(mistake.compute)  # its parameters say whether it depends on a block
    def compute(q, k, k_scale, v, v_scale, **block):
        return mistake.compute(q, _scaled(k, k_scale), _scaled(v, v_scale), **block)

    return replace(mistake, compute=compute)


INT8_MISTAKES = (
    *map(_from_int8, ATTENTION_MISTAKES),
    Mistake("not-scaled", changed(int8_decode_attention, k_scale=torch.ones_like),
            "The scale of k is missing: the scores are those of int8 numbers.", "Multiply each score by its k_scale."),
    Mistake("not-scaled", changed(int8_decode_attention, v_scale=torch.ones_like),
            "The scale of v is missing: the int8 numbers were added.",
            "Multiply each weight by its v_scale, for the vector only."),
    *wrong_values(
        (lambda q, k, k_scale, v, v_scale: int8_decode_attention(q, k, v_scale, v, k_scale),
         "The two scales changed places.", "Scale k by k_scale and v by v_scale."),
        (lambda q, k, k_scale, v, v_scale: int8_decode_attention(q, k, k_scale, v, v_scale)
         / (decode_scores(q, _scaled(k, k_scale)).softmax(-1) * v_scale.double()).sum(-1, keepdim=True),
         "The sum of the weights is multiplied by v_scale, too: it stands in both parts of the division.",
         "Add the weights as they are. Multiply them by v_scale only where they meet v."),
    ),
)  # fmt: skip
PAGED_MISTAKES = wrong_values(
    (lambda q, k, v, table, lengths: paged_decode_attention(q, _heads_outside(k), _heads_outside(v), table, lengths),
     "A page is read as (heads, page, d). It is (page, heads, d).",
     "The numbers of token i and head h begin at ((page_number * page + i) * heads + h) * d."),
    (lambda q, k, v, table, lengths:
     paged_decode_attention(q, k, v, torch.arange(table.shape[1]).to(table).expand_as(table), lengths),
     "The pages were read in their order in memory.", "Load the number of each page from block_table[request, i]."),
    (lambda q, k, v, table, lengths: paged_decode_attention(q, k, v, table[:1].expand_as(table), lengths),
     "All requests read the pages of the first one.", "Begin at block_table + request * most."),
)  # fmt: skip


def _heads_outside(pages: torch.Tensor) -> torch.Tensor:
    """The same memory, read as (pages, heads, page, d)."""
    count, page, heads, d = pages.shape
    return pages.reshape(count, heads, page, d).transpose(1, 2)


def _programs_for(q, k, v, multiprocessors: int = STAND_IN["multiprocessor_count"]) -> int:
    """One for each multiprocessor, if the cache is long. A program may have 64 tokens."""
    return min(multiprocessors, k.shape[0] * k.shape[1] // 64) if k.shape[1] >= LONG else 0


def _opposite(shape, dtype, generator):
    """Weights of which each block adds up to 0."""
    return torch.randn(shape, generator=generator) if len(shape) > 1 else 1.0 - 2.0 * (torch.arange(*shape) % 2)


OPPOSITE = tried_once("weights 1 and -1", _opposite, rows=(WHOLE,))

OF_ZEROS = tried_once("tokens of zeros", _tokens_of_zeros, tokens=(RAGGED,))
# What bounds the products of maxima bounds no negative scores.
NEGATIVE = tried_once("negative scores", _scored(-2000, -20), tokens=(RAGGED,), dtype=("float32",))
OF_INT8 = PLAIN, NEGATIVE, LARGE_QUERIES, AGAINST_ALL, NO_QUERY, LOWEST, OF_ZEROS, ONE_LARGE, ONE_ABOVE
EXERCISES = (
    Exercise(
        signature="weighted_sum(p, v) -> the sums of p[i] * v[i, column] in float32, for p (t,) and v (t, d)",
        inputs=Inputs(
            (TensorArgument(("rows",), **NEAR_1), TensorArgument(("rows", "columns"), **NEAR_1)),
            (ROWS, COLUMNS),
            tuple(SUMS),
            (NORMAL, LARGE_ONES, OPPOSITE),
            large="columns",
            first=({"rows": 300, "columns": 70}, {"rows": 256, "columns": 64}),
        ),
        reference=lambda p, v: (p.double()[:, None] * v.double()).sum(0),
        bounds=SUMS,
        output_dtype=torch.float32,
    ),
    Exercise(
        signature="decode_scores(q, k) -> q·k / sqrt(d) in float32, (h, t), for q (h, d) and k (h, t, d)",
        inputs=_inputs(QUERY, CACHE, together=lambda *how: _cache(*how)[:2], values=(*SCORED, THOUSANDS)),
        reference=decode_scores,
        bounds=SCORES,
        output_dtype=torch.float32,
    ),
    Exercise(
        signature="decode_attention(q, k, v) -> softmax(q·k / sqrt(d)) v, (h, d), for q (h, d), k and v (h, t, d)",
        inputs=_inputs(QUERY, CACHE, CACHE),
        reference=decode_attention,
        bounds=BOUNDS,
        reads_per_element=2,
        mistakes=ATTENTION_MISTAKES,
        limit_seconds=30.0,  # a right answer may take the tokens of the longest cache one by one
    ),
    Exercise(
        signature="split_decode_attention(q, k, v) -> the same, with a long cache split over the programs of a device",
        inputs=_inputs(
            QUERY, CACHE, CACHE,
            more=(
                {"heads": 1, "tokens": LONG, "d": 32},  # neither heads nor parts of d make many programs
                {"heads": 5, "tokens": LONG + 904, "d": 32},  # it divides no number of multiprocessors that is shown
                {"heads": 1, "tokens": 140_001, "d": 16},  # more than 1024 parts of 128
            ),
        ),
        reference=decode_attention,
        bounds=BOUNDS,
        reads_per_element=2,
        mistakes=ATTENTION_MISTAKES,
        programs_at_least=_programs_for,
        in_one_launch=True,
        limit_seconds=20.0,  # two kernels, compiled for many lengths of parts
    ),
    Exercise(
        signature="int8_decode_attention(q, k, k_scale, v, v_scale) -> the same; k and v int8, scales float32 (h, t)",
        inputs=_inputs(QUERY, INT8, SCALE, INT8, SCALE, together=_quantised, values=OF_INT8),
        reference=int8_decode_attention,
        mistakes=INT8_MISTAKES,
        bounds=BOUNDS,
        reads_per_element=2,
    ),
    Exercise(
        signature="paged_decode_attention(q, k_pages, v_pages, block_table, lengths) -> (b, h, d), for q (b, h, d), "
        "pages (p, page, h, d), block_table (b, most) and lengths (b,) in int32",
        inputs=PAGED,
        reference=paged_decode_attention,
        mistakes=PAGED_MISTAKES,
        bounds=BOUNDS,
    ),
)  # fmt: skip
