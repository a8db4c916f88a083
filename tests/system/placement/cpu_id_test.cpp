#include "system/placement/machine.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "core/json_fields.h"

namespace cputrain::placement {
namespace {

CpuId read(const nlohmann::json& machine) {
  const JsonFields fields(machine, "here", "");
  JsonMembers members(fields);
  CpuId id;
  describe_cpu_id(members, id);
  return id;
}

nlohmann::ordered_json written(CpuId id) {
  nlohmann::ordered_json machine = nlohmann::ordered_json::object();
  JsonMembers members(machine);
  describe_cpu_id(members, id);
  return machine;
}

const CpuId kZen4{.vendor = "AuthenticAMD",
                  .family = 25,
                  .model = 17,
                  .stepping = 1,
                  .instructions = {"avx2", "avx512f"}};
const CpuId kArm{.vendor = "0x41", .part = 3404, .variant = 1, .revision = 0};

TEST(CpuIdTest, ComesBackFromJson) {
  for (const CpuId& id : {kZen4, kArm, CpuId{.instructions = {"sve"}}}) {
    EXPECT_EQ(read(written(id)), id);
    EXPECT_EQ(read({{"cpu_id", to_json(id)}}), id);
  }
  EXPECT_EQ(to_json(kZen4).dump(),
            R"({"vendor":"AuthenticAMD","family":25,"cpu_model":17,"stepping":1,)"
            R"("instructions":["avx2","avx512f"]})");
  EXPECT_EQ(read({{"cpu_id", {{"model", 17}}}}).model, 17);  // as older files have it
}

TEST(CpuIdTest, WhatOneSystemSeesIsNoPartOfItsKind) {
  CpuId here = kZen4;
  here.cores = 2;
  here.caches = {"L2 1024 KiB x 2"};
  here.microcode = "0x1";
  here.taken_from = "a page";
  EXPECT_EQ(read(written(here)), here);
  EXPECT_NE(here, kZen4);
  EXPECT_EQ(here.kind(), kZen4);
  CpuId other = kZen4;
  other.instructions = {"avx2"};
  EXPECT_NE(other.kind(), kZen4);
  EXPECT_FALSE((CpuId{.cores = 2}).known());
  EXPECT_EQ(text_of(here, true),
            "AuthenticAMD, family 25, model 17, stepping 1; avx2, avx512f; L2 1024 KiB x 2; "
            "microcode 0x1; taken from a page");
}

TEST(CpuIdTest, NamesThatHideTheModelHaveIt) {
  EXPECT_EQ(processor_name("AMD EPYC", kZen4), "AMD EPYC (family 25, model 17)");
  EXPECT_EQ(processor_name("AMD EPYC 9554", kZen4), "AMD EPYC 9554");
  EXPECT_EQ(processor_name("AMD EPYC", {}), "AMD EPYC");
  EXPECT_EQ(processor_name("Neoverse", kArm), "Neoverse");
}

TEST(CpuIdTest, WhatIsNotRecordedIsNotKnown) {
  EXPECT_TRUE(written({}).empty());
  for (const nlohmann::json& old :
       {nlohmann::json::object(), nlohmann::json{{"cpu", "AMD EPYC"}, {"cpu_id", nullptr}},
        nlohmann::json{{"cpu_id", {{"family", nullptr}, {"color", "red"}}}}}) {
    EXPECT_FALSE(read(old).known()) << old;
  }
  const CpuId some = read({{"cpu_id", {{"vendor", "x"}, {"stepping", nullptr}}}});
  EXPECT_EQ(some, (CpuId{.vendor = "x"}));
  EXPECT_TRUE(to_json(some).at("family").is_null());
}

TEST(CpuIdTest, RefusesWhatIsOdd) {
  for (const nlohmann::json& odd : std::initializer_list<nlohmann::json>{
           {{"family", "25"}},
           {{"family", -1}},
           {{"model", 1.5}},
           {{"stepping", 1e30}},
           {{"part", 1 << 25}},
           {{"vendor", 7}},
           {{"instructions", "avx2"}},
           {{"instructions", std::vector<std::string>(1001, "avx2")}},
           "AuthenticAMD"}) {
    EXPECT_THROW(read({{"cpu_id", odd}}), Error) << odd;
  }
}

TEST(CpuIdTest, InWords) {
  EXPECT_EQ(text_of(kZen4), "AuthenticAMD, family 25, model 17, stepping 1");
  EXPECT_EQ(text_of(kArm), "0x41, part 3404, variant 1, revision 0");
  EXPECT_EQ(text_of({.instructions = {"avx2"}}), "not recorded");
}

}  // namespace
}  // namespace cputrain::placement
