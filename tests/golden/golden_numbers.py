"""Random numbers, images and first weights that the tests in C++ compute by the same formulas."""
import math

import numpy as np

SEED = 20_231
PURPOSE = {"weights": 3, "pixels": 5, "noise": 6}  # enum class Purpose


def philox(counter, key):
    """counter: four arrays of uint64 below 2^32; key: two numbers. Returns four arrays."""
    mask, c, k = np.uint64(0xFFFFFFFF), list(counter), [np.uint64(x) for x in key]
    for _ in range(10):
        p0, p1 = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        c = [(p1 >> np.uint64(32)) ^ c[1] ^ k[0], p1 & mask,
             (p0 >> np.uint64(32)) ^ c[3] ^ k[1], p0 & mask]
        k = [(k[0] + np.uint64(0x9E3779B9)) & mask, (k[1] + np.uint64(0xBB67AE85)) & mask]
    return c


def check_philox():
    """Known answers of Random123 (its file kat_vectors, philox4x32-10)."""
    for counter, key, answer in (
            ([0] * 4, [0] * 2, [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]),
            ([0xFFFFFFFF] * 4, [0xFFFFFFFF] * 2, [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]),
            ([0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344], [0xA4093822, 0x299F31D0],
             [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1])):
        words_ = philox([np.array([c], dtype=np.uint64) for c in counter], key)
        assert [int(w[0]) for w in words_] == answer


def words(count, purpose, a):
    """The first `count` words of RandomStream(SEED, purpose, a)."""
    index = np.arange((count + 3) // 4, dtype=np.uint64)
    same = [np.full_like(index, x) for x in (PURPOSE[purpose], a, 0)]
    return np.stack(philox([index, *same], [SEED & 0xFFFFFFFF, SEED >> 32]), 1).reshape(-1)[:count]


def unit(w):
    """unit_float: 24 bits, exact in float and double."""
    return (w >> np.uint64(8)).astype(np.float64) * 2.0**-24


def images(first, count, image):
    """Patches of 8 x 8 pixels of one colour each under a quarter of noise: noise alone would look
    alike to every layer that averages."""
    height, width, channels = image
    rows, columns = -(-height // 8), -(-width // 8)
    result = []
    for i in range(first, first + count):
        colours = words(rows * columns * channels, "noise", i).reshape(rows, columns, channels)
        patches = np.kron(colours & np.uint64(255), np.ones((8, 8, 1), dtype=np.uint64))
        noise = (words(math.prod(image), "pixels", i) & np.uint64(255)).reshape(image)
        result.append((3 * patches[:height, :width] + noise) // 4)
    return np.stack(result).astype(np.uint8)


def labelled(first, count, image, classes):
    return images(first, count, image), np.arange(first, first + count) % classes


def name_key(name):
    """FNV-1a, 32 bits."""
    key = 0x811C9DC5
    for byte in name.encode():
        key = (key ^ byte) * 0x01000193 & 0xFFFFFFFF
    return key


def start_values(name, shape):
    """What a tensor of a built-in model holds at first, in Keras' layout: nothing is 0 or 1 that
    could then be left out unnoticed, and some of batch norm's gammas are negative. Kernels are
    uniform with He's variance, so that deep networks without batch norm keep their signal."""
    u = unit(words(math.prod(shape), "weights", name_key(name)))
    kind = name.split("/")[1]
    if kind == "kernel":
        values = (2 * u - 1) * math.sqrt(6.0 / math.prod(shape[:-1]))
    else:
        low, high = {"bias": (-0.1, 0.1), "gamma": (-0.5, 1.5), "beta": (-0.25, 0.25),
                     "moving_mean": (-0.25, 0.25), "moving_variance": (0.5, 1.5)}[kind]
        values = low + (high - low) * u
    return values.astype(np.float32).astype(np.float64).reshape(shape)
