// Advice names what binds: a variable of OpenMP, mpirun, srun, or somebody outside.
#include "system/placement/binder.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "tests/system/placement/made_up_machine.h"

namespace cputrain::placement {
namespace {

using Variables = std::map<std::string, std::string>;
using By = Binder::Kind;

Binder binder_in(const Variables& variables, const std::string& openmp = "") {
  return read_binder(openmp, [&](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

const Variables kMpirun{{"OMPI_COMM_WORLD_SIZE", "2"}};

Variables with(Variables more, const Variables& some) {
  more.insert(some.begin(), some.end());
  return more;
}

TEST(Binder, IsReadFromTheEnvironment) {
  constexpr const char *kPolicy = "OMPI_MCA_hwloc_base_binding_policy",
                       *kPolicyOf5 = "PRTE_MCA_hwloc_default_binding_policy";
  struct Case {
    Variables variables;
    Binder binder;
  };
  const std::vector<Case> cases{
      {{}, {}},
      {kMpirun, {By::open_mpi}},
      {with(kMpirun, {{kPolicy, "core"}}), {By::open_mpi, kPolicy}},
      {with(kMpirun, {{kPolicy, "numa:overload-allowed"}}), {By::open_mpi, kPolicy}},
      {with(kMpirun, {{kPolicy, "none"}}), {}},
      {with(kMpirun, {{kPolicyOf5, "socket"}}), {By::open_mpi, kPolicyOf5}},
      {with(kMpirun, {{kPolicyOf5, "none"}}), {}},
      {with(kMpirun, {{kPolicy, "none"}, {kPolicyOf5, "core"}}), {}},
      {{{kPolicy, "core"}}, {}},  // no mpirun has read it
      {{{"SLURM_CPU_BIND", "quiet,mask_cpu:0x1,0x2"}}, {By::srun, "SLURM_CPU_BIND"}},
      {{{"SLURM_CPU_BIND", "cores"}}, {By::srun, "SLURM_CPU_BIND"}},
      {{{"SLURM_CPU_BIND", "quiet,none"}}, {}},
      {{{"SLURM_CPU_BIND", "none"}}, {}},
      {{{"SLURM_CPU_BIND", "verbose"}}, {}},
      {{{"SLURM_CPU_BIND", ""}}, {}},
      // As mpirun starts its daemons in an allocation.
      {with(kMpirun, {{"SLURM_CPU_BIND", "quiet,mask_cpu:0x1"}}), {By::open_mpi}}};
  for (const auto& [variables, binder] : cases) {
    EXPECT_EQ(binder_in(variables), binder) << ::testing::PrintToString(variables);
    const Variables one_place = with(variables, {{"OMP_PLACES", "{0}"}});
    EXPECT_EQ(binder_in(one_place, "OMP_PLACES"), (Binder{By::openmp, "OMP_PLACES", "OMP_PLACES"}));
  }
}

/// Places that have all that the rank was given do not explain why it was given little.
TEST(Binder, IsOpenMpWhereItLeavesOutWhatTheRankWasGiven) {
  struct Case {
    std::string name, value;
    bool leaves_out;
  };
  const std::vector<Case> cases{{"OMP_PROC_BIND", "true", false},
                                {"OMP_PROC_BIND", "close", false},
                                {"OMP_PROC_BIND", "spread,close", false},
                                {"OMP_PROC_BIND", "master", true},
                                {"OMP_PROC_BIND", "PRIMARY", true},
                                {"OMP_PLACES", "cores", false},
                                {"OMP_PLACES", "sockets", false},
                                {"OMP_PLACES", "cores(2)", true},
                                {"OMP_PLACES", "{0:4}", true},
                                {"GOMP_CPU_AFFINITY", "0-3", true},
                                {"KMP_AFFINITY", "granularity=fine,compact", false},
                                {"KMP_AFFINITY", "explicit,proclist=[0,1]", true}};
  for (const auto& [name, value, leaves_out] : cases) {
    const Binder binder = binder_in(with(kMpirun, {{name, value}}), name);
    EXPECT_EQ(binder.kind, leaves_out ? By::openmp : By::open_mpi) << name << "=" << value;
    EXPECT_EQ(binder.openmp, name);
    EXPECT_EQ(binder.by_openmp().remedy(), "a start without " + name);
  }
}

struct Advice {
  Binder binder;
  std::string says, says_not;
};

/// What each binder's warnings name, and must not name, as it would change nothing.
const std::vector<Advice> kAdvice{
    {{By::openmp, "OMP_PLACES"}, "without OMP_PLACES", "mpirun"},
    {{By::openmp, "OMP_PROC_BIND,GOMP_CPU_AFFINITY"},
     "without OMP_PROC_BIND and GOMP_CPU_AFFINITY",
     "mpirun"},
    {{By::open_mpi}, "mpirun --bind-to none", "OMPI_MCA"},
    {{By::open_mpi, "OMPI_MCA_hwloc_base_binding_policy"}, "mpirun --bind-to none", "OMP_"},
    {{By::srun, "SLURM_CPU_BIND"}, "srun --cpu-bind=none", "mpirun"},
    {{}, "a start that gives more cores", "--bind-to"}};

void expect_advice(const std::vector<RankPlace>& places, const PlacementRequest& request) {
  for (const auto& [binder, says, says_not] : kAdvice) {
    std::vector<RankPlace> bound = places;
    for (RankPlace& place : bound) place.binder = binder;
    const Placement plan = plan_node(bound, request);
    ASSERT_FALSE(plan.warnings.empty()) << says;
    EXPECT_NE(plan.warnings[0].find(says), std::string::npos) << plan.warnings[0];
    if (plan.warnings[0].find("fewer ranks") == std::string::npos) {
      EXPECT_EQ(plan.warnings[0].find(says_not), std::string::npos) << plan.warnings[0];
    }
  }
}

TEST(Binder, IsNamedWhereARankHasOneCore) { expect_advice({kCloud.place(0, {0, 48})}, {}); }

TEST(Binder, IsNamedWhereRanksHaveOneCoreTogether) {
  const MadeUpMachine machine{2};
  expect_advice({machine.place(0, {0}), machine.place(1, {0})}, {});
}

TEST(Binder, IsNamedWhereThreadsHaveNoRoom) {
  const MadeUpMachine machine{8};
  expect_advice({machine.place(0, run(0, 7)), machine.place(1, {7})}, threads(3));
}

std::vector<RankPlace> by_openmp(std::vector<RankPlace> places) {
  for (RankPlace& place : places) place.binder = Binder{.openmp = "OMP_PROC_BIND"}.by_openmp();
  return places;
}

TEST(Binder, OpenMpPutsRanksWithTheSamePlacesOnTheSameCores) {
  const MadeUpMachine machine{4};
  const Placement plan = plan_node(by_openmp(machine.unbound(2)), threads(1));
  ASSERT_FALSE(plan.warnings.empty());
  EXPECT_NE(plan.warnings[0].find("ranks 0 and 1"), std::string::npos) << plan.warnings[0];
  EXPECT_NE(plan.warnings[0].find("a start without OMP_PROC_BIND"), std::string::npos);
  EXPECT_TRUE(plan_node(machine.unbound(2), threads(1)).warnings.empty());
  // Ranks that mpirun has given cores of their own keep them.
  const std::vector<RankPlace> apart{machine.place(0, {0, 1}), machine.place(1, {2, 3})};
  EXPECT_TRUE(plan_node(by_openmp(apart), {}).warnings.empty());
  EXPECT_TRUE(plan_node(by_openmp(machine.unbound(1)), {}).warnings.empty());
  // The two hardware threads of a core.
  const Placement pair = plan_node(by_openmp({kCloud.place(0, {0}), kCloud.place(1, {48})}), {});
  ASSERT_FALSE(pair.warnings.empty());
  EXPECT_NE(pair.warnings[0].find("share physical core 0"), std::string::npos) << pair.warnings[0];
  EXPECT_NE(pair.warnings[0].find("a start without OMP_PROC_BIND"), std::string::npos);
}

TEST(Binder, IdleCoresAreOpenMpsWhereItLeavesThem) {
  const MadeUpMachine machine{8};
  const auto warning = [](const std::vector<RankPlace>& places) {
    const Placement plan = plan_node(places, {});
    return plan.warnings.empty() ? "" : plan.warnings[0];
  };
  const std::string of_openmp = warning(by_openmp({machine.place(0, run(0, 4))}));
  EXPECT_NE(of_openmp.find("4 cores of 8 idle"), std::string::npos) << of_openmp;
  EXPECT_NE(of_openmp.find("a start without OMP_PROC_BIND"), std::string::npos) << of_openmp;
  EXPECT_NE(warning({machine.place(0, run(0, 4))}).find("mpirun"), std::string::npos);
}

TEST(Binder, MemoryOfAnotherNodeIsBoundByNoFlagWhereOpenMpBinds) {
  const MadeUpMachine machine{8, 1, 0, 2};
  const Placement plan = plan_node(by_openmp(machine.unbound(1)), threads(4));
  ASSERT_FALSE(plan.warnings.empty());
  EXPECT_NE(plan.warnings.back().find("a start without OMP_PROC_BIND, and --bind"),
            std::string::npos)
      << plan.warnings.back();
}

}  // namespace
}  // namespace cputrain::placement
