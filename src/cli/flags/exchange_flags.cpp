// Flags about how gradients are summed over ranks.

#include "cli/flags/flag_groups.h"
#include "cli/flags/sweep_flags.h"
#include "core/text.h"

namespace cputrain::cli {

void add_exchange_flags(Flags& f, Config& c) {
  add_listed_flag(
      f, c,
      {"allreduce", "NAME",
       "algorithm that sums gradients: auto, shm, " + join(comm::allreduce_algorithms(), ", ") +
           ", hierarchical[+NAME] or ps; by bytes: NAME:0-8192;NAME:8193-max; between GPUs: nccl, "
           "or staged by way of the host [auto]",
       [](const std::string& text) { return comm::to_text(comm::parse_allreduce(text)); }});
  f.suggest("allreduce", comm::allreduce_words());
  f.yes("reproducible", c.reproducible,
        "compute the same bits at any number of ranks and threads on one kind of CPU. "
        "--micro-batch (8) is then the number of images whose gradient is formed at once");
  add_listed_flag(
      f, c,
      {"compress", "METHOD",
       "how gradients travel over a slow network: none, fp16, bf16, topk[:FRACTION] (0.01) "
       "or powersgd[:RANK] (4) [none]",
       [](const std::string& text) {
         return exchange::to_text(exchange::parse_compression(text));
       }});
  f.suggest("compress", all_words<exchange::Compression::Method>());
  f.real("bucket-mb", c.bucket_mb, 0, 1e6,
         "least size in MB of the pieces in which gradients travel during backward [25]");
  f.yes_or_no("shard-dense", c.shard_dense,
              "let the ranks of a node compute large dense layers together, some inputs each "
              "[from three ranks on, where fewer bytes move]");
}

}  // namespace cputrain::cli
