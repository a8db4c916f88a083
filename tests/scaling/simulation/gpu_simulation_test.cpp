#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "scaling/simulation/gpu/gpu_forecast.h"
#include "tests/scaling/simulation/made_gpus.h"

namespace cputrain::simulation {
namespace {

constexpr double kBytes = 8e6;

Platform made(const json& file = gpus()) { return platform_from_json(file, "made"); }

GpuStepCosts costs_of(const json& file) {
  return {gpu_costs_from_json(file, "made"), {"G", "m", 1, "tf32"}, graph()};
}

GpuForecast forecast(const json& platform_file, GpuRun run = {},
                     const json& file = gpu_costs_file()) {
  if (run.images_per_epoch == 0) run.images_per_epoch = 160;
  return {made(platform_file), gpu_costs_from_json(file, "made").kind, costs_of(file), graph(),
          run};
}

cells::Cell cell_of(const GpuForecast& of, int ranks, std::size_t batch) {
  cells::Cell cell{.cpus = ranks, .batch = batch, .backend = "cuda", .ranks = ranks};
  of.fill(cell);
  return cell;
}

void expect_error(ExitCode code, const std::string& says, const std::function<void()>& call) {
  try {
    call();
    FAIL() << "nothing was said, expected: " << says;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    EXPECT_NE(std::string(error.what()).find(says), std::string::npos) << error.what();
  }
}

TEST(GpuSums, OneGpuTakesNoTime) { EXPECT_EQ(sum_seconds(made(gpus(5, 7, 9)), 1, kBytes), 0); }

// Each GPU of a ring sends every n-th part 2 (n - 1) times.
TEST(GpuSums, ARingWithoutLatencyHasItsClosedForm) {
  for (const int n : {2, 3, 4}) {
    EXPECT_NEAR(sum_seconds(made(), n, kBytes), 2.0 * (n - 1) / n * kBytes / 10e9, 1e-15) << n;
  }
}

TEST(GpuSums, LatencyIsOfEachStepAndEachSum) {
  const double without = sum_seconds(made(), 4, kBytes);
  EXPECT_NEAR(sum_seconds(made(gpus(5, 7)), 4, kBytes) - without, 7e-6 + 6 * 5e-6, 1e-12);
  EXPECT_NEAR(sum_seconds(made(gpus(5, 7)), 4, 0), 7e-6 + 6 * 5e-6, 1e-12);
}

// Nodes sum their slices over the network: 2 (K - 1)/K of the bytes of a node, however many GPUs.
TEST(GpuSums, NodesSumWhatTheirGpusHaveSummed) {
  const double in_node = sum_seconds(made(), 4, kBytes);
  for (const int nodes : {2, 4}) {
    EXPECT_NEAR(sum_seconds(made(), 4 * nodes, kBytes),
                in_node + 2.0 * (nodes - 1) / nodes * kBytes / 1e9, 1e-12);
  }
  EXPECT_NEAR(sum_seconds(made(gpus(0, 0, 30)), 16, 0), 6 * 30e-6, 1e-12);
}

TEST(GpuSums, GrowWithBytesAndGpus) {
  const Platform platform = made(gpus(5, 7, 9));
  double before = 0;
  for (const int gpus : {1, 2, 4, 8, 16}) {
    const double seconds = sum_seconds(platform, gpus, kBytes);
    EXPECT_GT(seconds, before - (gpus == 1));
    EXPECT_GE(sum_seconds(platform, gpus, 2 * kBytes), seconds);
    before = seconds;
  }
}

TEST(GpuSums, FollowEachOtherAndWaitForTheirGradients) {
  EXPECT_EQ(end_of_sums({}, {}), 0);
  EXPECT_EQ(end_of_sums({2, 2.5}, {1, 1}), 4);
  EXPECT_EQ(end_of_sums({2, 5}, {1, 1}), 6);
}

TEST(GpuStepCosts, LieInProportionBetweenBatches) {
  const GpuStepCosts costs = costs_of(gpu_costs_file());
  const GpuStep step = costs.at(6);  // half-way from 4 to 8
  EXPECT_NEAR(step.forward, 3 * 1.5e-3, 1e-12);
  EXPECT_NEAR(step.all_backward(), 10 * 1.5e-3, 1e-12);
  EXPECT_NEAR(step.update, 2 * 1.5e-3, 1e-12);
  EXPECT_NEAR(step.other, 1.5e-3, 1e-12);
  EXPECT_EQ(step.last, 1);
  EXPECT_EQ(costs.obstacle(4), "");
  EXPECT_NE(costs.obstacle(3), "");
  EXPECT_NE(costs.obstacle(17).find("4 to 16"), std::string::npos);
}

TEST(GpuStepCosts, SayWhatTheLastMicroBatchHas) {
  json file = gpu_costs_file();
  file["steps"][1]["micro_batch"] = 3;  // 8 images: 3, 3 and 2
  EXPECT_DOUBLE_EQ(costs_of(file).at(8).last, 2.0 / 8);
  EXPECT_DOUBLE_EQ(costs_of(file).at(6).last, 3.0 / 6);
}

// 48 and 64 multiply-adds. Forward has each once; backward has the first layer once, which need not
// make a gradient of images, and the second twice: 288 in all.
TEST(GpuStepCosts, GiveLayersTheirPartByMultiplyAdds) {
  json file = gpu_costs_file();
  file["kind"] = "published";
  file["steps"] = {step(8, 1)};
  for (const char* key : {"layers", "update", "seconds"}) file["steps"][0].erase(key);
  file["steps"][0]["images_per_second"] = 4;  // 2 s
  const GpuStep step = costs_of(file).at(8);
  EXPECT_NEAR(step.forward, 2.0 * 112 / 288, 1e-12);
  EXPECT_NEAR(step.backward[2], 2.0 * 48 / 288, 1e-12);
  EXPECT_NEAR(step.backward[3], 2.0 * 128 / 288, 1e-12);
  EXPECT_NEAR(step.seconds(), 2, 1e-12);
}

TEST(GpuStepCosts, AreOfOneGpuNetworkAndPrecision) {
  const GpuCosts costs = gpu_costs_from_json(gpu_costs_file(), "made");
  for (const GpuStepCost& other : {GpuStepCost{"H", "m", 1, "tf32"},
                                   {"G", "n", 1, "tf32"},
                                   {"G", "m", 2, "tf32"},
                                   {"G", "m", 1, "bf16"}}) {
    expect_error(ExitCode::usage, "G of m at 1x1 in tf32",
                 [&] { GpuStepCosts(costs, other, graph()); });
  }
  EXPECT_EQ(costs_for(costs, {"G", "m", 1, "tf32"}).steps.size(), 3);
  EXPECT_TRUE(costs_for(costs, {"G", "m", 1, "bf16"}).steps.empty());
  json file = gpu_costs_file();
  file["steps"][0]["parameters"] = 41;
  expect_error(ExitCode::data, "of 41 parameters, not of 112", [&] { costs_of(file); });
  file = gpu_costs_file();
  file["steps"][2]["layers"][0]["name"] = "three\n";
  expect_error(ExitCode::data, "layer 'three\\n'", [&] { costs_of(file); });
}

TEST(GpuCosts, ComeBackAsTheyWere) {
  const json once = to_json(gpu_costs_from_json(gpu_costs_file(), "made"));
  EXPECT_EQ(json(to_json(gpu_costs_from_json(once, "made"))), once);
  EXPECT_EQ(gpu_costs_from_json(once, "made").origin(), "predicted: made up");
}

TEST(GpuCosts, RefuseWhatIsOdd) {
  const auto refused = [](const std::string& says, const std::function<void(json&)>& change) {
    json file = gpu_costs_file();
    change(file);
    expect_error(ExitCode::data, says, [&] { gpu_costs_from_json(file, "made"); });
  };
  refused("format", [](json& f) { f["format"] = "cputrain costs 2"; });
  refused("kind must be", [](json& f) { f["kind"] = "guessed"; });
  refused("steps must be a list", [](json& f) { f["steps"] = json::array(); });
  refused("steps is missing", [](json& f) { f.erase("steps"); });
  refused("batch", [](json& f) { f["steps"][0]["batch"] = 0; });
  refused("batch", [](json& f) { f["steps"][0]["batch"] = 1.5; });
  refused("micro_batch", [](json& f) { f["steps"][0]["micro_batch"] = 5; });
  refused("seconds", [](json& f) { f["steps"][0]["seconds"] = -1; });
  refused("seconds", [](json& f) { f["steps"][0]["seconds"] = "1"; });
  refused("seconds must not be less", [](json& f) { f["steps"][0]["seconds"] = 1e-3; });
  refused("either seconds or", [](json& f) { f["steps"][0].erase("seconds"); });
  refused("either seconds or", [](json& f) { f["steps"][0]["images_per_second"] = 1; });
  refused("forward", [](json& f) { f["steps"][0]["layers"][0]["forward"] = 1e300; });
  refused("backward is missing", [](json& f) { f["steps"][0]["layers"][0].erase("backward"); });
  refused("secnds is not a field", [](json& f) { f["steps"][0]["secnds"] = 1; });
  refused("is not an object", [](json& f) { f["steps"][0] = 1; });
}

TEST(GpuPlatform, ComesBackAndCountsItsGpus) {
  const Platform platform = made();
  EXPECT_EQ(platform.most_ranks(), 16);
  EXPECT_EQ(nodes_used(platform, 4), 1);
  EXPECT_EQ(nodes_used(platform, 5), 2);
  EXPECT_EQ(json(to_json(platform)), json(to_json(made(to_json(platform)))));
}

TEST(GpuPlatform, RefusesWhatIsOdd) {
  const auto refused = [](const std::string& says, const std::function<void(json&)>& change) {
    json file = gpus();
    change(file);
    expect_error(ExitCode::data, says, [&] { made(file); });
  };
  refused("per_node", [](json& f) { f["gpu"]["per_node"] = 0; });
  refused("ring_gbs", [](json& f) { f["gpu"]["ring_gbs"] = 0; });
  refused("all_host_gbs", [](json& f) { f["gpu"]["all_host_gbs"] = 3; });
  refused("hop_us is missing", [](json& f) { f["gpu"].erase("hop_us"); });
  refused("rings_gbs is not a field", [](json& f) { f["gpu"]["rings_gbs"] = 1; });
  refused("gpu must have no cpu", [](json& f) { f["noise"] = 0.1; });
  refused("gpu must have no cpu", [](json& f) { f["cpu"] = platform()["cpu"]; });
}

TEST(GpuPlatform, BuiltInOnesAreReadAndHaveSources) {
  int gpu_platforms = 0;
  for (const std::string& name : platform_names()) {
    if (name == kHere) continue;
    const Platform platform = find_platform(name, {});
    EXPECT_EQ(platform.name, name);
    EXPECT_FALSE(platform.sources.empty()) << name;
    gpu_platforms += platform.gpus.has_value();
  }
  EXPECT_GE(gpu_platforms, 4);
}

TEST(GpuForecast, OneGpuTakesTheTimeOfItsCosts) {
  const cells::Cell cell = cell_of(forecast(gpus(5, 7, 9)), 1, 8);
  ASSERT_EQ(cell.status, cells::CellStatus::predicted);
  EXPECT_NEAR(*cell.seconds_per_epoch, 160 / 8 * 16 * 2e-3, 1e-9);
  EXPECT_EQ(cell.budget->allreduce_exposed, 0);
  EXPECT_EQ(cell.limits.what, "compute");
  EXPECT_NEAR(*cell.images_per_second * *cell.seconds_per_epoch, 160, 1e-9);
}

TEST(GpuForecast, MeasuredCostsAreSimulated) {
  for (const char* kind : {"measured", "published"}) {
    json file = gpu_costs_file();
    file["kind"] = kind;
    EXPECT_EQ(cell_of(forecast(gpus(), {}, file), 1, 8).status, cells::CellStatus::simulated);
  }
}

// One bucket is summed when backward has ended, 2 hops of 1 ms after it was begun. In two buckets
// the second layer's, which comes first, is summed beside the backward of the first one, 8 ms.
TEST(GpuForecast, BackwardHidesBucketsButTheLast) {
  const auto exposed = [](double hop_us, double bucket_bytes) {
    const GpuForecast made = forecast(gpus(hop_us), {.bucket_bytes = bucket_bytes});
    return cell_of(made, 2, 16).budget->allreduce_exposed / (160 / 16);
  };
  EXPECT_NEAR(exposed(1000, 1e6), 2e-3, 1e-6);
  EXPECT_NEAR(exposed(1000, 1), 2e-3, 1e-6);
  EXPECT_NEAR(exposed(6000, 1e6), 12e-3, 1e-6);
  EXPECT_NEAR(exposed(6000, 1), 2 * 12e-3 - 8e-3, 1e-6);
}

// A step has 0.8 GB of images, which the host copies at 4 GB/s and sends at 4 GB/s to one GPU,
// at 2.5 and 2 GB/s to each of four.
TEST(GpuForecast, ImagesOfTheHostMayBeTheLimit) {
  GpuRun run{.image_bytes = 100e6, .images_on_device = false};
  const auto waited = [&](int ranks) {
    return cell_of(forecast(gpus(), run), ranks, 8UL * ranks).budget->input_wait /
           (160.0 / (8 * ranks));
  };
  EXPECT_NEAR(waited(1), 0.2 - 32e-3, 1e-6);
  EXPECT_NEAR(waited(4), 0.4 - 32e-3, 1e-6);
  EXPECT_EQ(cell_of(forecast(gpus(), run), 1, 8).limits.what, "input");
  run.prefetch = false;
  EXPECT_NEAR(waited(1), 0.4, 1e-6);
  run.images_on_device = true;
  EXPECT_EQ(waited(1), 0);
}

TEST(GpuForecast, MoreGpusAreNoSlowerAtTheSameBatchOfEach) {
  const GpuForecast made = forecast(gpus(5, 7, 9));
  double before = 1e9;
  for (const int ranks : {1, 2, 4, 8, 16}) {
    const double seconds = *cell_of(made, ranks, 8UL * ranks).seconds_per_epoch;
    EXPECT_LT(seconds, before);
    EXPECT_GE(seconds * ranks, 160 / 8 * 16 * 2e-3 - 1e-9);
    before = seconds;
  }
}

TEST(GpuForecast, SaysWhyACellHasNoFigure) {
  const GpuForecast made = forecast(gpus());
  const struct {
    int ranks;
    std::size_t batch;
    const char* says;
  } cases[] = {{17, 136, "16 GPUs (4 x 4)"},
               {6, 48, "do not fill nodes of 4"},
               {4, 3, "without an image"},
               {2, 64, "steps of 4 to 16 images on a GPU, not of 32"}};
  for (const auto& [ranks, batch, says] : cases) {
    const cells::Cell cell = cell_of(made, ranks, batch);
    EXPECT_EQ(cell.status, cells::CellStatus::absent);
    EXPECT_NE(cell.reason.find(says), std::string::npos) << cell.reason;
  }
}

TEST(GpuForecast, KeepsImagesOnGpusThatHaveTwiceTheRoom) {
  EXPECT_TRUE(images_fit(*made().gpus, 0.5e9));
  EXPECT_FALSE(images_fit(*made().gpus, 0.51e9));
}

}  // namespace
}  // namespace cputrain::simulation
