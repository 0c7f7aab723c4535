#include "app/cli/sweep_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "app/cli/report.h"
#include "app/cli/table.h"
#include "core/base/json.h"
#include "core/engine/edit_pairs.h"
#include "viz/scene/text.h"

namespace headscope::cli {

namespace {
using nlohmann::ordered_json;
using Align = Table::Align;
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

std::string label(const LoadedModel& loaded, std::int32_t id) {
  return loaded.tokenizer ? loaded.tokenizer->token(id).label : std::to_string(id);
}

ordered_json answers_json(const LoadedModel& loaded, const AnswerPair& answers) {
  return {{"right", {{"id", answers.right}, {"label", label(loaded, answers.right)}}},
          {"wrong", {{"id", answers.wrong}, {"label", label(loaded, answers.wrong)}}}};
}

std::string number(double value, const char* format = "{:.4f}") {
  return std::isfinite(value) ? fmt::format(fmt::runtime(format), value) : "";
}
/// As CSV wants it: exact, and nothing where there is no number.
std::string exact(double value) {
  return std::isfinite(value) ? fmt::format("{}", value) : "";
}

/// "resid_pre": as --site takes it.
std::string short_name(SiteKind site) {
  const std::string_view pattern = info(site).pattern;
  return std::string(pattern.substr(pattern.find("hook_") + 5));
}

std::string column_name(const Patching& result, int column) {
  return is_by_head(result.request.site) ? std::to_string(column)
                                         : result.corrupted->tokens[static_cast<std::size_t>(column)].label;
}

}  // namespace

void print_ablation(Shell& shell, Form form, const LoadedModel& loaded, const HeadAblation& result, bool whole) {
  if (form == Form::csv) {
    shell.print_line("layer,head,loss_change,kl,logit_difference_change");
    for (const auto& h : result.heads)
      shell.print_line(fmt::format("{},{},{},{},{}", h.layer, h.head, exact(h.loss_change), exact(h.after.kl),
                                   exact(h.logit_difference_change)));
    return;
  }
  if (form == Form::json) {
    ordered_json out;
    out["model"] = model_json(result.before_trace->model);
    out["tokens"] = tokens_json(*result.before_trace);
    out["ablation"] = text_of(EditAction(result.request.ablate));
    out["answers"] = answers_json(loaded, result.answers);
    out["complete"] = whole;
    out["before"] = {{"loss", number_json(result.before.loss)},
                     {"logit_difference", number_json(result.before.logit_difference)}};
    out["heads"] = ordered_json::array();
    for (const auto& h : result.heads)
      out["heads"].push_back({{"layer", h.layer},
                              {"head", h.head},
                              {"loss_change", number_json(h.loss_change)},
                              {"kl", number_json(h.after.kl)},
                              {"logit_difference_change", number_json(h.logit_difference_change)}});
    return shell.print_line(json_text(out));
  }
  shell.print_line(headline(*result.before_trace));
  shell.print_line(fmt::format("{}, each head in turn; loss {} nats, logit {} − {} = {}\n",
                               text_of(EditAction(result.request.ablate)), number(result.before.loss),
                               label(loaded, result.answers.right), label(loaded, result.answers.wrong),
                               number(result.before.logit_difference, "{:.3f}")));
  auto heads = result.heads;
  std::ranges::stable_sort(heads, [](const auto& a, const auto& b) { return a.loss_change > b.loss_change; });
  Table table({{"head"}, {"loss change"}, {"KL"}, {"logit difference change"}});
  for (const auto& h : heads)
    table.add({to_string(HeadId{h.layer, h.head}), number(h.loss_change, "{:+.4f}"), number(h.after.kl),
               number(h.logit_difference_change, "{:+.3f}")});
  shell.print(table.text());
}

void print_patching(Shell& shell, Form form, const LoadedModel& loaded, const Patching& result, bool whole) {
  const bool heads = is_by_head(result.request.site);
  const std::string site = short_name(result.request.site);
  const auto cell = [&](int row, int column) { return static_cast<std::size_t>(row * result.columns + column); };
  const auto known = [&](std::size_t i) { return i < result.difference.size(); };
  if (form == Form::csv) {
    shell.print_line(heads ? "layer,head,logit_difference,recovered" : "layer,position,logit_difference,recovered");
    for (int r = 0; r < result.rows; ++r)
      for (int c = 0; c < result.columns; ++c)
        if (const auto i = cell(r, c); known(i))
          shell.print_line(fmt::format("{},{},{},{}", r, c, exact(result.difference[i]), exact(result.recovered(i))));
    return;
  }
  if (form == Form::json) {
    ordered_json out;
    out["model"] = model_json(result.corrupted->model);
    out["clean"] = tokens_json(*result.clean);
    out["corrupted"] = tokens_json(*result.corrupted);
    out["partner"] = result.partner;
    out["site"] = site;
    out["answers"] = answers_json(loaded, result.answers);
    out["clean_logit_difference"] = result.clean_difference;
    out["corrupted_logit_difference"] = result.corrupted_difference;
    out["complete"] = whole;
    out["columns"] = heads ? "head" : "position";
    out["recovered"] = ordered_json::array();
    for (int r = 0; r < result.rows; ++r) {
      ordered_json row = ordered_json::array();
      for (int c = 0; c < result.columns; ++c)
        row.push_back(number_json(known(cell(r, c)) ? result.recovered(cell(r, c)) : nan));
      out["recovered"].push_back(row);
    }
    return shell.print_line(json_text(out));
  }
  shell.print_line(headline(*result.corrupted));
  shell.print_line(
      fmt::format("{} from the clean prompt into the corrupted one; logit {} − {}: clean {:.3f}, corrupted {:.3f}\n"
                  "share of the difference that comes back: (patched − corrupted) / (clean − corrupted)\n",
                  site, label(loaded, result.answers.right), label(loaded, result.answers.wrong),
                  result.clean_difference, result.corrupted_difference));
  shell.print_line("clean prompt into the corrupted one, " + stretches_of_pairs(result.partner) + "\n");
  // Positions down, layers across: texts are longer than models are deep.
  std::vector<Table::Column> columns{{heads ? "head" : "position"}};
  if (!heads) columns.push_back({"token", Align::left});
  if (!heads) columns.push_back({"from clean", Align::left});
  for (int r = 0; r < result.rows; ++r) columns.push_back({fmt::format("layer {}", r)});
  Table table(columns);
  for (int c = 0; c < result.columns; ++c) {
    std::vector<std::string> line{std::to_string(c)};
    if (!heads) {
      line.push_back(column_name(result, c));
      const int from = result.partner[static_cast<std::size_t>(c)];
      line.push_back(from < 0 ? "–" : fmt::format("{} {}", from, token_label(*result.clean, from)));
    }
    for (int r = 0; r < result.rows; ++r)
      line.push_back(known(cell(r, c)) ? number(result.recovered(cell(r, c)), "{:.3f}") : "");
    table.add(line);
  }
  shell.print(table.text());
}

void print_temperatures(Shell& shell, Form form, const TemperatureSweep& result, bool whole) {
  const ModelDims& dims = result.before_trace->model.dims;
  const auto name = [&](std::size_t i) {
    return fmt::format("{}.{}", static_cast<int>(i) / dims.heads, static_cast<int>(i) % dims.heads);
  };
  const auto each = [&](const auto& line) {
    const auto curve = [&](const std::string& head, const std::vector<TemperatureSweep::Point>& points) {
      for (std::size_t i = 0; i < points.size(); ++i) line(head, result.request.taus[i], points[i]);
    };
    curve("all", result.all);
    curve("mean", result.mean());
    for (std::size_t i = 0; i < result.heads.size(); ++i) curve(name(i), result.heads[i]);
  };
  if (form == Form::csv) {
    shell.print_line("head,temperature,entropy,loss,kl");
    each([&](const std::string& head, double tau, const TemperatureSweep::Point& p) {
      shell.print_line(fmt::format("{},{},{},{},{}", head, exact(tau), exact(p.entropy), exact(p.loss), exact(p.kl)));
    });
    return;
  }
  if (form == Form::json) {
    ordered_json out;
    out["model"] = model_json(result.before_trace->model);
    out["tokens"] = tokens_json(*result.before_trace);
    out["loss"] = number_json(result.loss_before);
    out["complete"] = whole;
    out["temperatures"] = result.request.taus;
    out["curves"] = ordered_json::object();
    each([&](const std::string& head, double, const TemperatureSweep::Point& p) {
      ordered_json& curve = out["curves"][head];
      curve["entropy"].push_back(number_json(p.entropy));
      curve["loss"].push_back(number_json(p.loss));
      curve["kl"].push_back(number_json(p.kl));
    });
    return shell.print_line(json_text(out));
  }
  shell.print_line(headline(*result.before_trace));
  shell.print_line(fmt::format("entropy of the head → loss of the model, both in nats; loss as it is {}\n",
                               number(result.loss_before)));
  std::vector<Table::Column> columns{{"head"}};
  for (const double tau : result.request.taus) columns.push_back({fmt::format("τ {:.3g}", tau)});
  Table table(columns);
  const auto add = [&](const std::string& head, const std::vector<TemperatureSweep::Point>& points) {
    std::vector<std::string> cells{head};
    for (const auto& p : points) cells.push_back(number(p.entropy, "{:.2f}") + " → " + number(p.loss, "{:.3f}"));
    table.add(cells);
  };
  add("all", result.all);
  add("mean", result.mean());
  for (std::size_t i = 0; i < result.heads.size(); ++i) add(name(i), result.heads[i]);
  shell.print(table.text());
}

namespace {
constexpr const char* faithfulness_meaning =
    "(logit difference − none) / (whole − none), normalised (Hanna et al. 2024; Marks et al. 2024)";
}

void print_circuit(Shell& shell, Form form, const LoadedModel& loaded, const HeadCircuit& result, double threshold,
                   bool whole) {
  const bool removing = result.request.method == HeadCircuitRequest::Method::remove;
  const auto kept_after = [&](std::size_t step) {
    return removing ? result.heads - static_cast<int>(step) - 1 : static_cast<int>(step) + 1;
  };
  const int fewest = result.fewest(threshold);
  if (form == Form::csv) {
    shell.print_line("kept,layer,head,logit_difference,faithfulness");
    for (std::size_t i = 0; i < result.order.size(); ++i) {
      const auto& step = result.order[i];
      shell.print_line(fmt::format("{},{},{},{},{}", kept_after(i), step.layer, step.head, exact(step.logit_difference),
                                   exact(result.faithfulness(step.logit_difference))));
    }
    return;
  }
  const auto set = fewest >= 0 ? result.kept(fewest) : std::set<HeadId>{};
  if (form == Form::json) {
    ordered_json out;
    out["model"] = model_json(result.before_trace->model);
    out["tokens"] = tokens_json(*result.before_trace);
    out["ablation"] = text_of(EditAction(result.ablate));
    out["method"] = (removing ? "remove" : "add");
    out["answers"] = answers_json(loaded, result.answers);
    out["whole"] = result.whole;
    out["none"] = result.none;
    out["complete"] = whole;
    out["order"] = ordered_json::array();
    for (std::size_t i = 0; i < result.order.size(); ++i) {
      const auto& step = result.order[i];
      out["order"].push_back({{"kept", kept_after(i)},
                              {"layer", step.layer},
                              {"head", step.head},
                              {"logit_difference", step.logit_difference},
                              {"faithfulness", result.faithfulness(step.logit_difference)}});
    }
    out["faithfulness"] = faithfulness_meaning;
    out["threshold"] = threshold;
    out["caveats"] = result.caveats(threshold);
    out["circuit"] = nullptr;
    if (fewest >= 0) {
      out["circuit"] = ordered_json::array();
      for (const auto& [layer, head] : set) out["circuit"].push_back({layer, head});
    }
    return shell.print_line(json_text(out));
  }
  shell.print_line(headline(*result.before_trace));
  shell.print_line(fmt::format("greedy {}, heads that are out: {}; logit {} − {}: whole model {:.3f}, no head {:.3f}\n",
                               removing ? "removal" : "addition", text_of(EditAction(result.ablate)),
                               label(loaded, result.answers.right), label(loaded, result.answers.wrong), result.whole,
                               result.none));
  Table table({{removing ? "removed" : "added"}, {"heads kept"}, {"logit difference"}, {"faithfulness"}});
  for (std::size_t i = 0; i < result.order.size(); ++i) {
    const auto& step = result.order[i];
    table.add({to_string(HeadId{step.layer, step.head}), std::to_string(kept_after(i)),
               number(step.logit_difference, "{:.3f}"), number(result.faithfulness(step.logit_difference), "{:.3f}")});
  }
  shell.print(table.text());
  shell.print_line(fmt::format("\nfaithfulness: {}", faithfulness_meaning));
  for (const std::string& caveat : result.caveats(threshold)) shell.print_line("\n" + caveat);
  if (fewest < 0) return shell.print_line(fmt::format("\nno known set keeps {:.0f} %", 100 * threshold));
  std::string names;
  for (const auto& [layer, head] : set) names += fmt::format(" {}.{}", layer, head);
  shell.print_line(fmt::format("\n{} {} keep {:.0f} % of it:{} (greedy: not proven to be the fewest)", fewest,
                               fewest == 1 ? "head" : "heads", 100 * threshold, names));
}

}  // namespace headscope::cli
