// headscope-cli mechanism: any mechanism of the catalogue on the queries, keys and values of a model's head, on random
// ones, or on a worked example; numbers beside softmax attention, and a picture.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "app/cli/commands.h"
#include "app/cli/input.h"
#include "app/cli/report.h"
#include "app/cli/table.h"
#include "app/render/picture.h"
#include "core/attention/layer_complexity.h"
#include "core/attention/masks.h"
#include "core/attention/mechanism_math.h"
#include "core/attention/mechanism_report.h"
#include "core/base/error.h"
#include "core/base/json.h"
#include "core/engine/mechanism_input.h"
#include "viz/export/pango_text.h"
#include "viz/scene/matrix_flow.h"

namespace headscope::cli {

namespace {
using nlohmann::ordered_json;

struct Options {
  Input input;
  std::vector<std::string> words;
  std::string head = "0.0", example, sees = "causal", out, theme = "dark";
  int random = 0, width = 32;
  std::uint64_t seed = 1;
  bool list = false, json = false;
};

ordered_json rows_json(const Tensor& x) {
  ordered_json rows = ordered_json::array();
  for (Index i = 0; i < x.dim(0); ++i) {
    ordered_json row = ordered_json::array();
    for (Index j = 0; j < x.dim(1); ++j) row.push_back(number_json(static_cast<double>(x.at(i, j))));
    rows.push_back(std::move(row));
  }
  return rows;
}

ordered_json values_json(const Mechanism& m, const MechanismValues& values) {
  ordered_json out = ordered_json::object();
  for (const MechanismParameter& p : m.parameters) {
    const double value = values.number(p.name);
    if (p.kind == MechanismParameter::Kind::number || p.kind == MechanismParameter::Kind::whole)
      out[std::string(p.name)] = value;
    else
      out[std::string(p.name)] = value_text(p, value);
  }
  return out;
}

ordered_json words_json(const Mechanism& m) {
  ordered_json out = ordered_json::object();
  for (const MechanismParameter& p : m.parameters) out[std::string(p.name)] = p.words;
  return out;
}

/// One entry of the catalogue: what each parameter does, and what is not the paper's.
void describe(Shell& shell, const Mechanism& m) {
  shell.print_line(fmt::format("{} ({})", m.title, m.source));
  shell.print_line(std::string(m.formula));
  shell.print_line(std::string(m.meaning));
  shell.print_line();
  Table table({{"parameter", Table::Align::left},
               {"usual", Table::Align::left},
               {"values", Table::Align::left},
               {"", Table::Align::left}});
  for (const MechanismParameter& p : m.parameters) {
    const std::string values = p.kind == MechanismParameter::Kind::choice
                                   ? fmt::format("{}", fmt::join(p.choices, ", "))
                               : p.kind == MechanismParameter::Kind::toggle
                                   ? "on, off"
                                   : fmt::format("{} … {}", value_text(p, p.low), value_text(p, p.high));
    table.add({std::string(p.name), value_text(p, p.usual), values, std::string(p.words)});
  }
  if (!m.parameters.empty()) shell.print(table.text());
  if (!m.ours.empty()) shell.print_line(fmt::format("\nNot the paper's: {}", m.ours));
}

void list(Shell& shell, bool json, const std::string& id) {
  if (!json && !id.empty()) return describe(shell, *parse_mechanism(id).mechanism);
  if (json) {
    ordered_json out = ordered_json::array();
    for (const Mechanism& m : mechanisms())
      out.push_back({{"id", m.id},
                     {"title", m.title},
                     {"group", m.group},
                     {"source", m.source},
                     {"formula", m.formula},
                     {"meaning", m.meaning},
                     {"ours", m.ours},
                     {"parameters", values_json(m, m.usual())},
                     {"parameter_words", words_json(m)}});
    return shell.print_line(json_text(out));
  }
  Table table({{"mechanism", Table::Align::left},
               {"title", Table::Align::left},
               {"parameters", Table::Align::left},
               {"source", Table::Align::left}});
  for (const Mechanism& m : mechanisms()) {
    std::string parameters = text_of({&m, m.usual()});
    parameters.erase(0, std::min(m.id.size() + 1, parameters.size()));
    table.add({std::string(m.id), std::string(m.title), parameters, std::string(m.source)});
  }
  shell.print(table.text());
  shell.print_line("\nWith an id, --list says what its parameters do and what is not its paper's.");
}

MechanismInput input_for(Shell& shell, const Options& options, bool vocabulary, std::string& from) {
  const int ways = (options.random > 0) + !options.example.empty();
  if (ways > 1) throw UsageError("--random and --example are different inputs; choose one");
  if (!options.example.empty()) {
    std::vector<std::string_view> ids;
    for (const WorkedExample& example : worked_examples()) {
      if (example.id == options.example) {
        from = fmt::format("worked example: {}", example.title);
        return example.input();
      }
      ids.push_back(example.id);
    }
    throw UsageError(fmt::format("--example: expected one of {}, found \"{}\"", fmt::join(ids, ", "), options.example));
  }
  if (options.random > 0) {
    from = fmt::format("{} random tokens of width {} (seed {}), {}", options.random, options.width, options.seed,
                       options.sees);
    const auto drawn = [&](std::uint64_t which) {
      return mechanism::gaussian(options.random, options.width, 3 * options.seed + which);
    };
    return {drawn(0), drawn(1), drawn(2), static_cast<float>(1 / std::sqrt(static_cast<double>(options.width))),
            parse_mask(options.sees, "--sees")};
  }
  const HeadId head = parse_head(options.head);
  const Opened opened = open_input(shell, options.input, {.maps = MapStorage::none, .all_logits = false});
  if (!opened.loaded.model) throw UsageError("a trace holds no queries, keys and values; give --model and a text");
  RunRequest request;
  request.ids = opened.trace->ids();
  request.edits = options.input.edits();
  MechanismInput in;
  shell.with_progress("running", [&](const Ctx& ctx) {
    in = head_input(opened.loaded, request, head, ctx);
    if (vocabulary) in.vocabulary = vocabulary_use(opened.loaded, request, ctx);
  });
  from = fmt::format("layer {} head {} of {}, {} tokens, {}", head.layer, head.head, opened.trace->model.name, in.n(),
                     in.rule->describe());
  return in;
}

std::string shown(double value) {
  return std::isnan(value) ? "–" : fmt::format("{:.4g}", value);
}

void print_text(Shell& shell, const MechanismReport& r, const std::string& from) {
  const Mechanism& m = *r.choice.mechanism;
  shell.print_line(fmt::format("{} ({})", m.title, m.source));
  shell.print_line(text_of(r.choice));
  shell.print_line(from);
  shell.print_line();
  const MechanismComparison& c = r.comparison;
  Table table({{"", Table::Align::left}, {"softmax"}, {"this"}});
  if (r.result.weights.defined()) {
    table.add({"output error ‖ΔO‖/‖O‖", "", shown(c.output_error)});
    table.add({"entropy, nats", shown(c.entropy_reference), shown(c.entropy)});
    table.add({"top-1 agreement", "", shown(c.top1)});
    const auto rank = [](int found) { return found < 0 ? std::string("–") : std::to_string(found); };
    table.add({"rank for 90 % energy", rank(c.rank90_reference), rank(c.rank90)});
    table.add({"rank", rank(c.rank_reference), rank(c.rank)});
    table.add({"row sums", "1", fmt::format("{} … {}", shown(c.least_sum), shown(c.largest_sum))});
    const MechanismShape shape{r.input.m(), r.input.d(), r.input.d_v()};
    const Mechanism& softmax = *find_mechanism("softmax");
    const MechanismCost plain = softmax.cost(shape, softmax.usual()), own = m.cost(shape, r.choice.values);
    table.add({"multiply-adds", grouped(std::llround(plain.multiply_adds)), grouped(std::llround(own.multiply_adds))});
    table.add({"state, bytes", "0", grouped(std::llround(own.state_bytes))});
    table.add({"cache, bytes", grouped(std::llround(plain.cache_bytes)), grouped(std::llround(own.cache_bytes))});
    if (r.recurrent_gap) table.add({"recurrent − parallel, largest", "", fmt::format("{:.2g}", *r.recurrent_gap)});
  }
  for (const MechanismFact& fact : r.result.facts) table.add({fact.name, "", fact.value});
  if (const auto layers = layers_beside(m.id, r.input.m(), r.input.d_v()); !layers.empty()) {
    const LayerComplexity plain = self_attention_layer(r.input.m(), r.input.d_v());
    table.add({"operations in sequence", shown(plain.sequential), shown(layers.front().sequential)});
    table.add({"longest path", shown(plain.longest_path), shown(layers.front().longest_path)});
  }
  shell.print(table.text());
  if (r.input.n() <= 8 && r.result.weights.defined() && r.input.m() <= 8) {
    for (const auto& [name, matrix] : {std::pair{"weights", r.result.weights}, {"output", r.result.output}}) {
      shell.print_line();
      shell.print_line(name);
      for (Index i = 0; i < matrix.dim(0); ++i) {
        std::string line;
        for (Index j = 0; j < std::min<Index>(matrix.dim(1), 8); ++j) line += fmt::format("{:>10.4f}", matrix.at(i, j));
        shell.print_line(line + (matrix.dim(1) > 8 ? " …" : ""));
      }
    }
  }
  shell.print_line();
  shell.print_line(r.look_for);
  if (!m.ours.empty()) shell.print_line(fmt::format("Not the paper's: {}", m.ours));
}

void print_json(Shell& shell, const MechanismReport& r, const std::string& from) {
  const Mechanism& m = *r.choice.mechanism;
  const MechanismComparison& c = r.comparison;
  ordered_json out{{"mechanism", m.id},   {"values", values_json(m, r.choice.values)},
                   {"input", from},       {"n", r.input.n()},
                   {"m", r.input.m()},    {"d", r.input.d()},
                   {"d_v", r.input.d_v()}};
  if (r.result.weights.defined()) {
    out["output_error"] = number_json(c.output_error);
    out["entropy"] = number_json(c.entropy);
    out["entropy_softmax"] = number_json(c.entropy_reference);
    out["top1_agreement"] = number_json(c.top1);
    const auto rank = [](int found) { return found < 0 ? ordered_json() : ordered_json(found); };
    out["rank"] = rank(c.rank);
    out["rank90"] = rank(c.rank90);
    out["rank90_softmax"] = rank(c.rank90_reference);
    out["weights"] = rows_json(r.result.weights);
    out["output"] = rows_json(r.result.output);
    if (r.recurrence) out["recurrent_gap"] = r.recurrent_gap ? ordered_json(*r.recurrent_gap) : ordered_json();
  }
  ordered_json facts = ordered_json::object();
  for (const MechanismFact& fact : r.result.facts) facts[fact.name] = fact.value;
  out["facts"] = facts;
  out["look_for"] = r.look_for;
  out["ours"] = m.ours;
  shell.print_line(json_text(out));
}

void draw(Shell& shell, const MechanismReport& r, const Options& options) {
  const auto kind = kind_of_file(options.out);
  if (!kind || *kind == FileKind::csv)
    throw UsageError(fmt::format("-o: expected a file ending in .png or .svg, found \"{}\"", options.out));
  const Theme& look = theme(options.theme);
  const PangoText measure;
  MatrixFlow flow;
  flow.width = 1200;
  for (const MechanismStep& step : r.result.steps) {
    FlowMatrix m{step.id, step.title, step.formula, step.value, step.masked, {}, {}, "value", false};
    if (step.range == MechanismStep::Range::probability) m.low = 0, m.high = 1, m.unit = "share";
    if (step.range == MechanismStep::Range::positive) m.low = 0;
    flow.matrices.push_back(std::move(m));
  }
  Scene scene = matrix_flow_scene(flow, {look, measure});
  scene.title = r.choice.mechanism->title;
  scene.description = text_of(r.choice);
  shell.print_line(write_picture(scene, options.out, {}));
}
}  // namespace

void add_mechanism(Command& app, Shell& shell) {
  auto options = std::make_shared<Options>();
  Command command = app.add_subcommand("mechanism", "Any attention mechanism on a head's queries, keys and values");
  command.add_option("mechanism", options->words, "Its id, then NAME=VALUE for its parameters (--list tells them)")
      .type_name("ID [NAME=VALUE …]");
  options->input.add_to(command);
  command.add_flag("--list", options->list, "List the mechanisms with their parameters; with an ID, what each does");
  command.add_option("--head", options->head, "Whose queries, keys and values, as LAYER.HEAD").show_default();
  command.add_option("--random", options->random, "So many random tokens instead").check(range(1, 4096)).type_name("N");
  command.add_option("--width", options->width, "With --random: numbers in a query")
      .check(range(1, 512))
      .show_default();
  command.add_option("--seed", options->seed, "With --random: of the numbers").show_default();
  command.add_option("--sees", options->sees, "With --random: the mask").type_name("SPEC").show_default();
  command.add_option("--example", options->example, "A worked example of the literature instead").type_name("ID");
  command.add_flag("--json", options->json, "All numbers, for scripts");
  command.add_option("-o,--out", options->out, "Picture of all steps").type_name("FILE.png|.svg");
  command.add_option("--theme", options->theme, "dark, light, projector or print")
      .check(one_of({"dark", "light", "projector", "print"}))
      .show_default();
  command.does([options, &shell] {
    if (options->list) return list(shell, options->json, options->words.empty() ? "" : options->words.front());
    if (std::erase(options->words, "-") > 0) options->input.dash = "-";
    if (options->words.empty()) throw UsageError("which mechanism? --list names them");
    const MechanismChoice choice = parse_mechanism(fmt::format("{}", fmt::join(options->words, " ")), "mechanism");
    std::string from;
    const MechanismInput in = input_for(shell, *options, choice.mechanism->reads_vocabulary, from);
    const MechanismReport report = report_on(choice, in);
    if (!options->out.empty()) draw(shell, report, *options);
    if (options->json) return print_json(shell, report, from);
    if (options->out.empty()) print_text(shell, report, from);
  });
}

}  // namespace headscope::cli
