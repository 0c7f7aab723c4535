// headscope-cli compare: two runs side by side: another text, another model, or what edits do; heads ranked by how
// differently they look.

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "app/cli/commands.h"
#include "app/cli/input.h"
#include "app/cli/report.h"
#include "app/cli/table.h"
#include "app/render/picture.h"
#include "core/base/error.h"
#include "core/base/json.h"
#include "core/metrics/next_token.h"
#include "core/metrics/trace_difference.h"
#include "viz/export/pango_text.h"
#include "viz/scene/head_pair.h"

namespace headscope::cli {

namespace {
struct Options {
  Input input;
  std::string with_text, with_model, head, out, theme = "dark";
  int top = 12;
  bool csv = false, json = false;
};

struct Compared {
  std::shared_ptr<const Trace> a, b;
  std::shared_ptr<const Tokenizer> tokenizer_a, tokenizer_b;
  std::string name_a, name_b;
  std::vector<int> partner;
  std::vector<HeadDifference> heads;  ///< the largest total variation first
};

double rank_of(const HeadDifference& head) {
  return std::isnan(head.total_variation) ? -1 : head.total_variation;
}

Compared compare_runs(Shell& shell, const Options& options) {
  RunRequest request = options.input.request();
  RunRequest other = request;
  request.edits.clear();
  if (!options.with_text.empty()) {
    other.text = options.with_text;
    other.ids.clear();
  }
  if (!options.with_model.empty()) {
    Input second;
    second.model = options.with_model;
    other.model = second.model_folder();
  }
  if (options.with_text.empty() && options.with_model.empty() && other.edits.empty())
    throw UsageError("nothing to compare with: give --with-text, --with-model or --edit");
  Compared out;
  const LoadedModel model = load_model(request.model, shell.backend());
  const LoadedModel second = other.model == request.model ? model : load_model(other.model, shell.backend());
  out.a = run_request(shell, model, request).trace;
  out.b = run_request(shell, second, other).trace;
  out.tokenizer_a = model.tokenizer;
  out.tokenizer_b = second.tokenizer;
  out.name_a = options.with_model.empty() ? "A" : out.a->model.name;
  out.name_b = options.with_model.empty() ? "B" : out.b->model.name;
  if (options.with_text.empty() && options.with_model.empty()) out.name_a = "before", out.name_b = "after";
  out.partner = align_traces(*out.a, *out.b);
  out.heads = head_differences(*out.a, *out.b, out.partner, std::numeric_limits<Index>::max(), shell.stop());
  std::ranges::stable_sort(out.heads, std::ranges::greater{}, rank_of);
  return out;
}

struct Side {
  const Trace& trace;
  TokenLinks links = TokenLinks::of(trace.ids());
  double value(const Metric& metric, int layer, int head) const {
    return metric.value({trace.map({layer, head}), links});
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

std::string next_text(const Compared& c, int top) {
  if (!c.a->logits.defined() || !c.b->logits.defined()) return "";
  Table table({{"next token", Table::Align::left}, {c.name_a}, {c.name_b}});
  if (c.a->logits.dim(1) != c.b->logits.dim(1)) {  // vocabularies differ: two lists
    Table two({{c.name_a, Table::Align::left}, {"probability"}, {c.name_b, Table::Align::left}, {"probability"}});
    const auto a = top_next(*c.a, top), b = top_next(*c.b, top);
    for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i)
      two.add({label_of(c.tokenizer_a.get(), a[i].id), number(a[i].probability, 4),
               label_of(c.tokenizer_b.get(), b[i].id), number(b[i].probability, 4)});
    return two.text();
  }
  const auto change = next_token_change(*c.a, *c.b, top, static_cast<int>(c.a->tokens.size()) - 1,
                                        static_cast<int>(c.b->tokens.size()) - 1);
  for (const auto& token : change.tokens)
    table.add({label_of(c.tokenizer_a.get(), token.id), number(token.before, 4), number(token.after, 4)});
  return table.text();
}

constexpr std::string_view shown_metrics[] = {"entropy", "sink", "mean_distance"};

void print_text(Shell& shell, const Compared& c, int top) {
  shell.print_line(c.name_a + "  " + headline(*c.a));
  shell.print_line(c.name_b + "  " + headline(*c.b));
  const auto paired = std::ranges::count_if(c.partner, [](int p) { return p >= 0; });
  shell.print_line(fmt::format("{} of {} and {} tokens paired\n", paired, c.a->tokens.size(), c.b->tokens.size()));
  shell.print_line(next_text(c, 5));
  shell.print_line(losses_text(c) + "\n");
  std::vector<Table::Column> columns{{"head"}, {"total_variation"}, {"jensen_shannon"}};
  for (const std::string_view id : shown_metrics) columns.push_back({std::string(id)});
  Table table(columns);
  const Side a{*c.a}, b{*c.b};
  for (const HeadDifference& head :
       std::span(c.heads).first(std::min(c.heads.size(), static_cast<std::size_t>(std::max(top, 0))))) {
    std::vector<std::string> row{to_string(HeadId{head.layer, head.head}), number(head.total_variation),
                                 number(head.jensen_shannon)};
    for (const std::string_view id : shown_metrics)
      row.push_back(number(a.value(metric(id), head.layer, head.head)) + " → " +
                    number(b.value(metric(id), head.layer, head.head)));
    table.add(row);
  }
  shell.print(table.text());
}

void print_csv(Shell& shell, const Compared& c) {
  std::string out = "layer,head,total_variation,jensen_shannon,rows";
  for (const Metric& metric : metrics()) out += fmt::format(",{0}_a,{0}_b", metric.id);
  out += '\n';
  const Side a{*c.a}, b{*c.b};
  const auto cell = [&](double value) { out += std::isfinite(value) ? fmt::format(",{}", value) : ","; };
  for (const HeadDifference& head : c.heads) {
    out += fmt::format("{},{}", head.layer, head.head);
    cell(head.total_variation);
    cell(head.jensen_shannon);
    out += fmt::format(",{}", head.rows);
    for (const Metric& metric : metrics()) {
      cell(a.value(metric, head.layer, head.head));
      cell(b.value(metric, head.layer, head.head));
    }
    out += '\n';
  }
  shell.print(out);
}

void print_json(Shell& shell, const Compared& c) {
  const auto side = [](const Trace& trace, const Tokenizer* tokenizer) {
    nlohmann::ordered_json out{
        {"model", model_json(trace.model)},      {"source", trace.source},
        {"tokens", tokens_json(trace)},          {"next", next_tokens_json(trace, tokenizer, 10)},
        {"loss", number_json(mean_loss(trace))}, {"token_losses", token_losses(trace)}};
    return out;
  };
  nlohmann::ordered_json out{{"a", side(*c.a, c.tokenizer_a.get())}, {"b", side(*c.b, c.tokenizer_b.get())}};
  out["partner"] = c.partner;
  out["kl"] = nlohmann::ordered_json::array();
  for (const double kl : aligned_kl(*c.a, *c.b, c.partner)) out["kl"].push_back(number_json(kl));
  out["heads"] = nlohmann::ordered_json::array();
  const Side a{*c.a}, b{*c.b};
  for (const HeadDifference& head : c.heads) {
    nlohmann::ordered_json values = nlohmann::ordered_json::object();
    for (const Metric& metric : metrics())
      values[std::string(metric.id)] = {number_json(a.value(metric, head.layer, head.head)),
                                        number_json(b.value(metric, head.layer, head.head))};
    out["heads"].push_back({{"layer", head.layer},
                            {"head", head.head},
                            {"total_variation", number_json(head.total_variation)},
                            {"jensen_shannon", number_json(head.jensen_shannon)},
                            {"rows", head.rows},
                            {"metrics", values}});
  }
  shell.print_line(json_text(out));
}

void draw(Shell& shell, const Compared& c, const Options& options) {
  HeadPairOptions pair;
  if (options.head.empty()) {
    if (c.heads.empty()) throw Error("compare", "a head that both models have", "none");
    pair.layer = c.heads.front().layer;
    pair.head = c.heads.front().head;
  } else {
    const HeadId head = parse_head(options.head);
    pair.layer = head.layer;
    pair.head = head.head;
  }
  pair.name_a = c.name_a;
  pair.name_b = c.name_b;
  pair.partner = c.partner;
  for (const HeadDifference& head : c.heads)
    if (head.layer == pair.layer && head.head == pair.head)
      pair.facts = {{"Total variation", number(head.total_variation)},
                    {"Jensen–Shannon", number(head.jensen_shannon) + " nats"}};
  const PangoText measure;
  shell.print_line(write_picture(head_pair_scene(*c.a, *c.b, pair, {theme(options.theme), measure}), options.out, {}));
}

void compare(Shell& shell, const Options& options) {
  if (options.csv && options.json) throw UsageError("--csv and --json exclude one another");
  if (!options.out.empty() && kind_of_file(options.out).value_or(FileKind::csv) == FileKind::csv)
    throw UsageError(fmt::format("-o: expected a file ending in .png or .svg, found \"{}\"", options.out));
  const Compared compared = compare_runs(shell, options);
  if (!options.out.empty()) return draw(shell, compared, options);
  if (options.json) return print_json(shell, compared);
  if (options.csv) return print_csv(shell, compared);
  print_text(shell, compared, options.top);
}
}  // namespace

void add_compare(Command& app, Shell& shell) {
  auto options = std::make_shared<Options>();
  Command command =
      app.add_subcommand("compare", "Two runs side by side: another text, another model, or before and after edits");
  options->input.add_to(command);
  command.add_option("--with-text", options->with_text, "The second side reads this text").type_name("TEXT");
  command.add_option("--with-model", options->with_model, "The second side is this model").type_name("DIR");
  command.add_option("--top", options->top, "How many heads to list").check(range(1, 1 << 20)).show_default();
  command.add_flag("--csv", options->csv, "All heads with all metrics of both sides");
  command.add_flag("--json", options->json, "The same as JSON, with tokens, pairs, losses and next tokens");
  command.add_option("-o,--out", options->out, "Picture of one head in both, and the difference")
      .type_name("FILE.png|.svg");
  command.add_option("--head", options->head, "Which head; without it the one that differs most").type_name("L.H");
  command.add_option("--theme", options->theme, "dark, light, projector or print")
      .check(one_of({"dark", "light", "projector", "print"}))
      .type_name("THEME")
      .show_default();
  command.does([options, &shell] { compare(shell, *options); });
}

}  // namespace headscope::cli
