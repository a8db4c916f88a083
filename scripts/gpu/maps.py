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


def seen(layer, src, dst, size, zeros=None):
    """Positions of src that some window covers. `zeros`: a layer before it that pads."""
    def along(length, windows, before):
        if zeros is None and layer.get("padding") == "same":
            before = max((windows - 1) * layer["stride"] + size - length, 0) // 2
        begins = [window * layer["stride"] - before for window in range(windows)]
        return len({place for begin in begins for place in range(max(begin, 0), min(begin + size, length))})
    top, left = (zeros["top"], zeros["left"]) if zeros else (0, 0)
    return along(src.height, dst.height, top) * along(src.width, dst.width, left)
