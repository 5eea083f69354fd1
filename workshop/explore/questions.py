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
                "The values are right, the order is not. The interpreter happens to run programs one after another. "
                "A GPU runs them at the same time, in any order."
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
        "In which rows does your kernel find nan?",
        {
            "in none": "After a block of nothing but −∞ the maximum is −∞, and −∞ − (−∞) is nan.",
            "in rows 1, 2 and 3": "In row 1 the first block has finite numbers too, so its maximum is finite.",
            "in rows 2 and 3": "Their first block leaves the maximum at −∞, and −∞ − (−∞) is nan.",
            "in row 3": "Row 3, yes. But look at row 2 after its first block: what is the maximum?",
        },
        right="in rows 2 and 3",
    ),
    "two passes": Question(
        "A kernel reads each element twice and writes it once. No cache helps. How fast is it, at most?",
        {
            "as fast as a copy": "A copy moves 2 numbers for each element, this kernel 3.",
            "two thirds of a copy": "It moves 3 numbers for each element, a copy 2: at most 2/3 of a copy's speed.",
            "half of a copy": "That would be three reads and one write, as in lesson 2.",
        },
        right="two thirds of a copy",
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
