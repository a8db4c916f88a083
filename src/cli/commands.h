#pragma once

#include "cli/config.h"
#include "compute/selftest/selftest.h"
#include "scaling/simulation/simulator.h"
#include "training/session/services.h"

/// One function a command. Each returns the exit code; bad news comes as Error.
namespace cputrain::cli {

int run_train(const Config&, const training::Services&);
int run_eval(const Config&, const training::Services&);
int run_predict(const Config&, const training::Services&);
int run_export(const Config&, const training::Services&);
int run_sweep(const Config&, const training::Services&);
int run_report(const Config&, const training::Services&);
int run_info(const Config&, const training::Services&);
int run_selftest(const Config&, const training::Services&, const selftest::FindOwn&);
int run_simulate(const Config&, const training::Services&, const simulation::Simulator&);
int run_bench_input(const Config&, const training::Services&);
int run_bench_kernels(const Config&, const training::Services&);
int run_bench_step(const Config&, const training::Services&);
int run_bench_allreduce(const Config&, const training::Services&);
int run_data_check(const Config&, const training::Services&);
int run_data_info(const Config&, const training::Services&);
int run_data_pack(const Config&, const training::Services&);
int run_data_synth(const Config&, const training::Services&);

}  // namespace cputrain::cli
