#!/usr/bin/env python3
"""The numbers of src/params/table.rs, from the formula of the false-positive rate at the top of src/params.rs.

    tools/sizing-tables.py            writes src/params/table.rs
    tools/sizing-tables.py --check    fails if the file is not what this program writes, digits of rounding aside

Takes some seconds; Python 3 without packages. Let R(k) be the rate with k probes, as a function of the mean number of keys per
block. Sizing takes the fewest probes whose rate is at most 1.01 times the best. So k probes are too few until the mean reaches a
root of R(k) = 1.01 min R, and enough from there on. The roots are found at infinitely many blocks (Poisson) and at three other
numbers of blocks, with a real number of keys. Times the number of blocks a root is very nearly a polynomial in 1 / blocks:

    keys = c0 blocks + c1 + c2 / blocks + c3 / blocks^2

What this polynomial leaves out is printed, and must be under half of MARGIN keys, within which src/params/choice.rs computes both
rates. The first guesses of the search for a rate are verified in the same way.
"""

import math
import pathlib
import re
import sys

FILE = pathlib.Path(__file__).parent.parent / "src/params/table.rs"
MOST_PROBES = 30
MOST_BITS_PER_KEY = 100
# From so many blocks on 21 probes are the most, and the polynomial holds for 20 as well.
MANY = 20
# The most probes whose polynomial holds down to one block.
ALL_BLOCKS = 18
# As in src/params/choice.rs.
MARGIN = 2e-3


def block_rates(probes):
    """The rate of a block holding 0, 1, 2, ... keys."""
    rates = [0.0]
    for keys in range(1, 800):
        balls = keys * probes
        q, q2 = math.exp(balls * math.log1p(-1 / 512)), math.exp(balls * math.log1p(-2 / 512))
        p, variance = -math.expm1(balls * math.log1p(-1 / 512)), (511 * q2 + q) / 512 - q * q
        fill = p**probes * (1 + probes * (probes - 1) * max(variance, 0) / (2 * p * p))
        rates.append(min(fill + keys / 2**32, 1))
    return rates


BLOCK_RATES = {probes: block_rates(probes) for probes in range(1, MOST_PROBES + 1)}


def weights(mean, blocks):
    """Binomial(mean blocks, 1 / blocks) for a real number of keys, or Poisson(mean) for no (infinitely many) blocks.

    From the first of the weights that matter on, relative to the mode's."""
    share = 1 / blocks if blocks else 0.0
    mode, spread = math.floor(mean), 13 * math.sqrt(mean)
    first, last = max(0, math.floor(mean - spread)), math.ceil(mean + spread + 40)
    up, down = [1.0], []
    for j in range(mode, last):
        up.append(max(0.0, up[-1] * (mean - j * share) / ((j + 1) * (1 - share))))
    weight = 1.0
    for j in range(mode, first, -1):
        weight *= j * (1 - share) / (mean - (j - 1) * share)
        down.append(weight)
    return first, down[::-1] + up


def rate(mean, blocks, probes, distribution=None):
    if blocks == 1:
        return BLOCK_RATES[probes][round(mean)]
    first, list_of_weights = distribution or weights(mean, blocks)
    rates = BLOCK_RATES[probes][first:]
    return math.fsum(map(float.__mul__, list_of_weights, rates)) / math.fsum(list_of_weights)


def fewest_within_a_hundredth(keys, blocks):
    """The choice itself, as it is defined."""
    distribution = None if blocks == 1 else weights(keys / blocks, blocks)
    rates = [rate(keys / blocks, blocks, k, distribution) for k in range(1, MOST_PROBES + 1)]
    return next(k for k, found in enumerate(rates, 1) if found <= 1.01 * min(rates))


def root(probes, blocks, low, high):
    """The mean from which on so many probes are enough: regula falsi, Illinois variant."""

    def excess(mean):
        distribution = weights(mean, blocks)
        return rate(mean, blocks, probes, distribution) / rate(mean, blocks, probes + 1, distribution) - 1.01

    at_low, at_high, last = excess(low), excess(high), 0
    assert at_low > 0 > at_high, (probes, blocks, low, high)
    while high - low > 1e-14 * high:
        middle = high - at_high * (high - low) / (at_high - at_low)
        if not low < middle < high:
            break
        found = excess(middle)
        if found > 0:
            low, at_low, at_high, last = middle, found, at_high / (2 if last > 0 else 1), 1
        else:
            high, at_high, at_low, last = middle, found, at_low / (2 if last < 0 else 1), -1
        if found == 0 or abs(found) < 1e-15:
            break
    # The definition has the best rate where `excess` has that of one probe more: at the root they are the same.
    distribution = weights(middle, blocks)
    best = min(range(probes, MOST_PROBES + 1), key=lambda k: rate(middle, blocks, k, distribution))
    assert best == probes + 1, (probes, blocks, middle, best)
    return middle


def polynomial(probes, mean):
    """c0 .. c3, by interpolation at infinitely many, 2000, 45 and 21 blocks."""
    points = []
    for blocks in (2000, 45, 21):
        found = root(probes, blocks, mean - 0.1, mean + 14 / blocks)
        points.append((1 / blocks, (found - mean) * blocks))
    # Newton's divided differences, expanded.
    (x0, y0), (x1, y1), (x2, y2) = points
    first = (y1 - y0) / (x1 - x0)
    second = ((y2 - y1) / (x2 - x1) - first) / (x2 - x0)
    return [mean, y0 - first * x0 + second * x0 * x1, first - second * (x0 + x1), second]


def threshold(coefficients, blocks):
    c0, c1, c2, c3 = coefficients
    return c0 * blocks + c1 + c2 / blocks + c3 / blocks**2


def thresholds():
    rows, least = [], 5.0
    for probes in range(MANY, 0, -1):
        low = least
        while fewest_within_a_hundredth(1e9 * low, 1e9) > probes:
            low *= 1.02
        mean = root(probes, 0, low / 1.03, low)
        rows.append(polynomial(probes, mean))
        least = mean
    return rows[::-1]


def few_blocks():
    """One block, and under MANY blocks where more than ALL_BLOCKS probes are best: (blocks, keys, probes from there on)."""
    rows = []
    for blocks in range(1, MANY):
        # More blocks are MOST_BITS_PER_KEY exceeded.
        keys, last = math.floor((blocks - 1) * 512 / MOST_BITS_PER_KEY) + 1, None
        highest = 0
        while True:
            probes = fewest_within_a_hundredth(keys, blocks)
            highest = max(highest, probes)
            if blocks > 1 and highest > ALL_BLOCKS >= probes:
                rows.append((blocks, keys, 0))
                break
            if probes != last:
                rows.append((blocks, keys, probes))
            if highest > probes == 1:
                break
            keys, last = keys + 1, probes
    return rows


def verify(rows):
    """Compares the polynomials with the definition: every number of keys for few blocks, the roots for many."""
    for blocks in range(1, MANY):
        for probes in range(1, ALL_BLOCKS + 1):
            keys = threshold(rows[probes - 1], blocks)
            below, above = math.floor(keys), math.floor(keys) + 1
            if min(keys - below, above - keys) < 2 * MARGIN:
                print(f"{blocks} blocks, {probes} probes: {keys} is nearly a whole number: `rate` decides", file=sys.stderr)
            elif not fewest_within_a_hundredth(below, blocks) > probes >= fewest_within_a_hundredth(above, blocks):
                sys.exit(f"{blocks} blocks, {probes} probes: the threshold is not between {below} and {above} keys")
    worst = 0.0
    for blocks in (20, 23, 27, 33, 40, 60, 90, 150, 300, 700, 5_000, 100_000, 10_000_000):
        for probes, row in enumerate(rows, 1):
            guess = threshold(row, blocks)
            exact = root(probes, blocks, guess / blocks - 0.01, guess / blocks + 0.01) * blocks
            error = abs(exact - guess)
            if error > MARGIN / 2 + 1e-11 * guess:
                sys.exit(f"{blocks} blocks, {probes} probes: {error} keys beside the root")
            if blocks < 10_000:
                worst = max(worst, error)
    print(f"polynomials differ from the roots by at most {worst:.1e} keys", file=sys.stderr)


def log_rate_slope(mean, probes):
    """d ln R / d ln mean: the keys that a block has when it answers "maybe", above the mean."""
    first, list_of_weights = weights(mean, 0)
    parts = list(map(float.__mul__, list_of_weights, BLOCK_RATES[probes][first:]))
    return math.fsum(part * (first + i - mean) for i, part in enumerate(parts)) / math.fsum(parts)


def guesses(rows):
    """For each number of probes (rate, slope, bend) so that at a rate r a little above `rate`, with y = ln(r / rate),
    ln(mean / c0) = slope y + bend y^2, exact at both ends of the means that have so many probes."""
    means = [row[0] for row in rows] + [512 / MOST_BITS_PER_KEY]
    result = []
    for probes, mean in enumerate(means, 1):
        lowest, slope = rate(mean, 0, probes), 1 / log_rate_slope(mean, probes)
        bend = 0.0
        if probes > 1:
            y = math.log(rate(means[probes - 2], 0, probes) / lowest)
            bend = (math.log(means[probes - 2] / mean) - slope * y) / y**2
        result.append((lowest, slope, bend))
    return means[-1], result


def verify_guesses(rows, last, columns):
    """What `first_guess` in src/params/choice.rs says, against half of the doubt it states: many blocks, and few with whole keys."""
    means = [row[0] for row in rows] + [last]

    def guess(row, keys, target):
        lowest, slope, bend = columns[row]
        y = math.log(target / lowest)
        mean = means[row] * math.exp(y * (slope + bend * y))
        return (keys - rows[row][1] / 2) / min(mean, means[row - 1])

    worst = {}
    for row in range(1, MANY):
        doubt = 0.05 if row < MANY - 1 else 0.2
        for part in range(1, 40):
            mean = means[row] * (means[row - 1] / means[row]) ** (part / 40)
            error = abs(1 - guess(row, 1e15, rate(mean, 0, row + 1)) * mean / 1e15)
            worst[0] = max(worst.get(0, 0), error / 0.003)
        for blocks in range(2, 60):
            for part in range(40):
                low, high = (threshold(rows[at], blocks) for at in (row, row - 1))
                keys = math.ceil(low + part / 40 * (high - low) + 2 * MARGIN)
                # A rate between those of neighbouring rows is reached at their threshold.
                target = rate(keys / blocks, blocks, row + 1)
                if blocks < MANY and row >= ALL_BLOCKS or keys >= high or target < columns[row][0]:
                    continue
                place = next(at for at, column in enumerate(columns) if column[0] <= target)
                if place > 0:
                    error = abs(guess(place, keys, target) - blocks)
                    worst[1] = max(worst.get(1, 0), error / (doubt + 0.003 * blocks))
    print(f"guesses use {worst[0]:.0%} of half their doubt for many blocks, {worst[1]:.0%} for few", file=sys.stderr)
    if max(worst.values()) > 1:
        sys.exit("guesses are too far off")


def table(rows, few, means_and_guesses):
    """The file. Thresholds have 15 digits because blocks multiply c0; the rest differs by far less than MARGIN when rounded."""
    last, columns = means_and_guesses
    lines = []
    for (c0, c1, c2, c3), (lowest, slope, bend) in zip(rows + [[last, 0.0, 0.0, 0.0]], columns):
        lines.append(
            f"    [{c0:.12f}, {c1:.6f}, {c2:.6f}, {c3:.6f}, {lowest:.5e}, {slope:.5f}, {bend:.5f}],\n"
        )
    packed = [f"0x{blocks:02x}{keys:02x}{probes:02x}," for blocks, keys, probes in few]
    lines_of_few = ["    " + " ".join(packed[at : at + 9]) + "\n" for at in range(0, len(packed), 9)]
    return (
        "//! Written by `tools/sizing-tables.py`, which has the formulas; `tools/sizing-tables.py --check` compares.\n"
        "\n"
        f"/// One block, and up to this many while more than {ALL_BLOCKS} probes are best, are in [`FEW`].\n"
        f"pub(super) const MANY_BLOCKS: u32 = {MANY};\n"
        "\n"
        "/// For each number of probes from 1: `[c0, c1, c2, c3, rate, slope, bend]`.\n"
        "///\n"
        "/// So many probes are enough from `c0 blocks + c1 + c2 / blocks + c3 / blocks²` keys on. With `c0` keys per block, and blocks without\n"
        "/// number, the rate is `rate`; a rate `r` above it has `c0 e^(slope y + bend y²)` keys per block, `y = ln(r / rate)`, to some\n"
        "/// thousandths, as far as so many probes are best. The last row has no threshold: its `c0` is the fewest keys per block.\n"
        f"pub(super) const ROWS: [[f64; 7]; {len(lines)}] = [\n" + "".join(lines) + "];\n"
        "\n"
        "/// In bytes, from the highest: blocks, keys, and the probes from that number of keys on, or 0 where [`ROWS`] has them.\n"
        f"pub(super) const FEW: [u32; {len(few)}] = [\n" + "".join(lines_of_few) + "];\n"
    )


def numbers(text):
    return [float(int(n, 16)) if n.startswith("0x") else float(n) for n in re.findall(r"0x[0-9a-f]+|-?\d[\d.]*(?:e-?\d+)?", text)]


def main():
    if sys.argv[1:] not in ([], ["--check"]):
        sys.exit(__doc__)
    rows = thresholds()
    verify(rows)
    last, columns = guesses(rows)
    verify_guesses(rows, last, columns)
    text = table(rows, few_blocks(), (last, columns))
    if not sys.argv[1:]:
        FILE.write_text(text)
        return
    found, expected = numbers(FILE.read_text()), numbers(text)
    near = all(abs(a - b) <= 1e-11 * abs(b) or abs(a - b) < 2e-6 for a, b in zip(found, expected))
    if len(found) != len(expected) or not near:
        sys.exit(f"{FILE} is not what this program writes")


if __name__ == "__main__":
    main()
