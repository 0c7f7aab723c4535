// What formulas may ask of a mechanism of the catalogue.

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "core/base/error.h"
#include "core/base/excerpt.h"
#include "core/base/nearest_names.h"
#include "core/lesson/run_terms.h"
#include "core/run/mechanism_input.h"

namespace headscope {

using jinja::Arguments;
using jinja::Callable;
using jinja::Members;
using jinja::Value;

namespace {

/// A number at the beginning of a fact ("0.94 nats"), else the words as they are.
Value fact_value(const std::string& text) {
  std::string plain = text;
  if (plain.starts_with("−")) plain.replace(0, std::string("−").size(), "-");
  plain.erase(std::remove(plain.begin(), plain.end(), ','), plain.end());
  double value = 0;
  const auto [end, error] = std::from_chars(plain.data(), plain.data() + plain.size(), value);
  if (error != std::errc()) return text;
  return value;
}

/// With what this mechanism reads besides, as on its page in the window.
MechanismInput input_on(LessonRun& run, const Mechanism& mechanism, const std::string& on, const std::string& where) {
  const auto with_vocabulary = [&](MechanismInput in) {
    if (mechanism.reads_vocabulary) in.vocabulary = vocabulary_use(run.model(), run.request(), run.ctx());
    return in;
  };
  for (const WorkedExample& example : worked_examples())
    if (example.id == on) return with_vocabulary(example.input());
  if (parse_head_id(on)) {
    const HeadId head = run.head(Value(on), where);
    MechanismInput in = head_input(run.model(), run.request(), head, run.ctx());
    if (mechanism.reads_projections) in.projections = head_projections(run.model(), run.request(), head, run.ctx());
    return with_vocabulary(std::move(in));
  }
  std::vector<std::string> names;
  for (const WorkedExample& example : worked_examples()) names.emplace_back(example.id);
  throw Error(where, "a worked example, or a head such as \"0.2\"", "\"" + excerpt(on, 40) + "\"",
              nearest_names_hint(on, names));
}

double cell_of(const Tensor& matrix, const Arguments& a, std::size_t first) {
  const std::int64_t row = a.integer(first, "row", 0), column = a.integer(first + 1, "column", 0);
  if (row < 0 || column < 0 || row >= matrix.dim(0) || column >= matrix.dim(1))
    throw Error(a.where, fmt::format("a cell of {} × {}, counted from 0", matrix.dim(0), matrix.dim(1)),
                fmt::format("({}, {})", row, column));
  return static_cast<double>(matrix.at(row, column));
}

}  // namespace

Members mechanism_terms(LessonRun& run, const LessonMechanism& chosen, const std::string& where) {
  const auto report = run.mechanism(chosen, where);
  const auto step = [report](const Arguments& a) -> const MechanismStep& {
    const std::string id = a.at(0, "step").printed();
    std::vector<std::string> names;
    for (const MechanismStep& each : report->result.steps) {
      if (each.id == id) return each;
      names.push_back(each.id);
    }
    throw Error(a.where, "a step of " + std::string(report->choice.mechanism->id), "\"" + excerpt(id, 40) + "\"",
                nearest_names_hint(id, names));
  };
  return {{"cell", Callable{[step](const Arguments& a) -> Value { return cell_of(step(a).value, a, 1); }}},
          {"terms", Callable{[step](const Arguments& a) -> Value {
             const MechanismStep& of = step(a);
             cell_of(of.value, a, 1);
             return of.explain ? of.explain(a.integer(1, "row", 0), a.integer(2, "column", 0)) : std::string();
           }}},
          {"output", Callable{[report](const Arguments& a) -> Value { return cell_of(report->result.output, a, 0); }}},
          {"output_error", Callable{[report](const Arguments&) -> Value { return report->comparison.output_error; }}},
          {"fact", Callable{[report](const Arguments& a) -> Value {
             const std::string name = a.at(0, "name").printed();
             std::vector<std::string> names;
             for (const MechanismFact& each : report->result.facts) {
               if (each.name == name) return fact_value(each.value);
               names.push_back(each.name);
             }
             throw Error(a.where, "a fact of " + std::string(report->choice.mechanism->id),
                         "\"" + excerpt(name, 40) + "\"", nearest_names_hint(name, names));
           }}}};
}

std::shared_ptr<const MechanismReport> LessonRun::mechanism(const LessonMechanism& chosen, const std::string& where) {
  auto& known = mechanisms_[chosen];
  if (!known) {
    const MechanismChoice choice = parse_mechanism(chosen.choice, where);
    known = std::make_shared<MechanismReport>(report_on(choice, input_on(*this, *choice.mechanism, chosen.on, where)));
  }
  return known;
}

}  // namespace headscope
