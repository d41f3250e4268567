// SPDX-License-Identifier: Apache-2.0
//
// How the sanitizers of a simulator test behave: the first report ends the
// process with an exit code that no outcome of a test has. The environment
// ($TSAN_OPTIONS ...) can say otherwise.
extern "C" {

// 43 is Outcome::kReported of planted_bugs_test.cc.
const char* __asan_default_options() { return "exitcode=43"; }
const char* __msan_default_options() { return "exitcode=43"; }
const char* __tsan_default_options() {
  // Fibers never end, as TSan sees it: do not wait for them.
  return "exitcode=43:halt_on_error=1:report_thread_leaks=0:atexit_sleep_ms=0";
}
const char* __ubsan_default_options() {
  return "print_stacktrace=1:exitcode=43";
}

}  // extern "C"
