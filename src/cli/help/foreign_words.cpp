#include "cli/help/foreign_words.h"

#include <algorithm>
#include <string_view>

#include "core/text.h"

namespace cputrain::cli {
namespace {

/// Words of others (with commas between them) for a flag of ours; `advice` says it where more is to
/// be said than its name. Without `ours` it holds for every command.
struct ForeignFlags {
  std::string_view words, ours, advice = {};
};

constexpr ForeignFlags kForeignFlags[] = {
    {"learning-rate,init-learning-rate,initial-lr,base-lr,base-learning-rate", "lr"},
    {"num-epochs,n-epochs,max-epochs,num-train-epochs,train-epochs,nb-epochs,epoch,e", "epochs"},
    {"num-batches,max-steps,num-steps,train-steps,max-iter,iterations", "steps"},
    {"b,bs,global-batch-size,train-batch-size,minibatch-size,mini-batch-size", "batch"},
    {"local-batch-size,batch-size-per-gpu,per-gpu-batch-size,per-device-train-batch-size,"
     "batch-per-gpu",
     "batch-per-rank"},
    {"grad-accum-steps,gradient-accumulation-steps,accumulate-grad-batches,batches-per-allreduce,"
     "iter-size",
     "accumulate"},
    {"data-dir,data-path,dataset,dataset-dir,dataset-path,data-root,d", "data"},
    {"train-dir", "data",
     "use --data DIR for a folder of images, --out DIR for what the run writes"},
    {"val-dir,valid-dir,test-dir", "data",
     "use --data DIR, a folder that holds the folders train and val"},
    {"val-split,validation-fraction,test-split,val-size", "validation-split"},
    {"img-size,imgsz,input-size,image-shape,resolution,crop-size,size", "image-size"},
    {"num-classes,nb-classes,n-classes", "classes"},
    {"augmentation,data-augmentation,aug,transforms", "augment"},
    {"arch,a,network,net,model-name,backbone", "model"},
    {"pretrained,load-weights,model-path,checkpoint-path,ckpt-path", "weights"},
    {"opt,optim,solver", "optimizer"},
    {"wd,l2,l2-regularization", "weight-decay"},
    {"clip-grad,grad-clip,max-grad-norm,gradient-clip-val", "clip-norm"},
    {"smoothing", "label-smoothing"},
    {"warmup,num-learning-rate-warmup-epochs,warmup-proportion", "warmup-epochs"},
    {"sched,scheduler,lr-schedule,lr-scheduler,lr-policy,lr-decay", "schedule"},
    {"target-acc,stop-at-top-1-accuracy", "target-accuracy"},
    {"patience,early-stop", "early-stopping"},
    {"resume-from,resume-from-checkpoint,restore,restore-from,load-checkpoint,snapshot,ckpt",
     "resume", "use --resume auto with the --out of that run, or --resume DIR/ckpt-N"},
    {"save-every,save-freq,save-interval,checkpoint-freq,checkpoint-interval,save-steps",
     "checkpoint-every"},
    {"output-dir,output,outdir,o,log-dir,logdir,save-dir,save-path,work-dir,model-dir,run-dir,"
     "default-root-dir",
     "out"},
    {"force,f,exist-ok,overwrite-output-dir", "overwrite"},
    {"display-every,print-freq,p,log-interval,log-steps,log-every-n-steps,logging-steps",
     "log-every"},
    {"trace-file,trace,timeline-filename", "timeline"},
    {"v,vv,verbosity,debug,log-level", "verbose", "use --verbose 3, which says most"},
    {"q,quiet,silent", "verbose", "use --verbose 0, which says warnings and errors alone"},
    {"num-workers,workers,j,num-data-workers,dataloader-num-workers,"
     "datasets-num-private-threads",
     "io-threads"},
    {"num-threads,nthreads,t,cpus,num-cpus,cores,num-cores,num-intra-threads,num-inter-threads",
     "threads", "use --threads N, which are those of each rank"},
    {"fp16,use-fp16,amp,mixed-precision,half,bf16,bfloat16,dtype", "precision",
     "use --precision bf16, where the backend has it"},
    {"fp16-allreduce", "compress", "use --compress fp16"},
    {"all-reduce-spec,all-reduce-alg,allreduce-algorithm,hierarchical-allreduce", "allreduce"},
    {"variable-update", "allreduce",
     "gradients are always summed over all ranks; --allreduce says how"},
    {"fusion-threshold-mb,bucket-cap-mb", "bucket-mb"},
    {"sync-batchnorm,sync-batch-norm,syncbn", "sync-bn"},
    {"deterministic,deterministic-algorithms", "reproducible"},
    {"random-seed,manual-seed,tf-random-seed,s", "seed"},
    {"gpus,gpu,num-gpus,ngpus,gpu-id,gpu-ids,device,devices,num-devices,cuda,use-cuda,use-gpu,"
     "accelerator",
     "backend", "start one rank per GPU: mpirun -np N cputrain --backend cuda"},
    {"no-cuda,no-gpu,cpu,use-cpu,cpu-only", "backend", "use --backend cpu"},
    {"np,n,num-proc,num-procs,nproc,nprocs,num-processes,nproc-per-node,processes,ranks,num-ranks,"
     "world-size,ppn",
     "", "the number of ranks goes before the program: mpirun -np N cputrain"},
    {"nnodes,num-nodes,nodes,h,hosts,host,hostfile,machinefile,master-addr,master-port,node-rank,"
     "rank,local-rank,dist-url,dist-backend,rdzv-backend,rdzv-endpoint,rdzv-id,standalone",
     "", "mpirun or srun starts the ranks: mpirun --hostfile FILE -np N cputrain"},
    {"evaluate,eval,eval-only,test,test-only", "",
     "use the command eval: cputrain eval --weights FILE --data DATA"},
};

/// A value of others for one of ours.
struct ForeignValues {
  std::string_view flag, words, ours;
};

constexpr ForeignValues kForeignValues[] = {
    {"backend", "gpu,gpus,nvidia,cuda:0,nccl", "cuda"},
    {"backend", "onednn,dnnl,mkl,mkldnn,gloo", "cpu"},
    {"precision", "fp32,float32,f32,single,32,tf32", "float"},
    {"precision", "bfloat16,fp16,float16,half,16,amp,mixed", "bf16"},
    {"precision", "fp64,float64,f64,64", "double"},
    {"optimizer", "adamw", "adam"},
    {"optimizer", "momentum,nesterov", "sgd"},
};

/// Its command as this program was called.
std::string called_so(std::string advice, const std::string& program) {
  constexpr std::string_view kName = "cputrain";
  const std::size_t at = advice.find(kName);
  if (at != std::string::npos) advice.replace(at, kName.size(), program);
  return advice;
}

bool is_one_of(std::string_view words, const std::string& word) {
  const std::vector<std::string> all = split(words, ',');
  return std::ranges::find(all, word) != all.end();
}

}  // namespace

std::string hint_for_flag(const std::string& name, const std::set<std::string>& flags,
                          const std::string& program) {
  for (const auto& [words, ours, advice] : kForeignFlags) {
    if (!is_one_of(words, name)) continue;
    if (!ours.empty() && !flags.contains(std::string(ours))) continue;
    return "; " + (advice.empty() ? "use --" + std::string(ours)
                                  : called_so(std::string(advice), program));
  }
  return "";
}

std::string hint_for_value(const std::string& flag, const std::string& value,
                           std::span<const std::string> choices) {
  for (const auto& [name, words, ours] : kForeignValues) {
    const bool known = std::ranges::find(choices, ours) != choices.end();
    if (name == flag && known && is_one_of(words, value)) {
      return "; did you mean " + std::string(ours) + "?";
    }
  }
  return did_you_mean(value, choices);
}

}  // namespace cputrain::cli
