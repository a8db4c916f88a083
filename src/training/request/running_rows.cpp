#include "core/text.h"
#include "logging/reporters.h"
#include "training/request/flag_grammars.h"
#include "training/request/flag_row.h"

// Flags about how a training runs and what it leaves: machine, exchange, checkpoints, logs.
namespace cputrain::training {
namespace {

using Flags = TrainingFlags;

constexpr double kMostSeconds = 1e7;  // of patience: four months

void add_machine(FlagRows& r) {
  r.part("machine");
  r.text("backend", &Flags::backend, "NAME", "what computes; cuda is for GPUs").recorded();
  r.choice("precision", &Flags::precision,
           "number format of products. float: 32-bit floats, on GPUs TF32. exact: 32-bit floats on "
           "GPUs, too. bf16: 16-bit brain floats; on CPUs with AVX512-BF16 in convolutions where "
           "that is faster.")
      .recorded();
  r.whole("threads", &Flags::threads, 1, 4096,
          "threads of each rank [the cores that it was given]");
  r.yes("bind", &Flags::bind,
        "bind the threads of each rank to its cores [where several ranks fill a machine]");
  r.whole("io-threads", &Flags::io_threads, 1, 4096,
          "threads for images [as --threads to decode them, 1 in 8 of these to change them during "
          "steps]");
  r.part("decoding");
  r.choice("decode", &Flags::decode,
           "when images are decoded: meanwhile, beside the steps of the first epoch, or first, "
           "before the first step, which finds damaged ones by then [meanwhile]");
  r.choice("cache", &Flags::cache,
           "where decoded images lie: in memory, in a file on disk (of TMPDIR, /var/tmp, /tmp or "
           "here), or none: each is decoded whenever it is needed. auto: the first of these that "
           "has room [auto]");
  r.part("input");
  r.whole("prefetch", &Flags::prefetch, 0, 1,
          "micro-batches that are made ahead, by a thread beside the steps; 0: each is made when a "
          "step asks for it, which shows what its images cost [1]")
      .meta = "0|1";
  r.choice("data-on-device", &Flags::data_on_device,
           "keep all training images on each GPU: auto where they fit into half of what is free "
           "beside the program and --augment only moves pixels (flip, vflip, six, crop) [auto]");
}

void add_exchange(FlagRows& r) {
  r.part("exchange");
  r.parsed("allreduce", &Flags::allreduce, "NAME",
           "algorithm that sums gradients: auto, shm, " + join(comm::allreduce_algorithms(), ", ") +
               ", hierarchical[+NAME] or ps; by bytes: NAME:0-8192;NAME:8193-max; between GPUs: "
               "nccl, or staged by way of the host [auto]",
           comm::parse_allreduce, comm::to_text)
      .suggests(comm::allreduce_words());
  r.yes("reproducible", &Flags::reproducible,
        "compute the same bits at any number of ranks and threads on one kind of CPU. "
        "--micro-batch (8) is then the number of images whose gradient is formed at once");
  r.parsed("compress", &Flags::compress, "METHOD",
           "how gradients travel over a slow network: none, fp16, bf16, topk[:FRACTION] (0.01) or "
           "powersgd[:RANK] (4) [none]",
           exchange::parse_compression,
           [](const exchange::Compression& value) { return exchange::to_text(value); })
      .suggests(all_words<exchange::Compression::Method>())
      .identity();
  r.real("bucket-mb", &Flags::bucket_mb, 0, 1e6,
         "least size in MB of the pieces in which gradients travel during backward [25]");
  r.yes("shard-dense", &Flags::shard_dense,
        "let the ranks of a node compute large dense layers together, some inputs each [from three "
        "ranks on, where fewer bytes move]");
}

void add_safety(FlagRows& r) {
  const auto safety = [](auto member) {
    return [member](auto& flags) -> auto& { return flags.safety.*member; };
  };
  r.part("checkpoints");
  r.parsed("checkpoint-every", safety(&SafetyFlags::checkpoint_every), "LIST",
           "take a checkpoint every N steps, Ns seconds, Nm minutes, Nh hours or Ne epochs, "
           "whichever comes first; 0: never. Times and epochs wait where checkpoints cost more "
           "than 1 % of the time [10m,1e]",
           parse_marks);
  r.text("resume", safety(&SafetyFlags::resume), "WHAT",
         "go on from a checkpoint. auto: the newest whole one in --out, or the beginning where "
         "there is none. DIR: the folder ckpt-<step>")
      .suggests({"auto"});
  r.whole("keep", safety(&SafetyFlags::keep), 1, 1'000'000,
          "checkpoints to keep; a finished run keeps one [2]");
  r.yes("save-best", safety(&SafetyFlags::save_best),
        "keep the weights of the epoch with the lowest loss of validation in best.safetensors "
        "(--monitor accuracy: the highest accuracy); those of the last step are in "
        "weights.safetensors all the same");
  r.choice("on-checkpoint-failure", safety(&SafetyFlags::on_checkpoint_failure),
           "if a checkpoint cannot be written: warn and train on, or end with exit code 74 "
           "[continue]");
  r.choice("on-failure", safety(&SafetyFlags::on_failure),
           "if a rank dies: end as the launcher has it, or end all at once, so that "
           "scripts/supervise goes on with the others, its default [stop]");
  r.parsed("early-stopping", safety(&SafetyFlags::early_stopping), "PATIENCE[:MIN_DELTA]",
           "end when the loss of validation has not fallen by more than MIN_DELTA for PATIENCE "
           "epochs (--monitor accuracy: the accuracy not risen). weights.safetensors then has the "
           "best weights, else those of the last step. Keeps the best as --save-best does",
           parse_early_stopping);
  r.choice("monitor", safety(&SafetyFlags::monitor),
           "what of validation --early-stopping, --save-best and --schedule plateau follow. "
           "loss is to fall, accuracy to rise; of equal accuracies the lower loss is the best "
           "[loss]");
  r.choice("on-nan", safety(&SafetyFlags::on_nan),
           "if gradients are NaN or infinite: end, skip the step, or go back to the last "
           "checkpoint and leave the step out [abort]");
  r.whole("check-replicas", safety(&SafetyFlags::check_replicas), 0, 1'000'000'000'000,
          "compare the ranks' weights every N steps; end with exit code 64 where they differ [0: "
          "at the end alone]");
}

void add_stalls(FlagRows& r) {
  const auto stalls = [](auto member) {
    return [member](auto& flags) -> auto& { return flags.stalls.*member; };
  };
  r.part("stalls");
  r.real("stall-timeout", stalls(&watch::Limits::timeout), 0, kMostSeconds,
         "end with exit code 76 where no rank has got further for X seconds; 0: never [600]");
  r.real("stall-warning", stalls(&watch::Limits::warning), 0.5, kMostSeconds,
         "say after X seconds, and then each minute, which rank the others wait for [60]");
  r.real("start-timeout", stalls(&watch::Limits::start), 0, kMostSeconds,
         "end with exit code 76 where MPI has not started after X seconds, and say which ranks did "
         "not come; 0: never [600]");
}

void add_output(FlagRows& r) {
  r.part("output");
  r.text("out", &Flags::out, "DIR",
         "folder of this run [a new one, runs/<date>-<model>-np<ranks>-b<batch>]");
  r.yes("overwrite", &Flags::overwrite,
        "allow --out to hold an earlier run, whose weights stay until there are new ones");
  r.whole("verbose", &Flags::verbose, 0, 3,
          "0: warnings and errors alone; 1: a progress bar; 2: a line per epoch; 3: also where "
          "every rank runs [1 on a terminal, else 2]");
  r.whole("log-every", &Flags::log_every, 0, 1'000'000'000,
          "write every Nth step and the last of each epoch to metrics.jsonl; 0: none [10]");
  r.yes("profile", &Flags::profile,
        "measure every layer in each direction, show the times at the end and write them to "
        "profile.json; steps on a GPU then take longer");
  r.yes("measure-limits", &Flags::measure_limits,
        "measure FMA peak and memory bandwidth of all ranks together before the first step, and "
        "write them to limits.json");
  r.part("logs");
  r.text("timeline", &Flags::timeline, "FILE",
         "write what every rank did and when, as a Chrome trace of --timeline-steps");
  r.parsed("timeline-steps", &Flags::timeline_steps, "FIRST:LAST",
           "steps that --timeline shows, counted from 1 [1:20]", parse_steps);
  r.parsed("log-format", &Flags::log_formats, "NAME,...",
           "further logs: " + logging::log_format_texts(), parse_log_formats)
      .suggests(logging::log_format_words());
}

}  // namespace

void add_running(FlagRows& r) {
  add_safety(r);
  add_stalls(r);
  add_machine(r);
  add_exchange(r);
  add_output(r);
}

}  // namespace cputrain::training
