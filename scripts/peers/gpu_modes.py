"""What pytorch_gpu.py measures, in which order, and the time that each part may take."""
import dataclasses
import time


@dataclasses.dataclass(frozen=True)
class Mode:
    """A way to train. `engine`: eager, compiled (torch.compile), all-compiled (the update, too) or graphs
    (torch.compile with CUDA graphs, mode="reduce-overhead")."""
    engine: str
    precision: str  # bf16 (autocast), tf32, float32
    layout: str = "channels-last"  # or channels-first, which PyTorch calls contiguous
    deterministic: bool = False

    def name(self):
        return "-".join([self.engine, self.precision, self.layout] + ["deterministic"] * self.deterministic)

    def compiles(self):
        return self.engine != "eager"

    def takes_long(self):
        """In float32 cuDNN searches long for the fastest kernels, though nothing is compiled."""
        return self.compiles() or self.precision == "float32"

    def why_not_on_a_cpu(self):
        if self.engine == "graphs":
            return "CUDA graphs need CUDA"
        return "a CPU has no TF32" if self.precision == "tf32" else None


@dataclasses.dataclass(frozen=True)
class Layers:
    """Convolutions one by one, as cuDNN computes them."""
    precision: str

    def name(self):
        return f"layers-{self.precision}"

    def compiles(self):
        return False

    def takes_long(self):
        return False

    def why_not_on_a_cpu(self):
        return "a CPU has no TF32" if self.precision == "tf32" else None


# What compiles nothing first: it takes seconds, and compiling may take more than there is.
BEST = [Mode("eager", "tf32"), Mode("eager", "bf16"), Mode("compiled", "bf16"), Mode("compiled", "tf32")]
OF_LARGE_BATCHES = [
    Mode("eager", "tf32", deterministic=True), Mode("eager", "float32"),
    Mode("compiled", "bf16", deterministic=True), Mode("graphs", "bf16"), Layers("bf16"), Layers("tf32")]
OF_SMALL_BATCHES = [Mode("graphs", "bf16"), Mode("compiled", "bf16"), Mode("graphs", "tf32"), Mode("eager", "tf32")]
REST = [
    Mode("eager", "tf32", "channels-first"), Mode("eager", "bf16", "channels-first"),
    Mode("compiled", "bf16", "channels-first"), Mode("all-compiled", "bf16"), Mode("compiled", "float32"),
    Mode("eager", "bf16", deterministic=True), Mode("compiled", "tf32", deterministic=True),
    Mode("eager", "float32", deterministic=True), Mode("compiled", "tf32", "channels-first")]
QUICK = [Mode("eager", "tf32"), Mode("eager", "bf16", deterministic=True), Mode("compiled", "bf16"),
         Mode("graphs", "bf16")]


def order(batches, quick):
    """(mode, batch), the most valuable first: an end by force costs the last ones."""
    large, *small = sorted(batches, reverse=True)
    if quick:
        return [(mode, large) for mode in QUICK]
    return ([(mode, large) for mode in BEST + OF_LARGE_BATCHES] +
            [(mode, batch) for batch in small for mode in OF_SMALL_BATCHES] +
            [(mode, large) for mode in REST])


class Budget:
    """Seconds for all, of which a mode may have a share."""
    LEAST = 3.0  # in less, nothing is measured

    def __init__(self, seconds, of_a_mode, now=time.monotonic):
        self.now, self.start, self.seconds, self.of_a_mode = now, now(), seconds, of_a_mode

    def spent(self):
        return self.now() - self.start

    def left(self):
        return self.seconds - self.spent()

    def of(self, mode):
        """Seconds for this mode, half of the usual for quick ones; None where it is too late to begin."""
        left = self.left()
        most = self.of_a_mode if mode.takes_long() else self.of_a_mode / 2
        return min(left, most) if left >= self.LEAST else None
