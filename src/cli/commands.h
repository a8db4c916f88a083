#pragma once

#include "cli/config.h"
#include "job/session/services.h"
#include "selftest/selftest.h"
#include "simulation/simulator.h"

/// One function a command. Each returns the exit code; bad news comes as Error.
namespace cputrain::cli {

int run_train(const Config&, const job::Services&);
int run_eval(const Config&, const job::Services&);
int run_predict(const Config&, const job::Services&);
int run_export(const Config&, const job::Services&);
int run_sweep(const Config&, const job::Services&);
int run_report(const Config&, const job::Services&);
int run_info(const Config&, const job::Services&);
int run_selftest(const Config&, const job::Services&, const selftest::FindOwn&);
int run_simulate(const Config&, const job::Services&, const simulation::Simulator&);
int run_bench_input(const Config&, const job::Services&);
int run_bench_kernels(const Config&, const job::Services&);
int run_bench_step(const Config&, const job::Services&);
int run_bench_allreduce(const Config&, const job::Services&);
int run_data_check(const Config&, const job::Services&);
int run_data_info(const Config&, const job::Services&);
int run_data_pack(const Config&, const job::Services&);
int run_data_synth(const Config&, const job::Services&);

}  // namespace cputrain::cli
