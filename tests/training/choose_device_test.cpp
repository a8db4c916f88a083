// Which rank computes on which device, on hosts that show their ranks all devices or one each.
#include "training/session/session.h"

#include <gtest/gtest.h>

#include <mutex>

#include "backends/threads/threads_communicator.h"
#include "core/error.h"

namespace cputrain::training {
namespace {

using DevicesOfRank = std::function<compute::DeviceList(int rank)>;

compute::Device device(int index, const std::string& identity, const std::string& name = "GPU") {
  return {.index = index, .name = name, .identity = identity, .facts = "", .emulated = false};
}

/// Every rank's choice.
std::vector<DeviceChoice> chosen(int ranks, const DevicesOfRank& devices,
                                 std::optional<int> ranks_a_node = {}) {
  std::vector<DeviceChoice> choices(static_cast<std::size_t>(ranks));
  threads::run_ranks(
      ranks,
      [&](comm::Communicator& communicator) {
        Services services;
        services.devices = [&](const std::string& name) -> std::optional<compute::DeviceList> {
          return name == "gpu" ? std::optional(devices(communicator.rank())) : std::nullopt;
        };
        choices[static_cast<std::size_t>(communicator.rank())] =
            choose_device(communicator, comm::read_node_map(communicator), services, "gpu");
      },
      ranks_a_node);
  return choices;
}

std::vector<int> devices_of(const std::vector<DeviceChoice>& choices) {
  std::vector<int> devices;
  for (const DeviceChoice& choice : choices) devices.push_back(choice.device);
  return devices;
}

std::vector<int> sharers_of(const std::vector<DeviceChoice>& choices) {
  std::vector<int> sharers;
  for (const DeviceChoice& choice : choices) sharers.push_back(choice.ranks);
  return sharers;
}

TEST(ChooseDevice, RanksOfANodeTakeItsDevicesInTurn) {
  const auto choices = chosen(5, [](int) {
    return compute::DeviceList{{device(0, "a"), device(1, "b")}, "", ""};
  });
  EXPECT_EQ(devices_of(choices), (std::vector{0, 1, 0, 1, 0}));
  EXPECT_EQ(sharers_of(choices), (std::vector{3, 2, 3, 2, 3}));
  for (const DeviceChoice& choice : choices) {
    EXPECT_EQ(choice.line, "Devices: 1 x GPU with 2 ranks, 1 x GPU with 3 ranks");
  }
}

// As batch systems do that bind a device to each task: all of them are number 0.
TEST(ChooseDevice, ADeviceThatOneRankAloneIsShownIsItsOwn) {
  const auto choices = chosen(3, [](int rank) {
    return compute::DeviceList{{device(0, std::to_string(rank))}, "", ""};
  });
  EXPECT_EQ(devices_of(choices), (std::vector{0, 0, 0}));
  EXPECT_EQ(sharers_of(choices), (std::vector{1, 1, 1}));
  EXPECT_EQ(choices[0].line, "Devices: 3 x GPU with 1 rank each");
}

TEST(ChooseDevice, DevicesOfOtherNodesAreOtherDevices) {
  const auto choices = chosen(
      4,
      [](int) {
        return compute::DeviceList{{device(0, "a", "Small"), device(1, "b", "Large")}, "", ""};
      },
      2);
  EXPECT_EQ(devices_of(choices), (std::vector{0, 1, 0, 1}));
  EXPECT_EQ(sharers_of(choices), (std::vector{1, 1, 1, 1}));
  EXPECT_EQ(choices[3].line, "Devices: 2 x Large with 1 rank each, 2 x Small with 1 rank each");
}

// A list may leave out devices that kernels are not made for.
TEST(ChooseDevice, TheNumberIsTheDevicesOwn) {
  const auto choices = chosen(1, [](int) { return compute::DeviceList{{device(3, "d")}, "", ""}; });
  EXPECT_EQ(devices_of(choices), std::vector{3});
  EXPECT_EQ(choices[0].line, "Devices: 1 x GPU with 1 rank");
}

TEST(ChooseDevice, NobodyGoesOnWhereOneHasNone) {
  std::mutex mutex;
  int refused = 0;
  const auto try_it = [&](const DevicesOfRank& devices) -> std::string {
    std::string text;
    threads::run_ranks(3, [&](comm::Communicator& communicator) {
      Services services;
      services.devices = [&](const std::string&) { return devices(communicator.rank()); };
      try {
        choose_device(communicator, comm::read_node_map(communicator), services, "gpu");
      } catch (const Error& error) {
        const std::lock_guard lock(mutex);
        EXPECT_EQ(error.code(), ExitCode::usage);
        EXPECT_TRUE(text.empty() || text == error.what());
        text = error.what();
        ++refused;
      }
    });
    return text;
  };
  const compute::DeviceList none{{}, "no driver", "install one"};
  EXPECT_EQ(
      try_it([&](int) { return none; }),
      "--backend gpu: no driver (it computes on a GPU); install one, or use another --backend");
  EXPECT_EQ(refused, 3);
  EXPECT_EQ(try_it([&](int rank) {
              return rank == 1 ? none : compute::DeviceList{{device(0, "a")}, "", ""};
            }),
            "rank 1: --backend gpu: no driver (it computes on a GPU); install one, or use another "
            "--backend");
  EXPECT_EQ(refused, 6);
}

TEST(ChooseDevice, AllRanksKnowHowManyThereAreOfWhichKind) {
  const auto shared = chosen(
      4,
      [](int) {
        return compute::DeviceList{{device(0, "a", "H100")}, "", ""};
      },
      2);
  const auto mixed = chosen(3, [](int rank) {
    return compute::DeviceList{
        {device(0, std::to_string(rank), rank == 1 ? "H200" : "H100")}, "", ""};
  });
  for (const DeviceChoice& choice : shared) {
    EXPECT_EQ(choice.all, 2);  // one on each of two nodes
    EXPECT_EQ(choice.name, "H100");
  }
  for (const DeviceChoice& choice : mixed) {
    EXPECT_EQ(choice.all, 3);
    EXPECT_EQ(choice.name, "H100 and H200");
  }
}

TEST(ChooseDevice, ARankKnowsWhatItsOwnDeviceSays) {
  const auto choices = chosen(2, [](int) {
    compute::DeviceList list{{device(0, "a"), device(1, "b")}, "", ""};
    list.devices[1].at_first = "slow";
    return list;
  });
  EXPECT_EQ(choices[0].at_first, "");
  EXPECT_EQ(choices[1].at_first, "slow");
}

TEST(ChooseDevice, NothingToChooseOnTheCpu) {
  threads::run_ranks(2, [](comm::Communicator& communicator) {
    Services services;
    const comm::NodeMap nodes = comm::read_node_map(communicator);
    EXPECT_EQ(choose_device(communicator, nodes, services, "cpu").line, "");
    services.devices = [](const std::string&) { return std::nullopt; };
    EXPECT_EQ(choose_device(communicator, nodes, services, "cpu").line, "");
  });
}

}  // namespace
}  // namespace cputrain::training
