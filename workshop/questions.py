"""The questions that lessons ask before they show an answer. Their answers are tested in tests/test_questions.py."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Question:
    """A choice. `options` maps each choice to what is said after it; `right` is one of them."""

    ask: str
    options: dict[str, str]
    right: str


@dataclass(frozen=True)
class Estimate:
    """A number to be guessed between `low` and `high`. `why` is said after the guess."""

    ask: str
    low: float
    high: float
    step: float
    right: float
    why: str


QUESTIONS: dict[str, Question | Estimate] = {
    "order of programs": Question(
        "Seven programs each write their own number. What does the tensor hold, and in which order was it written?",
        {
            "0 to 6, written from first to last": (
                "The values are right, the order is not. A GPU runs programs at the same time, in any order."
            ),
            "0 to 6, in an order that nobody knows": (
                "On a GPU programs run at the same time, in any order. So no program may depend on what another one "
                "has written."
            ),
            "7 numbers in an order that nobody knows": (
                "Each program writes to its own place, so the order of the writes does not change the result."
            ),
        },
        right="0 to 6, in an order that nobody knows",
    ),
    "programs and lanes": Question(
        "98,432 elements, blocks of 1024. How many programs, and how many lanes of the last one are masked off?",
        {
            "96 programs, 0 lanes": "96 blocks hold 98,304 elements. The last 128 would have no program.",
            "97 programs, 128 lanes": "128 is the number of elements that the last program has.",
            "97 programs, 896 lanes": "97 × 1024 lanes for 98,432 elements: 896 lanes have none.",
        },
        right="97 programs, 896 lanes",
    ),
    "size and speed": Question(
        "n = 98,432 moves 1.2 MB, n = 134,217,728 moves 1.6 GB. Which one gets more GB/s?",
        {
            "the small one: it fits in the cache": (
                "It does fit. But its run is so short that starting the kernel takes longer than moving the bytes."
            ),
            "the large one": "A launch takes some microseconds, whatever the size. Only a long run makes them small.",
            "both the same: it is the same kernel": (
                "The kernel is the same, but a launch takes some microseconds, and the small run is not longer."
            ),
        },
        right="the large one",
    ),
    "shape of a tile": Question(
        "rows has 16 numbers and columns has 32. What is the shape of rows[:, None] * 100 + columns[None, :]?",
        {
            "(48,)": "Nothing is put end to end. A column meets a row, and each is repeated.",
            "(16, 32)": "The column is repeated 32 times, the row 16 times. They meet in 16 × 32 places.",
            "(32, 16)": "The column has one number for each row of the tile, so the 16 come first.",
        },
        right="(16, 32)",
    ),
    "five steps": Estimate(
        "How many times as many bytes do the five operations move as one fused kernel?",
        1,
        10,
        0.5,
        4,
        "The five operations move 8MN + 4M elements, the fused kernel 2MN. For long rows the ratio is 4.",
    ),
    "three passes": Question(
        "A kernel reads each element three times and writes it once. No cache helps. How fast is it, at most?",
        {
            "as fast as a copy": "A copy moves 2 numbers for each element, this kernel 4. So it takes twice as long.",
            "two thirds of a copy": "That would be two reads and one write. Count again: three reads and one write.",
            "half of a copy": "It moves 4 numbers for each element, a copy 2. So at most half of a copy's speed.",
        },
        right="half of a copy",
    ),
    "no rescale": Question(
        "Without the rescale, for which order of the row is the sum d right?",
        {
            "sorted upwards": "Here every block brings a new maximum, so every block makes the old terms too large.",
            "sorted downwards": (
                "The first block holds the row's maximum, so every rescale is 1 and leaving it out changes nothing. "
                "That is why this mistake hides so well."
            ),
            "for none": "Sorted downwards, the maximum never grows after the first block: every rescale is 1.",
        },
        right="sorted downwards",
    ),
    "nan rows": Question(
        "Row 0 has no −∞, row 1 begins with 100, row 2 with 256 (a whole block), row 3 has nothing else. "
        "In which rows will the result have a nan?",
        {
            "in none": "After a block of nothing but −∞ the maximum is −∞, and −∞ − (−∞) is nan.",
            "in rows 1, 2 and 3": "In row 1 the first block has finite numbers too, so its maximum is finite.",
            "in rows 2 and 3": "Their first block leaves the maximum at −∞, and −∞ − (−∞) is nan.",
            "in row 3": "Row 3, yes. But look at row 2 after its first block: what is the maximum?",
        },
        right="in rows 2 and 3",
    ),
    "barriers": Question(
        "How many barriers does the kernel have when one warp does all the work?",
        {
            "0": "The lanes of one warp exchange numbers directly. Nobody else has to be waited for.",
            "1": "A barrier makes the warps of a program wait for each other. There is only one.",
            "6": "Triton 3.7 makes 6 for 4 warps, which combine their maxima and sums through shared memory.",
        },
        right="0",
    ),
    "padding": Question(
        "A row has 781 columns, its block 1024 lanes. How many numbers does the program read from memory?",
        {
            "781": "A lane that the mask switches off asks memory for nothing. It does take registers.",
            "1024": "The mask switches 243 lanes off. They ask memory for nothing, but they do take registers.",
            "768": "That would be three blocks of 256. The last 13 columns are in the row too.",
        },
        right="781",
    ),
    "programs at once": Question(
        "How many such programs fit one multiprocessor, and what is the limit?",
        {
            "12, by registers": "40 × 128 = 5,120 registers each. 65,536 hold 12 of them, and part of a thirteenth.",
            "16, by thread slots": "Threads leave room for 2,048 / 128 = 16. But registers run out before.",
            "56, by shared memory": "Shared memory leaves room for 56. But registers and threads run out long before.",
        },
        right="12, by registers",
    ),
    "persistent": Question(
        "At how many of the nine sizes is the persistent launch faster than a program for each row?",
        {
            "at all nine": "It saves the start of a program for each row. But that start costs little.",
            "at the short rows": "There are more of them, so more starts are saved. But a start costs little.",
            "at none": (
                "The hardware starts programs quickly and overlaps them: while one computes, others wait for memory. "
                "A persistent program has to arrange that by itself."
            ),
        },
        right="at none",
    ),
    "bytes of a cache": Question(
        "8 heads of 128 numbers, 131,072 tokens in the cache, half precision. How many bytes does one new token read?",
        {
            "0.27 GB": "Those are the keys. The values are as many again.",
            "0.54 GB": "2 × 8 × 131,072 × 128 numbers of 2 bytes: 112 microseconds at 4.8 TB/s, in each layer.",
            "4.3 GB": "A number of half precision has 2 bytes, not 16.",
        },
        right="0.54 GB",
    ),
    "eight heads": Question(
        "This kernel launches one program for each head, so 8 programs. An H200 has 132 multiprocessors. What happens?",
        {
            "nothing: the memory is the limit": (
                "Eight multiprocessors cannot ask for enough bytes at once to keep the memory busy."
            ),
            "most of the card is idle": (
                "124 multiprocessors have no program. The other 8 cannot keep enough loads under way for all of the "
                "memory's speed."
            ),
            "the hardware cuts the programs up": "A program runs on one multiprocessor, from its start to its end.",
        },
        right="most of the card is idle",
    ),
    "bytes of a gradient": Question(
        "dx from y and dy, in float32, a row in one block: how many bytes for each element, at least?",
        {
            "8": "That is a copy: one read and one write. Here two matrices are read.",
            "12": "y and dy are read, dx is written: three times 4 bytes.",
            "16": "x would be the fourth. The formula does not have it: y is enough.",
        },
        right="12",
    ),
    "order of a sum": Question(
        "Many programs add to one float32 number with atomics. You call the kernel twice. How do the results differ?",
        {
            "in no bit": "The same numbers are added, but in another order, and each addition rounds.",
            "in the last bits": "Whichever program comes first adds first, and each addition rounds.",
            "one is wrong: it is a race": "An atomic addition is never torn apart. Only the order is open.",
        },
        right="in the last bits",
    ),
    "bytes of a norm": Question(
        "Forward and backward of an RMS norm, float32, rows of one block: how many bytes for each element, at least?",
        {
            "16": "One read and one write in each direction. But the backward pass reads two matrices, x and dy.",
            "20": "Forward reads x and writes y, backward reads x and dy and writes dx: five times 4 bytes. The weight "
            "and its gradient are single rows.",
            "24": "r is one number for each row, not a matrix, and it can be computed again.",
        },
        right="20",
    ),
    "a fake tensor": Question(
        "torch.compile calls your triton_op with tensors that have no numbers. It says `if x.max() > 100: …`. What "
        "happens?",
        {
            "the branch is not taken": "Nobody knows whether it is: there is no number to compare.",
            "both branches become part of the graph": "Python runs one of them, and it must know which.",
            "no graph can be made": "Python needs a number, and there is none. Let the kernel decide, with tl.where.",
        },
        right="no graph can be made",
    ),
    "intensity of a tile": Question(
        "BLOCK_M and BLOCK_N grow from 64 to 128, in bfloat16. How many operations does a program do for each byte?",
        {
            "32, and then 64": "64 · 64 / (64 + 64) = 32, and 128 · 128 / (128 + 128) = 64: the work grows with the "
            "area, the bytes with the sides.",
            "32, and then 128": "Four times the work, and twice the bytes: the quotient doubles.",
            "the same number": "Each number that is loaded meets a side of the other tile, which has doubled.",
        },
        right="32, and then 64",
    ),
    "half accumulator": Question(
        "A kernel adds up in float16, and its outputs are rounded to float16 anyway. You test it at k = 64. What do "
        "you see?",
        {
            "errors many times larger": "Four steps of 16 products round four times. That is hardly more than the one "
            "rounding of the output.",
            "errors hardly larger than that rounding": "A few additions round a few times. The longer the sum, the "
            "more of them there are, and the larger is the number that each one rounds.",
            "infinity": "Sums of 64 products of ordinary numbers are far below 65,504, the largest float16.",
        },
        right="errors hardly larger than that rounding",
    ),
    "half the bytes": Question(
        "bfloat16 has half the bytes of float32. Which share of the copy does the same kernel keep at N = 1024?",
        {
            "the same share": "It has half as many bytes to move. But it also has half as many bytes under way.",
            "less": (
                "The same threads ask for the same number of elements, which are half as many bytes. Memory is kept "
                "busy by bytes in flight."
            ),
            "more": "Fewer bytes take less time, for the copy too. The share does not grow by that.",
        },
        right="less",
    ),
    "fixed key": Question(
        "It is called twice, at rate = 0.5. Which share of the elements has the same fate (kept or dropped) in both?",
        {
            "a quarter": "A quarter is kept in both calls, if the two masks are independent. Are they?",
            "a half": "That would be two independent masks. Where does the key come from?",
            "all": (
                "The key is made inside, so every call has the same mask: every layer and every step drops the same "
                "elements. A key, or a seed, has to come from outside."
            ),
        },
        right="all",
    ),
    "rate one": Question(
        "And what does it return for rate = 1?",
        {
            "zeros": "Every element is dropped. But look at the last line: what is it divided by?",
            "nan": "Every element becomes 0, and is then divided by 1 - 1 = 0. 0 / 0 is nan.",
            "infinities": "x / 0 would be infinite. But here x is multiplied by 0 before it is divided.",
        },
        right="nan",
    ),
    "kernel and XLA": Estimate(
        "By what factor is the kernel faster than XLA at 4096 × 32768, on the recorded H200?",
        0.5,
        5,
        0.25,
        1.75,
        "Nearly all of it is the cost of random numbers: with tl.rand in the place of tl.rand4x the kernel is hardly "
        "ahead.",
    ),
    "four numbers": Question(
        "A lane needs four numbers. How many multiplications does it do with tl.rand4x, compared with tl.rand?",
        {
            "as many": "tl.rand computes four numbers too, hands out the first and throws three away.",
            "half as many": "One call of Philox makes four numbers, not two.",
            "less than a third": (
                "One call of Philox instead of four. It is not a quarter: the rest of the kernel has a few "
                "multiplications of its own."
            ),
        },
        right="less than a third",
    ),
    "a mask again": Question(
        "How many bytes per element does drawing the mask again save in both passes together, if a mask takes one byte "
        "per element?",
        {
            "1": "The forward pass would write it. Does nobody read it?",
            "2": (
                "One written in the forward pass, one read in the backward pass. That is little beside the 8 and 12 "
                "bytes that the passes move anyway, in float32. The larger gain is the byte per element that need not "
                "be kept between them, in every layer."
            ),
            "8": "That is what the forward pass moves for x and y. The mask comes on top of it.",
        },
        right="2",
    ),
    "a wish": Question(
        "A row of 16,384 float32 with 4 warps is 64 numbers for each lane. From how many waves on, asked for, are "
        "registers spilled?",
        {
            "above 2 waves": "With 4 waves each one may have 512 / 4 = 128 registers: room for 64 numbers and more.",
            "above 4 waves": (
                "128 registers for each of 4 waves are enough. 6 waves have 80 each, 8 waves 64: too few "
                "for 64 numbers of the row and the work on them."
            ),
            "never": "waves_per_eu=8 leaves 64 registers for a wave, and a lane holds 64 numbers of the row already.",
        },
        right="above 4 waves",
    ),
    "waves": Question(
        "A wave uses 170 VGPRs. How many such waves does one EU hold, and up to how many VGPRs would one more fit?",
        {
            "3 waves; a fourth up to 128": "170 is rounded up to 176, and 3 × 176 = 528 is more than 512.",
            "2 waves; a third up to 168": "170 is rounded up to 176. 512 holds two of them, and three of 168.",
            "2 waves; a third up to 170": "512 / 3 is 170.7, but registers are handed out in steps of 8.",
        },
        right="2 waves; a third up to 168",
    ),
}


def possible(question: Question | Estimate, choice: str) -> bool:
    """Whether a question has this choice."""
    if isinstance(question, Question):
        return choice in question.options
    try:
        return question.low <= float(choice) <= question.high
    except ValueError:
        return False


def right(name: str, choice: str) -> bool:
    """Whether a kept choice was right; an estimate counts if it is at most a quarter off."""
    question = QUESTIONS[name]
    if not possible(question, choice):
        return False
    if isinstance(question, Question):
        return choice == question.right
    return abs(float(choice) - question.right) <= question.right / 4
