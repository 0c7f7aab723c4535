// headscope-cli compare: two runs side by side: another text, another model, or what edits do; heads ranked by how
// differently they look.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "app/cli/commands.h"
#include "app/cli/input.h"
#include "app/cli/output.h"
#include "app/cli/trace_report.h"
#include "core/base/error.h"
#include "core/metrics/next_token.h"
#include "core/metrics/trace_difference.h"
#include "viz/scene/head_pair.h"

namespace headscope::cli {

namespace {
struct CompareOptions {
  Input input;
  PictureOutput picture;
  std::string with_text, with_model, with_trace, head;
  int top = 12;
  Output output;
};

struct Compared {
  std::shared_ptr<const Trace> a, b;
  std::shared_ptr<const Tokenizer> tokenizer_a, tokenizer_b;
  std::string name_a, name_b;
  std::string note;  ///< what pictures say of the models
  std::vector<int> partner;
  std::vector<HeadDifference> heads;  ///< the largest total variation first
};

double rank_of(const HeadDifference& head) {
  return std::isnan(head.total_variation) ? -1 : head.total_variation;
}

void find_differences(Console& console, Compared& compared) {
  compared.partner = align_traces(*compared.a, *compared.b);
  compared.heads =
      head_differences(*compared.a, *compared.b, compared.partner, std::numeric_limits<Index>::max(), console.stop());
  std::ranges::stable_sort(compared.heads, std::ranges::greater{}, rank_of);
}

/// Of one model, or of both.
std::string notes_of(const Input& a, const Input& b, const Compared& of) {
  const std::string first = model_note_of(a, of.a->model.name), second = model_note_of(b, of.b->model.name);
  return first == second ? first : first + " · " + second;
}

Compared compare_traces(Console& console, const CompareOptions& options) {
  if (options.with_trace.empty() || !options.input.from_trace())
    throw UsageError("two traces are compared by --trace A --with-trace B");
  if (!options.with_text.empty() || !options.with_model.empty())
    throw UsageError("--with-text and --with-model run a model, which a trace does not hold");
  Compared out;
  Input second;
  second.trace = options.with_trace;
  out.a = open_input(console, options.input, {}).trace;
  out.b = open_input(console, second, {}).trace;
  out.name_a = "A", out.name_b = "B";
  out.note = notes_of(options.input, second, out);
  find_differences(console, out);
  return out;
}

Compared compare_runs(Console& console, const CompareOptions& options) {
  if (options.input.from_trace() || !options.with_trace.empty()) return compare_traces(console, options);
  RunRequest request = options.input.request();
  RunRequest other = request;
  request.edits.clear();
  if (!options.with_text.empty()) {
    other.text = options.with_text;
    other.ids.clear();
    other.masked.clear();  // positions of the first text
  }
  if (!options.with_model.empty()) {
    Input second;
    second.model = options.with_model;
    other.model = second.model_folder();
  }
  if (options.with_text.empty() && options.with_model.empty() && other.edits.empty())
    throw UsageError("nothing to compare with: give --with-text, --with-model or --edit");
  Compared out;
  const LoadedModel model = load_model(request.model, console.backend());
  const LoadedModel second = other.model == request.model ? model : load_model(other.model, console.backend());
  if (!options.with_model.empty()) other.masked = masks_for(second, model, other);
  out.a = run_request(console, model, request).trace;
  out.b = run_request(console, second, other).trace;
  Input other_input = options.input;
  if (!options.with_model.empty()) other_input.model = options.with_model;
  out.note = notes_of(options.input, other_input, out);
  out.tokenizer_a = model.tokenizer;
  out.tokenizer_b = second.tokenizer;
  out.name_a = options.with_model.empty() ? "A" : out.a->model.name;
  out.name_b = options.with_model.empty() ? "B" : out.b->model.name;
  if (options.with_text.empty() && options.with_model.empty()) out.name_a = "before", out.name_b = "after";
  find_differences(console, out);
  return out;
}

struct Side {
  const Trace& trace;
  TextMarks text = TextMarks::of(trace.tokens);
  double value(const Metric& metric, int layer, int head) const {
    return metric.value({trace.map({layer, head}), text});
  }
};

std::string losses_text(const Compared& c) {
  std::string text = fmt::format("loss {} → {} nats per token", number(mean_loss(*c.a), 4), number(mean_loss(*c.b), 4));
  const auto kl = aligned_kl(*c.a, *c.b, c.partner);
  double sum = 0;
  int count = 0;
  for (const double each : kl)
    if (!std::isnan(each)) sum += each, ++count;
  if (count > 0)
    text += fmt::format("; KL({} ‖ {}) {} nats, mean over {} paired tokens", c.name_a, c.name_b, number(sum / count, 4),
                        count);
  return text;
}

void add_next(Report& report, const Compared& c, int top) {
  if (!c.a->logits.defined() || !c.b->logits.defined()) return;
  const auto share = [](const std::string& title) { return Column("", title, "{:.4f}"); };
  const auto at_a = answer_position(*c.a), at_b = answer_position(*c.b);
  // Where vocabularies differ, or what is asked: two lists.
  if (c.a->logits.dim(1) != c.b->logits.dim(1) || c.a->model.objective != c.b->model.objective || !at_a || !at_b) {
    auto& rows = report.table("", {c.name_a, share("probability"), c.name_b, share("probability")}, Form::text);
    const auto a = top_next(*c.a, top), b = top_next(*c.b, top);
    const auto one = [](const std::vector<NextToken>& of, std::size_t i, const Tokenizer* tokenizer) {
      return i < of.size() ? std::pair(Cell(label_of(tokenizer, of[i].id)), Cell(of[i].probability))
                           : std::pair(Cell(""), Cell());
    };
    for (std::size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
      const auto [label_a, share_a] = one(a, i, c.tokenizer_a.get());
      const auto [label_b, share_b] = one(b, i, c.tokenizer_b.get());
      rows.add({label_a, share_a, label_b, share_b});
    }
    return;
  }
  auto& rows =
      report.table("", {prediction_words(c.a->model.objective).token, share(c.name_a), share(c.name_b)}, Form::text);
  const auto change = next_token_change(*c.a, *c.b, top, static_cast<int>(*at_a), static_cast<int>(*at_b));
  for (const auto& token : change.tokens)
    rows.add({label_of(c.tokenizer_a.get(), token.id), token.before, token.after});
}

/// One side, for scripts.
Cell side_json(const Trace& trace, const Tokenizer* tokenizer) {
  Report out;
  out.data("model", model_json(trace.model));
  out.data("source", trace.source);
  out.data("tokens", tokens_json(trace.tokens));
  add_next_tokens(out, trace, tokenizer, 10);
  out.data("loss", mean_loss(trace));
  out.data("token_losses", token_losses(trace));
  return out.json();
}

/// `all`: every head with every metric, else the `top` first with a few.
void add_heads(Report& report, const Compared& c, bool all, std::size_t top) {
  std::vector<const Metric*> shown{&metric("entropy"), &metric("sink"), &metric("mean_distance")};
  if (all) {
    shown.clear();
    for (const Metric& each : metrics()) shown.push_back(&each);
  }
  std::vector<Column> titles{{"total_variation", "total_variation", "{:.3f}"},
                             {"jensen_shannon", "jensen_shannon", "{:.3f}"},
                             only_in(Form::scripts, "rows"),
                             only_in(Form::json, "metrics")};
  for (const Metric* each : shown) {
    const std::string id(each->id);
    for (const Column& column : {for_people(id), only_in(Form::csv, id + "_a"), only_in(Form::csv, id + "_b")})
      titles.push_back(column);
  }
  auto& rows = report.table("heads", by_head(std::move(titles)));
  const Side a{*c.a}, b{*c.b};
  for (const HeadDifference& head : std::span(c.heads).first(all ? c.heads.size() : std::min(c.heads.size(), top))) {
    Cell both = Cell::object();
    std::vector<Cell> values;
    for (const Metric* each : shown) {
      const double before = a.value(*each, head.id.layer, head.id.head),
                   after = b.value(*each, head.id.layer, head.id.head);
      both[std::string(each->id)] = {before, after};
      values.insert(values.end(), {number(before) + " → " + number(after), before, after});
    }
    std::vector<Cell> row{to_string(head.id),  head.id.layer, head.id.head, head.total_variation,
                          head.jensen_shannon, head.rows,     both};
    row.insert(row.end(), values.begin(), values.end());
    rows.add(std::move(row));
  }
}

Report compare_report(const Compared& c, bool for_scripts, int top) {
  Report out;
  out.data("a", side_json(*c.a, c.tokenizer_a.get()));
  out.data("b", side_json(*c.b, c.tokenizer_b.get()));
  out.data("partner", c.partner);
  out.data("kl", aligned_kl(*c.a, *c.b, c.partner));
  out.line(c.name_a + "  " + headline(*c.a));
  out.line(c.name_b + "  " + headline(*c.b));
  const auto paired = std::ranges::count_if(c.partner, [](int p) { return p >= 0; });
  out.line(fmt::format("{} of {} and {} tokens paired", paired, c.a->tokens.size(), c.b->tokens.size()));
  add_next(out, c, 5);
  if (c.a->logits.defined() && c.b->logits.defined()) out.line(losses_text(c));
  add_heads(out, c, for_scripts, static_cast<std::size_t>(top));
  return out;
}

void draw(Console& console, const Compared& c, const CompareOptions& options) {
  HeadPairOptions pair;
  if (options.head.empty()) {
    if (c.heads.empty()) throw Error("compare", "a head that both models have", "none");
    pair.head = c.heads.front().id;
  } else {
    pair.head = parse_head(options.head);
  }
  pair.name_a = c.name_a;
  pair.name_b = c.name_b;
  pair.partner = c.partner;
  for (const HeadDifference& head : c.heads)
    if (head.id == pair.head)
      pair.facts = {{"Total variation", number(head.total_variation)},
                    {"Jensen–Shannon", number(head.jensen_shannon) + " nats"}};
  options.picture.write(
      console, [&](const Style& style) { return head_pair_scene(*c.a, *c.b, pair, style); }, &options.input, c.note);
}

void compare(Console& console, const CompareOptions& options) {
  options.picture.check();
  const Compared compared = compare_runs(console, options);
  if (options.picture.wanted()) return draw(console, compared, options);
  console.print(compare_report(compared, options.output.for_scripts(), options.top).printed(options.output.form()));
}
}  // namespace

void add_compare(Command& app, Console& console) {
  auto options = std::make_shared<CompareOptions>();
  Command command =
      app.add_subcommand("compare", "Two runs side by side: another text, another model, or before and after edits");
  options->input.add_to(command, {.trace = true});
  command.add_option("--with-trace", options->with_trace, "With --trace: the second side is this trace or capture")
      .type_name("FILE");
  command.add_option("--with-text", options->with_text, "The second side reads this text").type_name("TEXT");
  command.add_option("--with-model", options->with_model, "The second side is this model").type_name("MODEL");
  command.add_option("--top", options->top, "How many heads to list").check(range(1, 1 << 20)).show_default();
  options->output.add_to(command, "All heads with all metrics of both sides, tokens, pairs, losses and next tokens",
                         "The heads as CSV");
  options->picture.add_to(command, "Picture of one head in both, and the difference");
  command.add_option("--head", options->head, "Which head; without it the one that differs most").type_name("L.H");
  command.does([options, &console] { compare(console, *options); });
}

}  // namespace headscope::cli
