// headscope-cli mechanism: any mechanism of the catalogue on the queries, keys and values of a model's head, on random
// ones, or on a worked example; numbers beside softmax attention, and a picture.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "app/cli/commands.h"
#include "app/cli/input.h"
#include "app/cli/output.h"
#include "app/cli/table_text.h"
#include "app/render/mechanism_steps_picture.h"
#include "core/attention/layer_complexity.h"
#include "core/attention/masks.h"
#include "core/attention/mechanism_math.h"
#include "core/attention/mechanism_report.h"
#include "core/attention/other_tokens.h"
#include "core/base/error.h"
#include "core/run/mechanism_input.h"
#include "viz/scene/framed.h"
#include "viz/scene/map_cells.h"

namespace headscope::cli {

namespace {
struct MechanismOptions {
  Input input;
  std::vector<std::string> words;
  PictureOutput picture;
  std::string head = "0.0", example, sees = "causal", other;
  std::optional<std::string> residues;
  int random = 0, width = 32;
  std::uint64_t seed = 1;
  bool list = false, json = false;
};

Cell rows_json(const Tensor& x) {
  Cell rows = Cell::array();
  for (Index i = 0; i < x.dim(0); ++i) {
    Cell row = Cell::array();
    for (Index j = 0; j < x.dim(1); ++j) row.push_back(x.at(i, j));
    rows.push_back(std::move(row));
  }
  return rows;
}

Cell values_json(const Mechanism& m, const MechanismValues& values) {
  Cell out = Cell::object();
  for (const MechanismParameter& p : m.parameters) {
    const double value = values.number(p.name);
    if (p.kind == MechanismParameter::Kind::number || p.kind == MechanismParameter::Kind::whole)
      out[std::string(p.name)] = value;
    else
      out[std::string(p.name)] = value_text(p, value);
  }
  return out;
}

Cell curves_json(const std::vector<MechanismCurve>& curves) {
  Cell out = Cell::array();
  for (const MechanismCurve& curve : curves) {
    Cell lines = Cell::array();
    for (const MechanismCurve::Line& line : curve.lines) {
      Cell each = {{"label", line.label}, {"x", line.x}, {"y", line.y}};
      if (!line.least.empty()) each["least"] = line.least, each["most"] = line.most;
      lines.push_back(std::move(each));
    }
    out.push_back({{"title", curve.title}, {"x", curve.x_title}, {"y", curve.y_title}, {"lines", std::move(lines)}});
  }
  return out;
}

Cell words_json(const Mechanism& m) {
  Cell out = Cell::object();
  for (const MechanismParameter& p : m.parameters) out[std::string(p.name)] = p.words;
  return out;
}

/// One entry of the catalogue: what each parameter does, and what is not the paper's.
Report describe(const Mechanism& m) {
  Report out;
  out.line(fmt::format("{} ({})", m.title, m.source));
  out.line(std::string(m.formula));
  out.line(std::string(m.meaning));
  out.line();
  auto& rows = out.table("", {"parameter", "usual", "values", Column("", "")});
  for (const MechanismParameter& p : m.parameters) {
    const std::string values = p.kind == MechanismParameter::Kind::choice
                                   ? fmt::format("{}", fmt::join(p.choices, ", "))
                               : p.kind == MechanismParameter::Kind::toggle
                                   ? "on, off"
                                   : fmt::format("{} … {}", value_text(p, p.low), value_text(p, p.high));
    rows.add({p.name, value_text(p, p.usual), values, p.words});
  }
  if (!m.ours.empty()) out.line(fmt::format("Not the paper's: {}", m.ours));
  return out;
}

Report catalogue() {
  Report out;
  auto& rows = out.table("", {"mechanism", "title", "parameters", "source"}, Form::text);
  Cell all = Cell::array();
  for (const Mechanism& m : mechanisms()) {
    std::string parameters = text_of({&m, m.usual()});
    parameters.erase(0, std::min(m.id.size() + 1, parameters.size()));
    rows.add({m.id, m.title, parameters, m.source});
    all.push_back({{"id", m.id},
                   {"title", m.title},
                   {"group", m.group},
                   {"source", m.source},
                   {"formula", m.formula},
                   {"meaning", m.meaning},
                   {"ours", m.ours},
                   {"parameters", values_json(m, m.usual())},
                   {"parameter_words", words_json(m)}});
  }
  out.data("", std::move(all));
  out.line("With an id, --list says what its parameters do and what is not its paper's.");
  return out;
}

/// Where an input came from, and what its positions are called.
struct Given {
  std::string from, note;
  AxisNames names;
};

MechanismInput input_for(Console& console, const MechanismOptions& options, const Mechanism& mechanism, Given& given) {
  std::string& from = given.from;
  const int ways = (options.random > 0) + !options.example.empty() + options.residues.has_value();
  if (ways > 1) throw UsageError("--random, --example and --residues are different inputs; choose one");
  if (options.residues) {
    OtherTokens tokens = understood([&] { return residue_tokens(*options.residues); });
    from =
        fmt::format("{} residue{}: one-hot, BLOSUM62, hydropathy", tokens.input.n(), tokens.input.n() == 1 ? "" : "s");
    given.names = {tokens.labels, tokens.labels};
    return tokens.input;
  }
  if (!options.example.empty()) {
    std::vector<std::string_view> ids;
    for (const WorkedExample& example : worked_examples()) {
      if (example.id == options.example) {
        from = fmt::format("worked example: {}", example.title);
        given.names = {example.queries, example.keys};
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
            understood([&] { return parse_mask(options.sees, "--sees"); })};
  }
  const HeadId head = parse_head(options.head);
  const Opened opened = open_input(console, options.input, {.maps = MapStorage::none, .all_logits = false});
  if (!opened.loaded.model) throw UsageError("a trace holds no queries, keys and values; give --model and a text");
  RunRequest request;
  request.ids = opened.trace->ids();
  if (opened.trace->encoder) {
    request.sound = options.input.sound;
    if (!opened.trace->encoder->sound) request.source_ids = opened.trace->encoder->ids();
    request.ids_are_whole = true;  // its first token is among them
  }
  request.edits = options.input.edits();
  given.note = model_note_of(options.input, opened);
  const bool translates = opened.loaded.model->encoder() != nullptr;
  if (!options.other.empty() && (!mechanism.crosses || translates))
    throw UsageError("--other is for a mechanism that asks another text (cross), of a model that reads one text");
  const Stack stack = mechanism.crosses && translates ? Stack::cross : Stack::only;
  MechanismInput in;
  std::shared_ptr<const Trace> trace, other;
  console.with_progress("running", [&](const Ctx& ctx) {
    in = head_input(opened.loaded, request, head, ctx, &trace, stack);
    if (!options.other.empty()) {
      const RunRequest asked = asking_another_text(request, options.other);
      in = crossed(in, head_input(opened.loaded, asked, head, ctx, &other));
    }
    if (mechanism.reads_projections) in.projections = head_projections(opened.loaded, request, head, ctx, stack);
    if (mechanism.reads_vocabulary) in.vocabulary = vocabulary_use(opened.loaded, request, ctx);
  });
  const Trace& keys = other ? *other : *trace;
  for (Index i = 0; i < in.n(); ++i) given.names.queries.push_back(query_label(*trace, i));
  for (Index j = 0; j < in.m(); ++j) given.names.keys.push_back(token_label(keys, j));
  from = fmt::format("layer {} head {} of {}, {} tokens, {}", head.layer, head.head, opened.trace->model.name, in.n(),
                     other ? fmt::format("asking another text of {}", in.m()) : in.rule->describe());
  return in;
}

/// The numbers beside softmax attention, as people see them.
void add_comparison(Report& out, const MechanismReport& r) {
  const Mechanism& m = *r.choice.mechanism;
  const MechanismComparison& c = r.comparison;
  auto& rows = out.table("", {Column("", ""), for_people("softmax"), for_people("this")}, Form::text);
  if (r.result.weights.defined()) {
    rows.add({"output error ‖ΔO‖/‖O‖", "", c.output_error});
    rows.add({"entropy, nats", c.entropy_reference, c.entropy});
    rows.add({"top-1 agreement", "", c.top1});
    const auto rank = [](int found) { return found < 0 ? Cell("–") : Cell(found); };
    rows.add({"rank for 90 % energy", rank(c.rank90_reference), rank(c.rank90)});
    rows.add({"rank", rank(c.rank_reference), rank(c.rank)});
    rows.add({"row sums", "1", fmt::format("{:.4g} … {:.4g}", c.least_sum, c.largest_sum)});
    const MechanismShape shape{r.input.m(), r.input.d(), r.input.d_v(), r.input.n()};
    const Mechanism& softmax = *find_mechanism("softmax");
    const MechanismCost plain = softmax.cost(shape, softmax.usual()), own = m.cost(shape, r.choice.values);
    rows.add({"multiply-adds", grouped(std::llround(plain.multiply_adds)), grouped(std::llround(own.multiply_adds))});
    rows.add({"state, bytes", "0", grouped(std::llround(own.state_bytes))});
    rows.add({"cache, bytes", grouped(std::llround(plain.cache_bytes)), grouped(std::llround(own.cache_bytes))});
    if (r.recurrent_gap) rows.add({"recurrent − parallel, largest", "", fmt::format("{:.2g}", *r.recurrent_gap)});
  }
  for (const MechanismFact& fact : r.result.facts) rows.add({fact.name, "", fact.value});
  if (const auto layers = layers_beside(m.id, r.input.m(), r.input.d_v()); !layers.empty()) {
    const LayerComplexity plain = self_attention_layer(r.input.m(), r.input.d_v());
    rows.add({"operations in sequence", plain.sequential, layers.front().sequential});
    rows.add({"longest path", plain.longest_path, layers.front().longest_path});
  }
}

/// Small matrices are shown whole; of wide ones the first columns.
void add_matrix(Report& out, const char* name, const Tensor& matrix) {
  out.line();
  out.line(name);
  for (Index i = 0; i < matrix.dim(0); ++i) {
    std::string line;
    for (Index j = 0; j < std::min<Index>(matrix.dim(1), 8); ++j) line += fmt::format("{:>10.4f}", matrix.at(i, j));
    out.line(line + (matrix.dim(1) > 8 ? " …" : ""));
  }
}

Scene picture_of(const MechanismReport& r, const AxisNames& names, const std::string& from, const Style& style) {
  Scene scene = mechanism_scene(r.result, *r.choice.mechanism, names, 1200, style);
  scene.description = text_of(r.choice);
  return framed(scene, {std::string(r.choice.mechanism->title), {}, from, {}}, style);
}

/// `matrices`: whole, for scripts; they may be large.
Report mechanism_report(const MechanismReport& r, const Given& given, bool matrices) {
  const std::string& from = given.from;
  const Mechanism& m = *r.choice.mechanism;
  const MechanismComparison& c = r.comparison;
  const bool weights = r.result.weights.defined();
  Report out;
  out.line(fmt::format("{} ({})", m.title, m.source));
  out.line(text_of(r.choice));
  out.line(from);
  out.line();
  add_comparison(out, r);
  if (r.input.n() <= 8 && weights && r.input.m() <= 8) {
    add_matrix(out, "weights", r.result.weights);
    add_matrix(out, "output", r.result.output);
  }
  out.line();
  out.line(r.look_for);
  if (!m.ours.empty()) out.line(fmt::format("Not the paper's: {}", m.ours));

  out.data("mechanism", m.id);
  out.data("values", values_json(m, r.choice.values));
  out.data("input", from);
  out.data("n", r.input.n());
  out.data("m", r.input.m());
  out.data("d", r.input.d());
  out.data("d_v", r.input.d_v());
  if (weights) {
    const auto rank = [](int found) { return found < 0 ? Cell() : Cell(found); };
    out.data("output_error", c.output_error);
    out.data("entropy", c.entropy);
    out.data("entropy_softmax", c.entropy_reference);
    out.data("top1_agreement", c.top1);
    out.data("rank", rank(c.rank));
    out.data("rank90", rank(c.rank90));
    out.data("rank90_softmax", rank(c.rank90_reference));
    if (matrices) out.data("weights", rows_json(r.result.weights));
    if (matrices) out.data("output", rows_json(r.result.output));
    if (r.recurrence) out.data("recurrent_gap", r.recurrent_gap ? Cell(*r.recurrent_gap) : Cell());
  }
  Cell facts = Cell::object();
  for (const MechanismFact& fact : r.result.facts) facts[fact.name] = fact.value;
  out.data("facts", std::move(facts));
  out.data("curves", curves_json(r.result.curves));
  out.data("look_for", r.look_for);
  out.data("ours", m.ours);
  out.picture = [r, names = given.names, from](const Style& style) { return picture_of(r, names, from, style); };
  return out;
}
}  // namespace

void add_mechanism(Command& app, Console& console) {
  auto options = std::make_shared<MechanismOptions>();
  Command command = app.add_subcommand("mechanism", "Any attention mechanism on a head's queries, keys and values");
  command.add_option("mechanism", options->words, "Its id, then NAME=VALUE for its parameters (--list tells them)")
      .type_name("ID [NAME=VALUE …]");
  options->input.add_to(command, {.part = false});
  command.add_flag("--list", options->list, "List the mechanisms with their parameters; with an ID, what each does");
  command.add_option("--head", options->head, "Whose queries, keys and values, as LAYER.HEAD").show_default();
  command.add_option("--other", options->other, "With cross: the text whose keys and values are asked")
      .type_name("TEXT");
  command.add_option("--random", options->random, "So many random tokens instead").check(range(1, 4096)).type_name("N");
  command.add_option("--width", options->width, "With --random: numbers in a query")
      .check(range(1, 512))
      .show_default();
  command.add_option("--seed", options->seed, "With --random: of the numbers").show_default();
  command.add_option("--sees", options->sees, "With --random: the mask").type_name("SPEC").show_default();
  command.add_option("--example", options->example, "A worked example of the literature instead").type_name("ID");
  command
      .add_option("--residues", options->residues,
                  "A protein instead, in one-letter code: how much more often than by chance evolution exchanges two "
                  "residues (BLOSUM62)")
      .type_name("LETTERS");
  command.add_flag("--json", options->json, "All numbers, for scripts");
  options->picture.add_to(command, "Picture of all steps and curves");
  command.does([options, &console] {
    const Form form = options->json ? Form::json : Form::text;
    const auto choice_of = [](const std::string& words) {
      return understood([&] { return parse_mechanism(words, "mechanism"); });
    };
    if (options->list)
      return console.print(form == Form::text && !options->words.empty()
                               ? describe(*choice_of(options->words.front()).mechanism).printed(form)
                               : catalogue().printed(form));
    options->picture.check();
    if (std::erase(options->words, "-") > 0) options->input.dash = "-";
    if (options->words.empty()) throw UsageError("which mechanism? --list names them");
    const MechanismChoice choice = choice_of(fmt::format("{}", fmt::join(options->words, " ")));
    Given given;
    const MechanismInput in = input_for(console, *options, *choice.mechanism, given);
    const Report report = mechanism_report(report_on(choice, in), given, options->json);
    options->picture.write(console, report.picture, &options->input, given.note);
    if (options->json || !options->picture.wanted()) console.print(report.printed(form));
  });
}

}  // namespace headscope::cli
