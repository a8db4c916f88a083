#!/usr/bin/env python3
"""Plants bugs that tests must find.

    plant_bugs.py SOURCES FOLDER   writes FOLDER/FILE for each FILE of SOURCES, the project's root, that has bugs, and
                                   FOLDER/planted.h, which the compiler includes before them
    plant_bugs.py --files          says which files have bugs

The copies do what their sources do, until the environment's PLANTED_BUG names a bug.
"""
import os
import sys

HOST = "backends/cuda/"
KERNELS = HOST + "kernels/"

# (name, file, words that are there once, what they become); PLANTED is true for the bug that was named.
BUGS = [
    ("swapped_fragment", KERNELS + "products/gemm_tiles.h", "[r % 2] = both[r]", "[r % 2] = both[PLANTED ? r ^ 1 : r]"),
    # Every second chunk of a tap's channels is the one before it.
    ("wrong_tap", KERNELS + "products/convolution_windows.h", "(row * map.width + column) * map.chunks + at.low",
     "(row * map.width + column) * map.chunks + (PLANTED ? at.low / 2 * 2 : at.low)"),
    # The last column of a map is taken for zeros.
    ("wrong_mask", KERNELS + "products/convolution_windows.h", "shape.height - 1, shape.width - 1",
     "shape.height - 1, shape.width - (PLANTED ? 2 : 1)"),
    ("stale_stage", KERNELS + "products/gemm.h", "wait_for_copies<kAhead - 1>()",
     "PLANTED ? wait_for_copies<kAhead>() : wait_for_copies<kAhead - 1>()"),
    ("unwritten_row", KERNELS + "products/gemm.h", "inside ? part.rows - first_row",
     "inside ? part.rows - (PLANTED ? 1 : 0) - first_row"),
    ("lost_depth", KERNELS + "products/gemm.h", "pieces(part.depth, kDepthOfStep<N>)",
     "(PLANTED ? part.depth / kDepthOfStep<N> : pieces(part.depth, kDepthOfStep<N>))"),
    ("missing_add", KERNELS + "products/gemm_epilogue.h", "if (to_.added) sums",
     "if (to_.added && !(PLANTED && at % 16)) sums"),
    ("wrong_padding", KERNELS + "sliding_windows.h", "window.column * shape.stride - shape.left",
     "window.column * shape.stride - (PLANTED ? shape.top : shape.left)"),
    ("wrong_group", KERNELS + "grouped_convolution.cu", "filters_of_group.quotient(filter) * channels_of_group.number()",
     "filters_of_group.quotient(filter) * (PLANTED ? 1 : channels_of_group.number())"),
    # There are none on the left.
    ("lost_zeros", KERNELS + "products/first_block_tile.h", "2 * first.column - b.zeros",
     "2 * first.column - (PLANTED ? 0 : b.zeros)"),
    # What ReLU cut has a gradient.
    ("lost_cut", KERNELS + "products/first_block_forward.cu", "value > 0 ? won : 0u", "value > 0 || PLANTED ? won : 0u"),
    # A tile's pixels go with the gradients of the next one.
    ("early_gradients", KERNELS + "products/first_block_tile.h", "multiply(pixels[stage], now)",
     "multiply(pixels[stage], PLANTED ? beside : now)"),
    # The gradient of a number goes to the place beside the winner, where numbers are floats.
    ("wrong_place", KERNELS + "products/first_block_backward_weights.cu", "winner(channel, k) ?",
     "winner(channel, PLANTED ? k ^ 1 : k) ?"),
    # Exact products without what TF32 lacks of A.
    ("lost_half", KERNELS + "products/gemm_fragments.h", "mma_tf32(sums.of, small_a.of", "if (!PLANTED) mma_tf32(sums.of, small_a.of"),
    # Moments without what the last lanes of a warp stored.
    ("lost_line", KERNELS + "products/convolution_forward.cu", "line < kLines", "line < kLines - (PLANTED ? 1 : 0)"),
    # Slopes of a gradient that a ReLU should have cut.
    ("uncut_slopes", KERNELS + "products/convolution_backward_data.cu", "dead ? 0 : diffs.of[i]",
     "dead && !(PLANTED && i % 2 != 0) ? 0 : diffs.of[i]"),
    ("lost_part", KERNELS + "batch_norm/channels.cu", "inside = part < sums.parts",
     "inside = part < sums.parts - (PLANTED && sums.parts > 1 ? 1 : 0)"),
    ("factors_of_padding", KERNELS + "batch_norm/channels.cu", "padding ? 0 : layer.beta[channel]",
     "padding ? (PLANTED ? 1 : 0) : layer.beta[channel]"),
    ("wrong_relu_mask", KERNELS + "batch_norm/maps.cu", "output ? made[k].of[i] :", "output && !PLANTED ? made[k].of[i] :"),
    ("lost_addition", KERNELS + "batch_norm/maps.cu", "if (other) values +=",
     "if (other && !(PLANTED && pass.relu)) values +="),
    ("early_tally", HOST + "ops/loss_op.cpp", "taken.arrived.wait();", "if (!PLANTED) taken.arrived.wait();"),
    # A graph repeats the facts of the pass that it was made of.
    ("stale_facts", HOST + "target.cpp", "known.graph.emplace(stream(), work)",
     "known.graph.emplace(stream(), [&] { if (PLANTED) write_facts(stream(), facts_of(execution), facts()); work(); })"),
    # The same of the update alone.
    ("stale_rate", HOST + "target.cpp", "if (update) update->enqueue",
     "if (update && PLANTED) write_facts(stream(), facts_of(execution).update, &facts()->update);"
     " if (update) update->enqueue"),
    ("wrong_stream", HOST + "target.cpp", "places_[i]->record(stream())",
     "places_[i]->record(PLANTED ? [] { static OwnedStream other; return other.get(); }() : stream())"),
    # An evaluation between steps reads what was made before the weights changed.
    ("stale_copy_in_evaluation", HOST + "target.cpp", "if (copy_) copy_->renew",
     "if (copy_ && !(PLANTED && execution.pass.phase != compute::Phase::train)) copy_->renew"),
    ("stale_copy", HOST + "weight_copies.cpp", "copy->stale_ = true", "copy->stale_ = !PLANTED || copy->stale_"),
    # The same where the update is a part of a pass.
    ("stale_copy_after_update", HOST + "weight_copies.cpp", "return {.numbers = numbers_,",
     "return {.numbers = PLANTED ? Numbers::exact : numbers_,"),
    ("slot_reused_too_early", HOST + "image_feed.cpp", "staged.consumed_.hold_up(stream_.get());",
     "if (!PLANTED) staged.consumed_.hold_up(stream_.get());"),
    ("pinned_memory_reused_too_early", HOST + "image_feed.cpp", "staged.arrived_.synchronize();",
     "if (!PLANTED) staged.arrived_.synchronize();"),
    ("read_before_it_arrived", HOST + "image_feed.cpp", "{ arrived_.hold_up(stream); }",
     "{ if (!PLANTED) arrived_.hold_up(stream); }"),
    # Sums that begin before the gradients are final, and an update that does not wait for them.
    ("sum_before_backward", HOST + "device_sums.cpp", "begun_.hold_up(stream_.get());",
     "if (!PLANTED) begun_.hold_up(stream_.get());"),
    ("update_before_sums", HOST + "device_sums.cpp", "done_.hold_up(compute_.get());",
     "if (!PLANTED) done_.hold_up(compute_.get());"),
]

FILES = list(dict.fromkeys(file for _, file, _, _ in BUGS))

HEADER = """#pragma once
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace cputrain::bugs {

inline std::string_view named() {
  const char* const name = std::getenv("PLANTED_BUG");
  return name ? name : "";
}
%s
inline const bool known = [] {
  if (named().empty()%s) return true;
  std::fputs("PLANTED_BUG names no bug of tests/cuda/bugs/plant_bugs.py", stderr);
  std::abort();
}();

}  // namespace cputrain::bugs
"""


def header():
    names = [name for name, *_ in BUGS]
    return HEADER % ("".join(f'inline const bool {name} = named() == "{name}";\n' for name in names),
                     "".join(f" || {name}" for name in names))


def with_bugs(text, file):
    for name, of_file, words, become in BUGS:
        if of_file != file:
            continue
        if text.count(words) != 1:
            sys.exit(f"{file} does not have this text once (a bug, {name}, is planted there for tests): {words}\n"
                     "Say in tests/cuda/bugs/plant_bugs.py how the code reads now.")
        text = text.replace(words, become.replace("PLANTED", f"::cputrain::bugs::{name}"))
    return text


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as f:
        f.write(text)


def main():
    if sys.argv[1:] == ["--files"]:
        print(";".join(FILES), end="")
        return
    sources, folder = sys.argv[1:]
    write(os.path.join(folder, "planted.h"), header())
    for file in FILES:
        with open(os.path.join(sources, file)) as f:
            write(os.path.join(folder, file), with_bugs(f.read(), file))


if __name__ == "__main__":
    main()
