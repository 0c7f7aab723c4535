#include "app/cli/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "app/cli/table.h"
#include "core/base/json.h"
#include "core/metrics/next_token.h"

namespace headscope::cli {

using nlohmann::ordered_json;

namespace {
std::string label_in(const Tokenizer* tokenizer, const Trace& trace, std::int32_t id) {
  for (const Token& token : trace.tokens)
    if (token.id == id && !(tokenizer && id < tokenizer->vocab_size())) return token.label;
  return label_of(tokenizer, id);
}

ordered_json verdicts_json(const std::vector<HeadVerdict>& verdicts, const Trace& trace) {
  ordered_json out = ordered_json::array();
  for (const HeadVerdict& verdict : verdicts) {
    ordered_json evidence = ordered_json::array();
    for (const Evidence& cell : verdict.evidence)
      evidence.push_back({{"query", cell.query},
                          {"key", cell.key},
                          {"weight", cell.weight},
                          {"query_token", trace.tokens[static_cast<std::size_t>(cell.query)].label},
                          {"key_token", trace.tokens[static_cast<std::size_t>(cell.key)].label}});
    out.push_back({{"class", verdict.rule->id},
                   {"metric", verdict.rule->metric},
                   {"score", number_json(verdict.score)},
                   {"chance", number_json(verdict.chance)},
                   {"threshold", verdict.rule->at_least},
                   {"rows", verdict.rows},
                   {"p", number_json(verdict.p)},
                   {"evidence", evidence}});
  }
  return out;
}
}  // namespace

std::string label_of(const Tokenizer* tokenizer, std::int32_t id) {
  return tokenizer && id < tokenizer->vocab_size() ? tokenizer->token(id).label : fmt::format("#{}", id);
}

std::string headline(const Trace& trace) {
  std::string text = fmt::format("{}: {}, {} layers × {} heads, ", trace.model.name, trace.model.family,
                                 trace.model.dims.layers, trace.model.dims.heads);
  text += trace.merged_tokens > 0 ? fmt::format("{} words of {} tokens", trace.tokens.size(), trace.merged_tokens)
                                  : fmt::format("{} tokens", trace.tokens.size());
  if (trace.milliseconds > 0) text += fmt::format(", {:.3g} ms", trace.milliseconds);
  if (!trace.plan.summary.empty()) text += "; " + trace.plan.summary;
  return text;
}

std::string next_tokens_text(const Trace& trace, const Tokenizer* tokenizer, int k) {
  if (!trace.logits.defined()) return "";
  Table table({{"next token", Table::Align::left}, {"probability"}, {"logit"}, {"id"}});
  for (const NextToken& next : top_next(trace, k))
    table.add({label_in(tokenizer, trace, next.id), number(next.probability, 4), number(next.logit, 2),
               std::to_string(next.id)});
  return table.text();
}

std::string loss_text(const Trace& trace) {
  const double loss = mean_loss(trace);
  if (std::isnan(loss)) return "";
  return fmt::format("loss {:.4f} nats per token, perplexity {:.2f} (uniform over the vocabulary: {:.4f}, {})", loss,
                     std::exp(loss), std::log(static_cast<double>(trace.model.dims.vocab)), trace.model.dims.vocab);
}

std::string heads_text(const std::vector<HeadReport>& heads, const Trace& trace,
                       const std::vector<HeadColumn>& columns) {
  const TokenLinks links = TokenLinks::of(trace.ids());
  std::vector<Table::Column> titles{{"head", Table::Align::right}};
  for (const HeadColumn& each : columns) titles.push_back({each.id});
  titles.push_back({"class score (chance, rows of evidence, how sure)", Table::Align::left});
  Table table(std::move(titles));
  for (const HeadReport& head : heads) {
    std::vector<std::string> row{to_string(head.map->id())};
    for (const HeadColumn& each : columns) row.push_back(number(each.value({*head.map, links})));
    std::vector<std::string> verdicts;
    for (const HeadVerdict& verdict : head.verdicts) verdicts.push_back(verdict_text(verdict));
    row.push_back(fmt::format("{}", fmt::join(verdicts, ", ")));
    table.add(std::move(row));
  }
  return table.text();
}

std::string heads_csv(const std::vector<HeadReport>& heads, const Trace& trace, const std::vector<HeadColumn>& columns,
                      bool with_chance) {
  const TokenLinks links = TokenLinks::of(trace.ids());
  std::string out = "layer,head";
  for (const HeadColumn& each : columns) out += "," + each.id + (with_chance ? "," + each.id + "_chance" : "");
  out += '\n';
  const auto cell = [&](double value) { out += std::isfinite(value) ? fmt::format(",{}", value) : ","; };
  for (const HeadReport& head : heads) {
    out += fmt::format("{},{}", head.map->layer(), head.map->head());
    for (const HeadColumn& each : columns) {
      cell(each.value({*head.map, links}));
      if (with_chance) cell(each.chance({*head.map, links}));
    }
    out += '\n';
  }
  return out;
}

HeadColumn column(const Metric& metric) {
  return {std::string(metric.id), metric.value, metric.chance};
}

std::vector<HeadColumn> usual_columns() {
  return columns_by_id({"entropy", "sink", "max_weight", "mean_distance"});
}

std::vector<HeadColumn> columns_by_id(const std::vector<std::string>& ids) {
  std::vector<HeadColumn> result;
  for (const std::string& id : ids) {
    if (id == "all") {
      for (const Metric& each : metrics()) result.push_back(column(each));
    } else {
      result.push_back(column(metric(id)));
    }
  }
  return result;
}

std::string json_text(const ordered_json& value) {
  return value.dump(2, ' ', false, ordered_json::error_handler_t::replace);
}

ordered_json number_json(double value) {
  return std::isfinite(value) ? ordered_json(value) : ordered_json(nullptr);
}

ordered_json tokens_json(const Trace& trace) {
  ordered_json out = ordered_json::array();
  for (const Token& token : trace.tokens) {
    ordered_json item{{"id", token.id}, {"label", token.label}};
    if (token.begin >= 0) {
      item["begin"] = token.begin;
      item["end"] = token.end;
    }
    out.push_back(item);
  }
  return out;
}

ordered_json next_tokens_json(const Trace& trace, const Tokenizer* tokenizer, int k) {
  ordered_json out = ordered_json::array();
  if (!trace.logits.defined()) return out;
  for (const NextToken& next : top_next(trace, k))
    out.push_back({{"id", next.id},
                   {"label", label_in(tokenizer, trace, next.id)},
                   {"probability", next.probability},
                   {"logit", next.logit}});
  return out;
}

ordered_json heads_json(const std::vector<HeadReport>& heads, const Trace& trace,
                        const std::vector<HeadColumn>& columns) {
  const TokenLinks links = TokenLinks::of(trace.ids());
  ordered_json out = ordered_json::array();
  for (const HeadReport& head : heads) {
    ordered_json values = ordered_json::object(), chances = ordered_json::object();
    for (const HeadColumn& each : columns) {
      values[each.id] = number_json(each.value({*head.map, links}));
      chances[each.id] = number_json(each.chance({*head.map, links}));
    }
    out.push_back({{"layer", head.map->layer()},
                   {"head", head.map->head()},
                   {"values", values},
                   {"chance", chances},
                   {"classes", verdicts_json(head.verdicts, trace)}});
  }
  return out;
}

ordered_json model_json(const ModelInfo& model) {
  return {{"name", model.name},
          {"family", model.family},
          {"layers", model.dims.layers},
          {"heads", model.dims.heads},
          {"kv_heads", model.dims.kv_heads},
          {"d_head", model.dims.d_head},
          {"d_model", model.dims.d_model},
          {"vocab", model.dims.vocab},
          {"context", model.context},
          {"parameters", model.parameters},
          {"dtype", model.dtype}};
}

}  // namespace headscope::cli
