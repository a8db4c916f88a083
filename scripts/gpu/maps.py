"""Maps as the backend stores them, and what windows see of them."""
from dataclasses import dataclass

from plan import pieces


@dataclass(frozen=True)
class Map:
    height: int
    width: int
    channels: int  # stored

    @property
    def positions(self):
        return self.height * self.width

    @property
    def count(self):
        return self.positions * self.channels


def stored(output):
    height, width, channels = output
    return Map(height, width, pieces(channels, 8) * 8)


def before(layer, length, windows, size, zeros, side):
    """Zeros at a `side` of what the layer reads. `zeros`: a layer before it that pads."""
    if zeros:
        return zeros[side]
    whole = max((windows - 1) * layer["stride"] + size - length, 0)
    return {"same": whole // 2, "half": size // 2}.get(layer.get("padding"), 0)


def seen(layer, src, dst, size, zeros=None, left=None):
    """Positions of src that some window covers. `left`: zeros before a row of pixels, two of which share a position."""
    def along(length, windows, of_window, stride, first):
        begins = [window * stride - first for window in range(windows)]
        return len({place for begin in begins for place in range(max(begin, 0), min(begin + of_window, length))})
    stride = layer["stride"]
    rows = along(src.height, dst.height, size, stride, before(layer, src.height, dst.height, size, zeros, "top"))
    if left is not None:
        return rows * along(src.width, dst.width, pieces(size, 2), stride // 2, left // 2)
    return rows * along(src.width, dst.width, size, stride, before(layer, src.width, dst.width, size, zeros, "left"))
