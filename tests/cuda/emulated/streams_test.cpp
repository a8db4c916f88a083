#include <algorithm>
#include <cstring>

#include "emulated/device_fixture.h"
#include "emulated/test_kernels.h"

/// Streams, events and graphs: what is not ordered goes wrong sooner or later.
namespace cputrain::emulated {
namespace {

using Streams = OnDevice;
constexpr int kSize = 100;
constexpr std::size_t kBytes = kSize * sizeof(float);

float* floats(const cuda::PinnedBlock& block) { return reinterpret_cast<float*>(block.data()); }

struct Mistakes {
  bool no_wait = false;      ///< the kernel does not wait for the copy
  bool reuses_slot = false;  ///< the host overwrites what is being copied
};

/// In how many of 20 orders copying in, scaling on another stream and copying out gives the right
/// numbers.
int right_orders(const Mistakes& mistakes) {
  int right = 0;
  for (unsigned seed = 1; seed <= 20; ++seed) {
    restart({.order = Order::random, .seed = seed});
    const cuda::OwnedStream copies, work;
    const cuda::PinnedBlock in(kBytes), out(kBytes);
    const DeviceArray<float> x(std::vector<float>(kSize, 0), "x"), y(kSize, "y");
    std::fill_n(floats(in), kSize, 2.0f);
    cuda::copy_async(x.data(), in.data(), kBytes, copies.get());
    cuda::Event there;
    there.record(copies.get());
    if (!mistakes.no_wait) there.hold_up(work.get());
    launch_scale(work.get(), kSize, nullptr, 3, x.data(), y.data());
    cuda::copy_async(out.data(), y.data(), kBytes, work.get());
    if (mistakes.reuses_slot) std::fill_n(floats(in), kSize, 7.0f);
    work.synchronize();
    right += std::all_of(floats(out), floats(out) + kSize, [](float f) { return f == 6; });
  }
  return right;
}

TEST_F(Streams, AnEventOrdersThem) { EXPECT_EQ(right_orders({}), 20); }

TEST_F(Streams, AMissingWaitShows) {
  const int right = right_orders({.no_wait = true});
  EXPECT_LT(right, 16);
  EXPECT_GT(right, 3);
}

TEST_F(Streams, ASlotThatIsUsedTooEarlyShows) { EXPECT_EQ(right_orders({.reuses_slot = true}), 0); }

TEST_F(Streams, NothingHappensBeforeSomebodyWaits) {
  const cuda::OwnedStream stream;
  const cuda::PinnedBlock out(kBytes);
  const DeviceArray<float> x(std::vector<float>(kSize, 1), "x");
  std::fill_n(floats(out), kSize, -5.0f);
  cuda::copy_async(out.data(), x.data(), kBytes, stream.get());
  EXPECT_EQ(floats(out)[0], -5);
  stream.synchronize();
  EXPECT_EQ(floats(out)[0], 1);
}

TEST_F(Streams, PageableMemoryIsReadAtOnceAndWrittenBeforeTheCallReturns) {
  const cuda::OwnedStream stream;
  const DeviceArray<float> x(kSize, "x");
  std::vector<float> in(kSize, 3), out(kSize, 0);
  cuda::copy_async(x.data(), in.data(), kBytes, stream.get());
  in.assign(kSize, 9);
  cuda::copy_async(out.data(), x.data(), kBytes, stream.get());
  EXPECT_EQ(out, std::vector<float>(kSize, 3));
}

TEST_F(Streams, ClearingFillsWithZeros) {
  const cuda::OwnedStream stream;
  const DeviceArray<float> x(std::vector<float>(kSize, 1), "x");
  cuda::clear_async(x.data() + 1, 8, stream.get());
  stream.synchronize();
  std::vector<float> expected(kSize, 1);
  expected[1] = expected[2] = 0;
  EXPECT_EQ(x.values(), expected);
}

TEST_F(Streams, AnEventMeansThePlaceWhereItWasRecorded) {
  restart({.order = Order::reverse});  // later work first, where that is legal
  const cuda::OwnedStream stream;
  const cuda::PinnedBlock out(2 * kBytes);
  const DeviceArray<float> x(std::vector<float>(kSize, 1), "x");
  std::memset(out.data(), 0, out.size());
  cuda::copy_async(out.data(), x.data(), kBytes, stream.get());
  cuda::Event between;
  between.record(stream.get());
  cuda::copy_async(out.data() + kBytes, x.data(), kBytes, stream.get());
  between.synchronize();
  EXPECT_EQ(floats(out)[0], 1);
  EXPECT_EQ(floats(out)[kSize], 0);
  stream.synchronize();
  EXPECT_EQ(floats(out)[kSize], 1);
}

TEST_F(Streams, AnEventThatWasNeverRecordedHoldsNobodyUp) {
  const cuda::OwnedStream stream;
  const cuda::Event event;
  event.hold_up(stream.get());
  event.synchronize();
  stream.synchronize();
}

/// y = 1, 2, 3 by three launches of one graph, each with another rate.
std::vector<float> rates_of_launches(bool in_memory) {
  restart({});
  const cuda::OwnedStream stream;
  const cuda::PinnedBlock rate(sizeof(float));
  const DeviceArray<float> x(std::vector<float>(kSize, 1), "x"), y(kSize, "y"),
      on_device(1, "rate");
  float now = 1;
  const cuda::Graph graph(stream.get(), [&] {
    cuda::copy_async(on_device.data(), rate.data(), sizeof(float), stream.get());
    launch_scale(stream.get(), kSize, in_memory ? on_device.data() : nullptr, now, x.data(),
                 y.data());
  });
  std::vector<float> seen;
  for (; now <= 3; ++now) {
    *floats(rate) = now;
    graph.launch(stream.get());
    stream.synchronize();
    seen.push_back(y.values()[kSize - 1]);
  }
  return seen;
}

TEST_F(Streams, AGraphReadsMemoryAtEachLaunch) {
  EXPECT_EQ(rates_of_launches(true), (std::vector<float>{1, 2, 3}));
}

TEST_F(Streams, AGraphHasArgumentsByValue) {
  EXPECT_EQ(rates_of_launches(false), (std::vector<float>{1, 1, 1}));
}

/// Not that of the launch before, which was reached long ago.
TEST_F(Streams, EachLaunchOfAGraphRecordsItsEventsAnew) {
  restart({.order = Order::reverse});
  const cuda::OwnedStream stream;
  const cuda::PinnedBlock out(2 * kBytes);
  const DeviceArray<float> x(std::vector<float>(kSize, 1), "x");
  cuda::Event between;
  EXPECT_FALSE(cuda::is_capturing(stream.get()));
  const cuda::Graph graph(stream.get(), [&] {
    EXPECT_TRUE(cuda::is_capturing(stream.get()));
    cuda::copy_async(out.data(), x.data(), kBytes, stream.get());
    between.record_in_graph(stream.get());
    cuda::copy_async(out.data() + kBytes, x.data(), kBytes, stream.get());
  });
  for (int launch = 0; launch < 3; ++launch) {
    std::memset(out.data(), 0, out.size());
    graph.launch(stream.get());
    between.synchronize();
    EXPECT_EQ(floats(out)[0], 1);
    EXPECT_EQ(floats(out)[kSize], 0);
    stream.synchronize();
    EXPECT_EQ(floats(out)[kSize], 1);
  }
  EXPECT_TRUE(message_of<Error>([&] { between.record_in_graph(stream.get()); }));
}

TEST_F(Streams, CapturingDoesNothing) {
  const cuda::OwnedStream stream;
  const DeviceArray<float> x(std::vector<float>(kSize, 1), "x");
  const cuda::Graph graph(stream.get(), [&] { cuda::clear_async(x.data(), kBytes, stream.get()); });
  stream.synchronize();
  EXPECT_EQ(x.values()[0], 1);
  graph.launch(stream.get());
  stream.synchronize();
  EXPECT_EQ(x.values()[0], 0);
}

TEST_F(Streams, AGraphMayForkAndMustJoin) {
  for (const bool joins : {true, false}) {
    restart({});
    const cuda::OwnedStream stream, other;
    const DeviceArray<float> x(std::vector<float>(kSize, 1), "x"), y(kSize, "y"), z(kSize, "z");
    const auto message = message_of<Error>([&] {
      const cuda::Graph graph(stream.get(), [&] {
        cuda::Event begun, done;
        launch_scale(stream.get(), kSize, nullptr, 2, x.data(), y.data());
        begun.record(stream.get());
        begun.hold_up(other.get());
        launch_scale(other.get(), kSize, nullptr, 3, y.data(), z.data());
        done.record(other.get());
        if (joins) done.hold_up(stream.get());
      });
      graph.launch(stream.get());
      stream.synchronize();
      EXPECT_EQ(z.values()[0], 6);
    });
    EXPECT_EQ(message.has_value(), !joins);
    if (message) {
      EXPECT_PRED2(contains, *message, "a stream has not come back");
    }
  }
}

/// What the capture of such work says.
template <class Work>
std::string refusal(const Work& work) {
  restart({});
  const cuda::OwnedStream stream;
  return message_of<Error>([&] { const cuda::Graph graph(stream.get(), [&] { work(stream); }); })
      .value_or("");
}

TEST_F(Streams, ACaptureForbidsWaitingAndAllocating) {
  EXPECT_PRED2(contains, refusal([](const cuda::OwnedStream& s) { s.synchronize(); }),
               "waiting for a stream while a stream is being captured");
  EXPECT_PRED2(contains, refusal([](const cuda::OwnedStream&) {
                 const cuda::OwnedStream other;
                 other.synchronize();
               }),
               "waiting for a stream while a stream is being captured");
  EXPECT_PRED2(contains,
               refusal([](const cuda::OwnedStream&) { const cuda::DeviceBlock block(16, "more"); }),
               "an allocation while a stream is being captured");
  EXPECT_PRED2(contains, refusal([](const cuda::OwnedStream& s) {
                 float host = 0;
                 cuda::copy_async(&host, &host, sizeof host, s.get());
               }),
               "pageable memory cannot be captured");
}

TEST_F(Streams, ACaptureWhoseWorkThrowsIsForgotten) {
  const cuda::OwnedStream stream;
  const DeviceArray<float> numbers({1, 2}, "numbers");
  const auto message = message_of<std::runtime_error>([&] {
    const cuda::Graph graph(stream.get(), [&] {
      cuda::clear_async(numbers.data(), 4, stream.get());
      throw std::runtime_error("not today");
    });
  });
  EXPECT_EQ(message, "not today");
  cuda::clear_async(numbers.data() + 1, 4, stream.get());
  stream.synchronize();
  EXPECT_EQ(numbers.values(), (std::vector<float>{1, 0}));
}

TEST_F(Streams, OnlyTimedEventsTellWhenTheyWereReached) {
  const cuda::OwnedStream stream;
  const DeviceArray<float> numbers({1, 2}, "numbers");
  cuda::Event begin(cuda::Event::timed), end(cuda::Event::timed), untimed;
  begin.record(stream.get());
  cuda::clear_async(numbers.data(), 8, stream.get());
  end.record(stream.get());
  untimed.record(stream.get());
  EXPECT_TRUE(message_of<Error>([&] { end.seconds_since(begin); }));  // not reached yet
  stream.synchronize();
  EXPECT_GE(end.seconds_since(begin), 0);
  EXPECT_TRUE(message_of<Error>([&] { end.seconds_since(untimed); }));
  EXPECT_TRUE(message_of<Error>([&] { untimed.seconds_since(begin); }));
}

TEST_F(Streams, FreeingMemoryBreaksACapture) {
  const cuda::OwnedStream stream;
  auto block = std::make_optional<cuda::DeviceBlock>(16, "block");
  const auto message =
      message_of<Error>([&] { const cuda::Graph graph(stream.get(), [&] { block.reset(); }); });
  EXPECT_PRED2(contains, message.value_or(""), "freeing memory while a stream is being captured");
}

}  // namespace
}  // namespace cputrain::emulated
