"""Bytes that kernels move in the device's memory: those that the emulated device counts in steps of few images are
split into what an image and what a micro-batch moves, and so extrapolated to any batch.

The emulated device counts the sectors of 32 bytes that a launch reads and writes, each once. A GPU moves as many if its
caches lose nothing within a kernel and keep nothing for the next. They grow by the same for each image, but for what
depends on the plan for that number of images: partial sums (of slices, and of parts of a batch norm's positions), and
the map that a batch norm measures where the product before it has slices. Those are taken off by the formula of
launches.py, and added by it again."""
from dataclasses import dataclass
from itertools import zip_longest

from launches import SECTOR


@dataclass(frozen=True)
class Moved:
    """Bytes, of an image or of all."""
    read: float = 0
    written: float = 0

    @property
    def both(self):
        return self.read + self.written

    def __add__(self, other):
        return Moved(self.read + other.read, self.written + other.written)

    def __sub__(self, other):
        return self + -1 * other

    def __rmul__(self, factor):
        return Moved(factor * self.read, factor * self.written)


@dataclass(frozen=True)
class Place:
    """A launch, and where in a step it is."""
    micro_batch: int  # its number
    layer: str
    direction: str
    launch: object

    @property
    def key(self):
        return self.micro_batch, self.layer, self.direction


def in_order(networks, update):
    """[Place] of a step, a network for each micro-batch, as the backend puts them into the stream."""
    of_update = [Place(0, "update", "", launch) for launch in update]
    found = [place for place in reversed(of_update) if place.launch.name == "block_norms"]
    for number, network in enumerate(networks):
        of = lambda operation, direction: [Place(number, operation.name, direction, launch)
                                           for launch in getattr(operation, direction)]
        for operation in network.operations:
            found += of(operation, "forward")
        for operation in reversed(network.operations):
            found += of(operation, "weights") + of(operation, "data")
    return found + [place for place in of_update if place.launch.name != "block_norms"]


def counted_step(traffic, places):
    """[(Place, Moved)] of the last step that the emulated device counted. Raises ValueError where it launched others
    than these."""
    text = lambda made: f"{made[0]} of {made[1]} blocks" if made else "nothing"
    # Copies of weights that somebody else wrote are made anew before a pass: those are of no step.
    step = [counted for counted in traffic if counted["kernel"] != "round_numbers"][-len(places):]
    made = [(counted["kernel"], counted["blocks"]) for counted in step]
    for place, counted in zip_longest(places, made):
        known = (place.launch.name, place.launch.blocks)
        # The update goes over gaps between parameters, too.
        if counted != known and not (counted and counted[0] == known[0] == "update"):
            raise ValueError(f"the emulated device launched {text(counted)} where scripts/gpu/launches.py says "
                             f"{text(known)} ({place.layer} {place.direction}), so bytes of layers cannot be told "
                             "apart; build its program from the files that are here")
    return [(place, Moved(*(SECTOR * counted[way]["sectors"] for way in ("read", "written"))))
            for place, counted in zip(places, step)]


def summed(pairs):
    """{key: sum} of (key, summand)"""
    found = {}
    for key, summand in pairs:
        found[key] = found[key] + summand if key in found else summand
    return found


def planned(places):
    """Bytes of each layer and direction that depend on the plan."""
    return summed((place.key, Moved(place.launch.planned_reads, place.launch.planned_writes)) for place in places)


@dataclass(frozen=True)
class Split:
    """What a layer moves in one direction, but for what depends on the plan."""
    of_image: Moved
    of_micro_batch: Moved

    def at(self, images):
        return images * self.of_image + self.of_micro_batch


def split(steps):
    """{key: Split} of the counted_step() of two sizes of micro-batches: {images: [(Place, Moved)]}"""
    few, many = sorted(steps)
    plain = {}
    for images, counted in steps.items():
        sums = planned(place for place, _ in counted)
        plain[images] = {key: moved - sums[key]
                         for key, moved in summed((place.key, moved) for place, moved in counted).items()}
    found = {}
    for key, moved in plain[few].items():
        of_image = 1 / (many - few) * (plain[many][key] - moved)
        found[key] = Split(of_image, moved - few * of_image)
    return found


def extrapolated(splits, networks, update):
    """{(layer, direction): Moved} of a step; micro-batches behind the first add to gradients, as the last counted one
    does."""
    last = max(number for number, _, _ in splits)
    found = []
    for number, layer, direction in dict.fromkeys(place.key for place in in_order(networks, update)):
        of = splits[min(number, last), layer, direction]
        found.append(((number, layer, direction), of.at(networks[number].images)))
    found += planned(in_order(networks, update)).items()
    return summed((key[1:], moved) for key, moved in found)


def predicted(places):
    """{(layer, direction): bytes} by the formulas of launches.py."""
    return summed((place.key[1:], place.launch.bytes) for place in places)
