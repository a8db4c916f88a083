#include "cli/help/command_table.h"

#include <algorithm>

namespace cputrain::cli {
namespace {

const std::string kWeights = "runs/first/weights.safetensors";

std::vector<CommandRow> training_commands() {
  return {
      {"train",
       "",
       "train, evaluate and save a classifier (the default command)",
       "Trains a classifier, evaluates it after each epoch and saves its weights in a run folder. "
       "This is what runs when no command is named.",
       "",
       {{"cputrain --data photos --epochs 20 --out runs/first",
         "Trains on class folders (photos/cat/*.jpg, photos/dog/*.jpg) with all cores."},
        {"mpirun -np 4 cputrain --data photos --batch 256",
         "Trains with four ranks, which share each batch of 256 images."},
        {"cputrain --data photos --out runs/first --resume auto",
         "Goes on with a run that was interrupted."}},
       {"data", "model", "image-size", "batch", "epochs", "lr", "augment", "backend", "out",
        "resume"}},
      {"eval",
       "",
       "loss and accuracy of saved weights on a data set",
       "Prints loss, accuracy and a table by class of saved weights, on images that training did "
       "not learn from.",
       "",
       {{"cputrain eval --weights runs/first",
         "Evaluates on the images that training kept for validation."},
        {"cputrain eval --weights " + kWeights + " --data photos --confusion confusion.csv",
         "Also writes the confusion matrix as CSV."},
        {"cputrain eval --weights " + kWeights + " --data photos --page errors.html",
         "Also writes a page with the matrix and the images most surely answered wrong."}},
       {"weights", "data", "validation-split", "limit-val", "confusion", "page", "json", "backend",
        "threads"}},
      {"predict",
       "",
       "classes of image files and of folders of them",
       "Prints the class of each image. Folders stand for all images below them.",
       "IMAGE...",
       {{"cputrain predict --weights runs/first new.jpg", "Prints the most probable class."},
        {"cputrain predict --weights runs/first --csv answers.csv photos",
         "Writes the probabilities of all images of a folder as CSV."}},
       {"weights", "top", "csv", "json", "backend", "threads", "micro-batch"}},
      {"export",
       "",
       "saved weights as ONNX or safetensors, a model as a file to change",
       "Writes saved weights for other programs, or a model as a file that can be changed.",
       "",
       {{"cputrain export --weights " + kWeights + " --onnx model.onnx",
         "Writes network and weights as ONNX, with the preprocessing of images inside."},
        {"cputrain export --model vgg16 --model-file mine.json",
         "Writes a built-in model as a file to change, for --model mine.json."}},
       {"weights", "onnx", "safetensors", "export-layout", "model", "model-file"}},
  };
}

std::vector<CommandRow> data_commands() {
  return {
      {"data",
       "",
       "check, describe, pack or make up a data set",
       "Works on data sets: finds damaged images, counts, packs, and makes images up.",
       "",
       {{"cputrain data check photos", "Lists damaged and doubled images of a folder."},
        {"cputrain data synth photos --images 40", "Makes up a folder of images to try with."}},
       {}},
      {"data",
       "check",
       "find damaged, doubled and wrongly named images",
       "Reads every image and lists those that are damaged, doubled or left out, with the reason.",
       "DATA",
       {{"cputrain data check photos", "Checks a folder of class folders."},
        {"cputrain data check photos --json check.json", "Also writes what it finds as JSON."}},
       {"json", "allow-empty-classes", "validation-split", "threads", "io-threads"}},
      {"data",
       "info",
       "what a data set holds",
       "Says how many images of which class a data set holds, and how it is divided.",
       "DATA",
       {{"cputrain data info photos", "Describes a folder of class folders."}},
       {"json", "validation-split", "limit-train", "limit-val", "seed"}},
      {"data",
       "pack",
       "one file that is read instead of decoded",
       "Decodes and resizes all images once and writes them into one file, which training reads "
       "instead.",
       "DATA FILE.ctpack",
       {{"cputrain data pack photos photos.ctpack --image-size 96",
         "Packs a folder; train on it by --data photos.ctpack --image-size 96."}},
       {"image-size", "resize", "validation-split", "limit-train", "limit-val", "seed", "threads",
        "io-threads"}},
      {"data",
       "synth",
       "made-up images to try things with",
       "Writes a new folder of made-up images of two classes.",
       "FOLDER",
       {{"cputrain data synth photos --images 40 --image-size 64",
         "Makes 40 JPEG files, 20 of each class."}},
       {"images", "image-size", "format", "seed"}},
  };
}

std::vector<CommandRow> bench_commands() {
  return {
      {"bench",
       "",
       "speed of steps, allreduce, input and kernels beside the limits",
       "Measures parts of a training beside the limits of this machine.",
       "",
       {{"cputrain bench step", "Measures training steps of the default model."},
        {"mpirun -np 4 cputrain bench allreduce",
         "Measures the sum of gradients over four ranks."}},
       {}},
      {"bench",
       "step",
       "images/s and GFLOP/s of a training step",
       "Measures training steps, layer by layer, beside the peak of the cores and of the memory.",
       "",
       {{"cputrain bench step --model dogcat --batch 128", "Measures the paper's network."},
        {"mpirun -np 4 cputrain bench step --batch 128 --json step.json",
         "Measures four ranks together and writes all figures as JSON."}},
       {"model", "image-size", "batch", "micro-batch", "backend", "precision", "threads",
        "allreduce", "repeat", "json"}},
      {"bench",
       "allreduce",
       "every way to sum gradients over ranks",
       "Measures each algorithm that sums gradients over ranks, beside the memory's bandwidth.",
       "",
       {{"mpirun -np 4 cputrain bench allreduce --bytes 52871940",
         "Measures sums of as many bytes as the paper's network has gradients."}},
       {"bytes", "repeat", "threads", "json"}},
      {"bench",
       "input",
       "decoding, augmentation and batches",
       "Measures how fast images are decoded, changed and made into batches.",
       "",
       {{"cputrain bench input --data photos", "Measures with 256 images of a folder."}},
       {"data", "limit-train", "image-size", "augment", "micro-batch", "repeat", "threads",
        "io-threads", "json"}},
      {"bench",
       "kernels",
       "every layer and direction by micro-batch",
       "Measures every layer of a model, forward and backward, by the size of the micro-batch.",
       "",
       {{"cputrain bench kernels --model dogcat --micro-batch 8,32",
         "Compares two sizes of the micro-batch."}},
       {"model", "image-size", "micro-batch", "batch", "repeat", "backend", "precision", "threads",
        "json"}},
  };
}

std::vector<CommandRow> table_commands() {
  return {
      {"sweep",
       "",
       "the table \"seconds per epoch\" by CPUs, batch and backend",
       "Measures a grid of trainings and makes the table \"seconds per epoch\" of it. It goes on "
       "where it was interrupted.",
       "",
       {{"cputrain sweep --np 1,2 --batch 128,256 --out sweeps/mine",
         "Measures four cells: one and two CPUs, two batches."},
        {"cputrain sweep --backend cpu,cuda --np 1,2,4,8 --gpus 1,2 --batch 256",
         "CPUs and GPUs in one table."},
        {"cputrain report sweeps/mine", "Prints the table again, with speed-up and efficiency."}},
       {"np", "gpus", "batch", "backend", "model", "data", "repeat", "steps", "full-epochs",
        "launcher", "out"}},
      {"simulate",
       "",
       "the same table for machines that are not here",
       "Makes the same table for machines that are not here, from costs of layers that are "
       "measured here and a simulated network.",
       "",
       {{"cputrain simulate --np 1,16,96 --batch 128,1024",
         "Simulates up to 96 CPUs of the default platform, after minutes of measuring."},
        {"cputrain simulate --platform here --np 1,2 --batch 128",
         "Simulates this machine, to compare with a sweep."},
        {"cputrain simulate --platform h100-sxm-8 --np 1,2,4,8 --batch 256 --costs gpu_costs.json",
         "Simulates 1 to 8 GPUs, from costs of one that scripts/gpu_costs wrote."}},
       {"np", "batch", "platform", "model", "image-size", "network-gbps", "costs", "repeat", "out",
        "json"}},
      {"report",
       "",
       "tables and a page with plots from the folders of sweeps and runs",
       "Makes tables and an HTML page with plots from the folders of sweeps or of trainings.",
       "DIR...",
       {{"cputrain report sweeps/mine",
         "Prints the tables and writes report.html and others into the folder."},
        {"cputrain report --diff sweeps/before sweeps/after", "Compares two sweeps cell by cell."}},
       {"out", "reference", "price-per-hour", "price-per-cpu-hour", "price-per-gpu-hour", "diff",
        "json"}},
      {"info",
       "",
       "this machine, placement, libraries, and the layers of a model",
       "Describes this machine, the placement of ranks, the libraries, and the layers of a model.",
       "",
       {{"cputrain info --model resnet50v2 --classes 10",
         "Lists the layers with their parameters and work."},
        {"mpirun -np 2 cputrain info", "Shows which cores each of two ranks would get."}},
       {"model", "image-size", "classes", "backend", "threads", "json"}},
      {"selftest",
       "",
       "whether a backend computes what plain loops in double compute",
       "Runs every kind of layer and every call of a backend on random numbers in odd sizes, each "
       "twice, and compares with plain loops in double. Ends with 1 where a case fails.",
       "",
       {{"cputrain selftest", "Tests the kernels for this CPU."},
        {"cputrain selftest --backend cuda --json selftest.json",
         "Tests the kernels of a GPU and writes what was found as JSON."}},
       {"backend", "precision", "seed", "threads", "json"}},
  };
}

}  // namespace

const std::vector<CommandRow>& command_table() {
  static const std::vector<CommandRow> table = [] {
    std::vector<CommandRow> all;
    for (const auto& part :
         {training_commands(), data_commands(), bench_commands(), table_commands()}) {
      all.insert(all.end(), part.begin(), part.end());
    }
    return all;
  }();
  return table;
}

std::vector<std::string> command_names() {
  std::vector<std::string> names;
  for (const CommandRow& row : command_table()) {
    if (row.topic.empty()) names.push_back(row.name);
  }
  return names;
}

std::vector<std::string> topics_of(const std::string& command) {
  std::vector<std::string> topics;
  for (const CommandRow& row : command_table()) {
    if (row.name == command && !row.topic.empty()) topics.push_back(row.topic);
  }
  return topics;
}

}  // namespace cputrain::cli
