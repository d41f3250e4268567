// SPDX-License-Identifier: Apache-2.0
#include "property_tests/mutation/suites.h"

#include "core/errors.h"

namespace softmoe::mutation {
namespace {

// The tests of one file, alone in a process that ends at its first failure.
// They are in the test program of their room.
Suite Tests(const std::string& tier, const std::string& file,
            const std::string& filter = "") {
  const size_t slash = file.rfind('/');
  Suite suite = {file,
                 tier,
                 file.substr(0, slash) + "/test",
                 {"--file=" + file.substr(slash + 1), "--gtest_fail_fast"}};
  if (!filter.empty()) suite.arguments.push_back("--gtest_filter=" + filter);
  return suite;
}

// A test file that is a program of its own.
Suite Program(const std::string& tier, const std::string& program,
              const std::string& filter = "*") {
  return {program,
          tier,
          program,
          {"--gtest_fail_fast", "--gtest_filter=" + filter}};
}

// Cases of one operation in the verification engine, on the CPU's kernels and
// on the CUDA source in the simulator.
Suite Verify(const std::string& op, const std::string& cases,
             const std::string& fill = "") {
  Suite suite = {"verify " + op,
                 "difference",
                 "property_tests/verify/verify",
                 {"run", "op=" + op, "impl=cpu:v3", "impl=shim", "--no-shrink",
                  "--cases=" + cases}};
  if (!fill.empty()) {
    suite.name += " fill=" + fill;
    suite.arguments.push_back("fill=" + fill);
  }
  return suite;
}

// As Verify, on the CUDA source alone, with bf16 activations.
Suite VerifyBf16(const std::string& op, const std::string& cases) {
  return {
      "verify " + op + " bf16",
      "difference",
      "property_tests/verify/verify",
      {"run", "op=" + op, "impl=shim:bf16", "--no-shrink", "--cases=" + cases}};
}

// A test of CUDA source in the simulator, where bf16 holds rounded floats.
Suite Simulated(const std::string& program) {
  return {program, "difference", program};
}

// A test of CUDA source in the simulator; sanitizers' reports have their own
// exit code (kernels/simt/shim/sanitizer_options.cc).
Suite Sanitizer(const std::string& program) {
  return {program, "sanitizer", program, {}, 43};
}

}  // namespace

const std::vector<Suite>& AllSuites() {
  static const std::vector<Suite> suites = {
      Tests("unit", "core/config/config_test"),
      Tests("unit", "core/config/config_toml_test"),
      Tests("unit", "core/hdf5/hdf5_file_test"),
      Tests("unit", "core/files/json_lines_test"),
      Tests("unit", "experiments/grids/cost_model_test"),
      Tests("unit", "experiments/plan/grid_estimate_test"),
      Tests("unit", "experiments/report/grid_table_test"),
      Tests("unit", "experiments/plan/initial_activity_test"),
      Tests("unit", "experiments/report/invariants_test"),
      Tests("unit", "experiments/plan/plan_numbers_test"),
      Tests("unit", "experiments/plan/plan_warnings_test"),
      Tests("unit", "experiments/plan/slurm_script_test"),
      Tests("unit", "experiments/report/plot_test"),
      Tests("unit", "experiments/report/report_csv_test"),
      Tests("unit", "experiments/report/report_curves_test"),
      Tests("unit", "experiments/report/mini_claims_test"),
      Tests("unit", "experiments/report/results_document_test"),
      Tests("unit", "golden/document/document_refuse_test"),
      Tests("unit", "golden/gpu_runs/gpu_record_test"),
      Tests("unit", "golden/gpu_runs/gpu_run_file_test"),
      Tests("unit", "golden/gpu_runs/gpu_table_test"),
      Tests("unit", "golden/paper/paper_source_refuse_test"),
      Tests("unit", "golden/paper/still_scores_test"),
      Tests("unit", "kernels/adamw_test"),
      Tests("unit", "kernels/attention_test"),
      Tests("unit", "kernels/balance_loss_test"),
      Tests("unit", "kernels/cross_entropy_test"),
      Tests("unit", "kernels/embedding_test"),
      Tests("unit", "kernels/expert_mlp_test"),
      Tests("unit", "kernels/gemm_test"),
      Tests("unit", "kernels/noise_test"),
      Tests("unit", "kernels/rmsnorm_test"),
      Tests("unit", "kernels/route_plan_test"),
      Tests("unit", "kernels/router_backward_test"),
      Tests("unit", "kernels/router_test"),
      Tests("unit", "kernels/routing_counts_test"),
      Tests("unit", "kernels/vector_math_test"),
      Tests("unit", "optimized/allocation_test"),
      Tests("unit", "optimized/backend_model_test"),
      Tests("unit", "optimized/device_test"),
      Tests("unit", "optimized/gradient_exchange_test"),
      Tests("unit", "optimized/gradient_tree_test"),
      Tests("unit", "optimized/memory_plan_test"),
      Tests("unit", "optimized/optimizer_test"),
      Tests("unit", "optimized/parameter_shards_test"),
      Tests("unit", "optimized/rank_groups_test"),
      Tests("unit", "optimized/ranked_updater_test"),
      Tests("unit", "optimized/step_traffic_test"),
      Tests("unit", "optimized/communicator/communicator_test"),
      Tests("unit", "optimized/communicator/in_process_test"),
      Tests("unit", "optimized/communicator/shards_test"),
      Tests("unit", "trainer/identity/run_identity_test"),
      Tests("unit", "trainer/results/run_result_test"),
      Tests("unit", "core/files/sealed_json_test"),
      Tests("unit", "trainer/tokens/token_file_test"),
      Tests("reference", "reference/adamw_test"),
      Tests("reference", "reference/attention_test"),
      Tests("reference", "reference/budget_test"),
      Tests("reference", "reference/calibration_test"),
      Tests("reference", "reference/decoder_block_test"),
      Tests("reference", "reference/embedding_test"),
      Tests("reference", "reference/expert_test"),
      Tests("reference", "reference/laplace_test"),
      Tests("reference", "reference/lapsum_test"),
      Tests("reference", "reference/lapsum_accuracy_test"),
      Tests("reference", "reference/lm_head_test"),
      Tests("reference", "reference/load_balance_test"),
      Tests("reference", "reference/metrics_test"),
      Tests("reference", "reference/moe_layer_test"),
      Tests("reference", "reference/noise_test"),
      Tests("reference", "reference/rmsnorm_test"),
      Tests("reference", "reference/rope_test"),
      Tests("reference", "reference/router_test"),
      Tests("reference", "reference/schedules_test"),
      Tests("reference", "reference/softmax_test"),
      Tests("double", "kernels/double_bodies_test"),
      Verify("lapsum", "100"),
      Verify("lapsum", "400", "plateau"),
      Verify("router", "200"),
      Verify("rmsnorm", "60"),
      Verify("experts", "60"),
      Verify("gemm", "60"),
      Verify("attention", "40"),
      Verify("embedding", "60"),
      Verify("lm_head", "40"),
      Verify("rope", "40"),
      Verify("jitter", "40"),
      Verify("logit_noise", "40"),
      Verify("sum_of_squares", "40"),
      VerifyBf16("rmsnorm", "60"),
      VerifyBf16("experts", "60"),
      VerifyBf16("gemm", "60"),
      VerifyBf16("attention", "40"),
      VerifyBf16("lm_head", "40"),
      Tests("difference", "property_tests/adamw_property_test"),
      Tests("difference", "property_tests/device_totals_test"),
      Tests("difference", "property_tests/flat_kernels_property_test"),
      Tests("difference", "property_tests/layer_kernels_property_test"),
      Tests("difference", "property_tests/routing_kernels_property_test"),
      Simulated("kernels/cuda/flat_kernels_shim_test_plain"),
      Simulated("kernels/cuda/layer_kernels_shim_test_plain"),
      Simulated("kernels/cuda/noise_kernels_shim_test_plain"),
      Simulated("kernels/cuda/rank_link_shim_test_plain"),
      Sanitizer("kernels/cuda/routing_kernels_shim_test_tsan"),
      Sanitizer("kernels/cuda/row_kernels_shim_test_msan"),
      Sanitizer("kernels/cuda/row_kernels_shim_test_tsan"),
      Sanitizer("kernels/simt/group_shim_test_tsan"),
      Tests("model", "property_tests/model_property_test",
            "*ModelAgainstReference*"),
      Tests("model", "property_tests/simulated_model_test"),
      Program("model", "optimized/simulated_exchange_test"),
      Program("model", "optimized/simulated_ranks_test",
              "*ToTheBits*:*ReadInBf16*:*TakeTheMemory*:*WhileTheyCompute*"),
      Tests("training", "trainer/run/calibration_test"),
      Tests("training", "trainer/tokens/dataset_test"),
      Tests("training", "trainer/evaluation/evaluation_test"),
      Tests("training", "trainer/run/rank_devices_test"),
      Tests("training", "trainer/run/rank_midpoint_test"),
      Tests("training", "trainer/run/resume_test",
            "*GoesOnFromAnOlderCheckpoint*"),
      Tests("training", "trainer/evaluation/routing_totals_test"),
      Tests("training", "trainer/run/schedules_test"),
      Program("training", "trainer/run/simulated_device_test",
              "*Bf16*:*IsInterrupted*"),
      Tests("training", "trainer/run/train_step_test"),
      Tests("training", "trainer/evaluation/validation_test"),
      Tests("harness", "core/comparator_test"),
      Tests("harness", "golden/document/decimal_test"),
      Tests("harness", "golden/verdict/equivalence_test"),
      Tests("harness", "golden/verdict/miniature_claim_test"),
      Tests("harness", "golden/verdict/miniature_judge_test"),
      Tests("harness", "golden/verdict/regime_test"),
      Tests("harness", "golden/verdict/verdict_test"),
      Tests("harness", "property_tests/gpu/bit_difference_test"),
      Tests("harness", "property_tests/gpu/run_stages_test"),
      Tests("harness", "property_tests/gpu/stage_list_test"),
      Tests("harness", "property_tests/verify/engine/case_test"),
      Tests("harness", "property_tests/verify/engine/check_test"),
      Tests("harness", "property_tests/verify/engine_test"),
  };
  return suites;
}

const std::vector<std::string>& Tiers() {
  static const std::vector<std::string> tiers = {
      "unit",      "reference", "double",   "difference",
      "sanitizer", "model",     "training", "harness"};
  return tiers;
}

const Suite& FindSuite(const std::vector<Suite>& suites,
                       const std::string& name) {
  for (const Suite& suite : suites) {
    if (suite.name == name) return suite;
  }
  throw InternalError("faults/*.toml name the suite '" + name +
                      "', which suites.cc does not have");
}

}  // namespace softmoe::mutation
