#include "cli/flags/foreign_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "core/precision.h"
#include "core/text.h"

namespace cputrain::cli {
namespace {

/// Words of others (with commas between them) for one of ours; `advice` says it where more is to be
/// said than its name.
struct ForeignWords {
  std::string_view words, ours, advice = {};
};

/// Flags. Without `ours` it holds for every command.
constexpr ForeignWords kForeignFlags[] = {
    {"init-learning-rate,initial-lr,base-lr,base-learning-rate,lr0,lr-base", "lr"},
    {"num-epochs,n-epochs,max-epochs,num-train-epochs,train-epochs,nb-epochs,epoch,e", "epochs"},
    {"num-batches,max-steps,num-steps,train-steps,max-iter,iterations", "steps"},
    {"steps-per-epoch,fraction,subset,max-samples,max-train-samples,limit-train-batches",
     "limit-train", "use --limit-train N, which is a number of images"},
    {"validation-steps,max-eval-samples,limit-val-batches", "limit-val",
     "use --limit-val N, which is a number of images"},
    {"b,bs,global-batch-size,train-batch-size,minibatch-size,mini-batch-size", "batch"},
    {"local-batch-size,batch-size-per-gpu,per-gpu-batch-size,per-device-train-batch-size,"
     "batch-per-gpu",
     "batch-per-rank"},
    {"batch,batch-size,b,bs", "micro-batch", "use --micro-batch N, the images computed at once"},
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
    {"augmentation,data-augmentation,aug,transforms,hflip,horizontal-flip,color-jitter,"
     "auto-augment,aa,random-erase,reprob",
     "augment", "use --augment, whose help lists what there is"},
    {"no-aug,no-augment,no-augmentation", "augment", "use --augment none"},
    {"interpolation", "resize"},
    {"cache,cache-dataset,cache-images,ram-cache", "data",
     "images are decoded once and stay in memory; cputrain data pack writes them into a file"},
    {"arch,a,network,net,model-name,backbone", "model"},
    {"pretrained,load-weights,model-path,checkpoint-path,ckpt-path,initial-checkpoint,"
     "finetune-from",
     "weights",
     "use --weights with a file or the folder of a run, or --weights imagenet for those of "
     "`cputrain weights list`"},
    {"opt,optim,solver", "optimizer"},
    {"opt-eps,eps,adam-epsilon,epsilon", "optimizer", "use --optimizer RULE:epsilon=X"},
    {"freeze-layers,freeze-backbone,trainable", "freeze"},
    {"drop,drop-rate,dropout-rate", "dropout"},
    {"loss,criterion,loss-function", "model", "the model's last layer has its loss"},
    {"wd", "weight-decay"},
    {"l2,l2-regularization", "weight-decay",
     "layers of a model file have l2 (export --model-file writes one to change); --weight-decay "
     "comes on top"},
    {"clip-grad,grad-clip,max-grad-norm,gradient-clip-val,clip-grad-norm,clipnorm,"
     "gradient-clipping",
     "clip-norm"},
    {"clipvalue,clip-grad-value", "clip-value"},
    {"smoothing", "label-smoothing"},
    {"mixup,cutmix,mixup-alpha,cutmix-alpha,cutout,randaugment,rand-augment", "augment",
     "use --augment, whose help lists what there is, such as mixup:0.2,cutmix:1"},
    {"class-weight,weighted-loss,loss-weights", "class-weights"},
    {"model-ema,ema-decay,model-ema-decay,use-ema,ema-momentum", "ema"},
    {"test-time-augmentation,augment-test,flip-test", "tta"},
    {"validation-freq,val-interval,eval-interval,check-val-every-n-epoch,val-every", "eval-every"},
    {"warmup,num-learning-rate-warmup-epochs,warmup-proportion,lr-warmup-epochs,warmup-steps,"
     "lr-warmup-steps",
     "warmup-epochs"},
    {"cos-lr,cosine,min-lr,lr-min,lrf,eta-min", "schedule",
     "use --schedule cosine:FLOOR, where FLOOR is a part of the rate (0.01: a hundredth)"},
    {"gamma,lr-gamma,step-size,lr-step-size,decay-rate,decay-epochs,milestones,lr-steps,"
     "decay-milestones",
     "schedule", "use --schedule step:EPOCHS:FACTOR, or piecewise:EPOCH:FACTOR[,...]"},
    {"sched,scheduler,lr-schedule,lr-scheduler,lr-policy,lr-decay", "schedule"},
    {"target-acc,stop-at-top-1-accuracy", "target-accuracy"},
    {"patience,early-stop,patience-epochs", "early-stopping"},
    {"eval-metric,monitor-metric,metric,metric-for-best-model,checkpoint-metric", "monitor",
     "use --monitor accuracy, or --monitor loss"},
    {"resume-from,resume-from-checkpoint,restore,restore-from,load-checkpoint,snapshot,ckpt,"
     "checkpoint,start-epoch",
     "resume", "use --resume auto with the --out of that run, or --resume DIR/ckpt-N"},
    {"model,checkpoint,ckpt,resume,load,model-dir,run,run-dir", "weights"},
    {"save-every,save-period,save-freq,save-interval,checkpoint-freq,checkpoint-interval,save-"
     "steps",
     "checkpoint-every"},
    {"output-dir,output,outdir,o,log-dir,logdir,save-dir,save-path,work-dir,model-dir,run-dir,"
     "default-root-dir,project,experiment,exp-name,run-name",
     "out"},
    {"output,o,out,output-file,save,save-txt,results", "csv", "use --csv FILE, or --json FILE"},
    {"source,input,image,images,img,file,files,path", "top",
     "images stand without a flag: cputrain predict --weights FILE IMAGE..."},
    {"topk,top-k,k", "top"},
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
    {"channels-last,compile,torchcompile,jit,jit-compile,xla,data-format", "",
     "it is not needed: layouts and kernels are chosen for each layer"},
    {"no-cuda,no-gpu,cpu,use-cpu,cpu-only", "backend", "use --backend cpu"},
    {"np,n,num-proc,num-procs,nproc,nprocs,num-processes,nproc-per-node,processes,ranks,num-ranks,"
     "world-size,ppn",
     "", "the number of ranks goes before the program: mpirun -np N cputrain"},
    {"nnodes,num-nodes,nodes,h,hosts,host,hostfile,machinefile,master-addr,master-port,node-rank,"
     "rank,local-rank,dist-url,dist-backend,rdzv-backend,rdzv-endpoint,rdzv-id,standalone",
     "", "mpirun or srun starts the ranks: mpirun --hostfile FILE -np N cputrain"},
    {"evaluate,eval,eval-only,test,test-only,val,validate,val-only,do-eval", "",
     "use the command eval: cputrain eval --weights FILE --data DATA"},
    {"timeline-steps", "timeline", "use --timeline FILE:FIRST:LAST"},
    {"momentum", "optimizer", "use --optimizer momentum=X, or RULE:momentum=X"},
    {"nesterov", "optimizer", "use --optimizer sgd:momentum=0.9,nesterov"},
    {"rho", "optimizer", "use --optimizer rmsprop:rho=X"},
    {"centered", "optimizer", "use --optimizer rmsprop:centered"},
    {"trust", "optimizer", "use --optimizer lars:trust=X"},
    {"stall-timeout", "stall", "use --stall end=SECONDS"},
    {"stall-warning", "stall", "use --stall warn=SECONDS"},
    {"start-timeout", "stall", "use --stall start=SECONDS"},
    {"tensorboard,tb,tensorboard-dir,tensorboard-log-dir,summary-dir", "log-format",
     "it is not needed: each run writes TensorBoard's event files, which tensorboard --logdir RUN "
     "shows"},
    {"wandb,use-wandb,log-wandb,wandb-project", "log-format",
     "nothing is sent anywhere; each run writes TensorBoard's event files, which wandb sync RUN "
     "takes"},
    {"mlflow,use-mlflow,log-mlflow,mlflow-tracking-uri", "log-format",
     "nothing is sent anywhere; each run writes training.csv and metrics.jsonl, whose figures "
     "mlflow.log_metrics takes"},
    {"hub,hf-hub,hub-model,repo,repo-id,torch-hub", "weights",
     "use --weights imagenet, of a network of `cputrain weights list`, or --weights FILE"},
    {"format,include,formats", "onnx",
     "use --onnx FILE, --safetensors FILE or --model-file FILE, as many as are wanted"},
    {"opset,opset-version", "onnx", "use --onnx FILE, which is of opset 13"},
    {"openvino", "onnx", "use --onnx FILE, which OpenVINO reads, and ovc FILE converts"},
    {"tflite,litert,saved-model", "onnx",
     "use --onnx FILE, of which onnx2tf -i FILE makes a SavedModel and files of TensorFlow Lite"},
    {"int8,quantize,quantise,quantization", "onnx",
     "use --onnx FILE, which quantize_static of onnxruntime.quantization makes one of 8 bits"},
    {"threshold,thresh,conf,conf-thres,confidence,min-confidence", "top",
     "no class is left out by a threshold: --csv FILE and --json FILE have the probability of "
     "each class, to be compared with one"},
    {"gradcam,grad-cam,cam,heatmap,saliency,explain,visualize", "",
     "no map of what decided is drawn; cputrain eval --page FILE shows the images that were most "
     "surely predicted wrong"},
    {"auc,roc,roc-auc,auroc", "confusion",
     "it is not needed: eval prints the area under the ROC curve of two classes, and --json FILE "
     "has it"},
    {"multi-label,multilabel,multi-labels", "",
     "each image has one class here; train a network for each label, whose two classes are with "
     "it and without it"},
};

/// First words for what is no command here; a command names those for itself.
constexpr ForeignWords kForeignCommands[] = {
    {.words = "models,model,list-models,list,zoo",
     .ours = "",
     .advice =
         "cputrain train --help lists them under --model, cputrain info --model NAME the layers of "
         "one"},
    {.words = "completion,completions,autocomplete",
     .ours = "",
     .advice = "completions for bash and zsh come with the package, and with cmake --install"},
    {.words = "man,manual,docs", .ours = "", .advice = "use help, or help COMMAND"},
    {.words = "version", .ours = "", .advice = "use cputrain --version"},
    {.words = "resume,continue,restore",
     .ours = "",
     .advice = "use cputrain --resume auto --out RUN"},
};

/// Values, behind the flag that takes them.
constexpr std::pair<std::string_view, ForeignWords> kForeignValues[] = {
    {"backend", {"gpu,gpus,nvidia,cuda:0,nccl", "cuda"}},
    {"backend", {"onednn,dnnl,mkl,mkldnn,gloo", "cpu"}},
    {"precision", {"fp32,float32,f32,single,32,tf32", word_of(Precision::f32)}},
    {"precision", {"bfloat16,fp16,float16,half,16,amp,mixed", word_of(Precision::bf16)}},
    {"precision", {"fp64,float64,f64,64", word_of(Precision::f64)}},
    {"optimizer", {"adam-w", "adamw"}},
    {"optimizer", {"nadam,adamax,radam,amsgrad,adabelief,lion", "adam"}},
    {"optimizer", {"adagrad,adadelta,rms,rmsproptf", "rmsprop"}},
    {"optimizer", {"momentum,sgdm", "sgd", "use sgd:momentum=0.9"}},
    {"optimizer", {"nesterov,nag", "sgd", "use sgd:momentum=0.9,nesterov"}},
    {"schedule", {"cos,cosineannealing,cosineannealinglr,cosine-annealing", "cosine"}},
    {"schedule", {"onecycle,onecyclelr,one-cycle", "cosine", "use cosine with --warmup-epochs"}},
    {"schedule", {"steplr,exponential,exponentiallr", "step:", "use step:EPOCHS:FACTOR"}},
    {"schedule",
     {"multistep,multisteplr,multi-step", "piecewise:", "use piecewise:EPOCH:FACTOR[,...]"}},
    {"schedule", {"linear,polynomial,polynomiallr", "poly"}},
    {"monitor",
     {"val-accuracy,val-acc,acc,top1,top-1,acc1,sparse-categorical-accuracy", "accuracy"}},
    {"monitor", {"val-loss,cross-entropy", "loss"}},
    {"schedule", {"reducelronplateau,reduce-on-plateau", "plateau"}},
    {"resize",
     {"antialias,antialiased,antialias=true,pil,pillow,linear,torchvision", "bilinear",
      "bilinear, bicubic and area smooth (antialias), as Pillow does"}},
    {"resize", {"cubic,lanczos", "bicubic"}},
    {"resize", {"box", "area"}},
    {"resize", {"tf,tensorflow,keras,no-antialias,opencv,cv2", "bilinear-plain"}},
    {"augment",
     {"randaugment,rand-augment,autoaugment,trivialaugment,augmix,rand-m9-mstd0.5", "rand",
      "use rand:STEPS:MAGNITUDE, such as rand:2:9"}},
    {"augment",
     {"hflip,horizontal-flip,fliplr,random-horizontal-flip,randomhorizontalflip", "flip"}},
    {"augment", {"vertical-flip,flipud,random-vertical-flip,randomverticalflip", "vflip"}},
    {"augment", {"random-crop,randomcrop", "crop", "use crop:PIXELS, such as crop:4"}},
    {"augment", {"rrc,random-resized-crop,randomresizedcrop", "crop"}},
    {"augment",
     {"colorjitter,color-jitter,jitter,hsv", "colour", "use colour:PART, such as colour:0.4"}},
    {"augment",
     {"rotation,random-rotation,randomrotation,degrees", "rotate",
      "use rotate:DEGREES, such as rotate:15"}},
    {"augment",
     {"translate,translation,width-shift-range,height-shift-range", "shift",
      "use shift:PART, such as shift:0.1"}},
    {"augment", {"scale", "zoom", "use zoom:PART, such as zoom:0.2"}},
    {"augment",
     {"erase,erasing,random-erasing,randomerasing,random-erase,reprob", "cutout",
      "use cutout:PIXELS, such as cutout:16"}},
    {"compress", {"float16,half", "fp16"}},
    {"compress", {"bfloat16", "bf16"}},
    {"compress", {"top-k,dgc", "topk"}},
};

/// Its commands as this program was called.
std::string called_so(std::string_view advice, const std::string& program) {
  return replaced(std::string(advice), "cputrain", program);
}

bool is_one_of(std::string_view words, const std::string& word) {
  const std::vector<std::string> all = split(words, ',');
  return std::ranges::find(all, word) != all.end();
}

/// Words of people: "OneCycleLR", "cosine_annealing".
std::string plain(std::string word) {
  word = small_letters(std::move(word));
  std::ranges::replace(word, '_', '-');
  return word;
}

/// What the table has for a value, or "".
std::string known_value(const std::string& flag, const std::string& value,
                        std::span<const std::string> choices) {
  for (const auto& [name, foreign] : kForeignValues) {
    const auto& [words, ours, advice] = foreign;
    const bool known = std::ranges::find(choices, ours) != choices.end();
    if (name != flag || !known || !is_one_of(words, plain(value))) continue;
    return "; " +
           (advice.empty() ? "did you mean " + std::string(ours) + "?" : std::string(advice));
  }
  return "";
}

}  // namespace

std::string hint_for_flag(const std::string& name, const std::set<std::string>& flags,
                          const std::string& program) {
  for (const auto& [words, ours, advice] : kForeignFlags) {
    if (!is_one_of(words, name)) continue;
    if (!ours.empty() && !flags.contains(std::string(ours))) continue;
    return "; " + (advice.empty() ? "use --" + std::string(ours) : called_so(advice, program));
  }
  return "";
}

std::string hint_for_value(const std::string& flag, const std::string& value,
                           std::span<const std::string> choices) {
  const std::string known = known_value(flag, value, choices);
  return known.empty() ? did_you_mean(value, choices) : known;
}

std::string hint_for_form(const std::string& flag, const std::string& value,
                          std::span<const std::string> choices) {
  constexpr std::size_t kSeparator = 2;  // "; "
  const std::vector<std::string> parts = split(value, ',');
  std::string hints;
  for (const std::string& part : parts) {
    std::string word = part.substr(0, part.find(':'));
    if (word.starts_with("rand-")) word = "randaugment";  // timm's, with figures in the word
    const std::string known = known_value(flag, word, choices);
    if (known.empty() || parts.size() == 1) {
      hints += known;
    } else {
      hints += fmt::format("; for {} {}", printable(part), known.substr(kSeparator));
    }
  }
  return hints;
}

std::string hint_for_command(const std::string& word, std::span<const CommandEntry> commands,
                             const std::string& program) {
  if (const std::size_t equals = word.find('='); equals != std::string::npos) {
    return fmt::format("; flags begin with two hyphens: --{}", word);
  }
  for (const ForeignWords& foreign : kForeignCommands) {
    if (!is_one_of(foreign.words, plain(word))) continue;
    return "; " + called_so(foreign.advice, program);
  }
  std::vector<std::string> names;
  for (const CommandEntry& command : commands) {
    if (is_one_of(command.others, plain(word))) {
      return "; " + (command.advice.empty() ? "use " + command.full_name()
                                            : called_so(command.advice, program));
    }
    if (command.topic.empty()) names.push_back(command.name);
  }
  return did_you_mean(word, names);
}

std::string hint_for_weights(const std::string& name) {
  constexpr std::string_view kElsewhere = "imagenet,pretrained,default,auto,true,yes,none,coco";
  const std::string word = plain(name);
  if (!is_one_of(kElsewhere, word) && word.find("imagenet") == std::string::npos) return "";
  return "; weights of ImageNet are --weights imagenet, of a network of `cputrain weights list`";
}

}  // namespace cputrain::cli
