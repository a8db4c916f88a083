"""Intervals of 95 % for means over seeds, for parts of images and for medians of rounds."""
import math
import statistics

# Student's t: the quantile of 0.975 by degrees of freedom, as in any table of it.
STUDENT = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
           2.120, 2.110, 2.101, 2.093]
MOST = len(STUDENT) + 1  # values
NORMAL = 1.960


def over_seeds(values):
    """Mean, low and high of values that differ by seed; at least two, at most MOST."""
    mean = statistics.fmean(values)
    half = STUDENT[len(values) - 2] * statistics.stdev(values) / math.sqrt(len(values))
    return mean, mean - half, mean + half


def wilson(part, count):
    """Low and high of a part that was seen among so many images (Wilson, 1927)."""
    z = NORMAL ** 2 / count
    middle = (part + z / 2) / (1 + z)
    half = math.sqrt(z * (part * (1 - part) + z / 4)) / (1 + z)
    return middle - half, middle + half


def over_seeds_and_images(parts, images):
    """Mean, low and high where all seeds were tested on the same images: on each side the distances of both intervals
    from the mean, joined as the root of the sum of their squares (Zou and Donner, 2008), within 0 and 1."""
    mean, low, high = over_seeds(parts)
    least, most = wilson(mean, images)
    below, above = math.hypot(mean - low, mean - least), math.hypot(high - mean, most - mean)
    return mean, max(0, mean - below), min(1, mean + above)


LEAST_OF_MEDIAN = 6  # values


def of_median(values):
    """Low and high of the median of values of any distribution: the innermost pair of ordered values, as far from
    both ends, that holds it in at least 95 % of samples (by the sign test). None where there are too few."""
    count, beyond, pair = len(values), 0, None
    for rank, value in enumerate(sorted(values)[:count // 2]):
        beyond += math.comb(count, rank)
        if 2 * beyond > 0.05 * 2 ** count:
            break
        pair = value, sorted(values)[count - 1 - rank]
    return pair
