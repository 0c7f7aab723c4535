// headscope-cli metrics: every metric of every head as a table, CSV or JSON, on a text, a trace file, or on generated
// repeated random tokens (the standard induction score).

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "app/cli/commands.h"
#include "app/cli/input.h"
#include "app/cli/report.h"
#include "app/cli/table.h"
#include "core/base/error.h"
#include "core/base/file.h"
#include "core/metrics/repeated_tokens.h"

namespace headscope::cli {

namespace {
struct Options {
  Input input;
  std::vector<std::string> metrics;
  std::string format = "table", classes;
  bool json = false, csv = false, list = false, chance = false, repeated = false;
  int period = 50, repeats = 2;
  std::uint64_t seed = 1;

  std::string chosen_format() const { return json ? "json" : csv ? "csv" : format; }
};

ordered_json metric_json(const Metric& metric) {
  return {{"id", metric.id},
          {"title", metric.title},
          {"unit", metric.unit},
          {"low", metric.low},
          {"high", std::isfinite(metric.high) ? ordered_json(metric.high) : ordered_json(nullptr)},
          {"formula", metric.formula},
          {"source", metric.source}};
}
