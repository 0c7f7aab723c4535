#include "app/cli/trace_report.h"

#include <fmt/format.h>

#include <cmath>

#include "core/base/nth.h"
#include "core/metrics/next_token.h"
#include "core/trace/model_heads.h"

namespace headscope::cli {

namespace {
std::string label_in(const Tokenizer* tokenizer, const Trace& trace, std::int32_t id) {
  for (const Token& token : trace.tokens)
    if (token.id == id && !(tokenizer && id < tokenizer->vocab_size())) return token.label;
  return label_of(tokenizer, id);
}

Cell verdicts_json(const std::vector<HeadVerdict>& verdicts, const Trace& trace, Index offset) {
  Cell out = Cell::array();
  for (const HeadVerdict& verdict : verdicts) {
    Cell evidence = Cell::array();
    for (const Evidence& cell : verdict.evidence)
      evidence.push_back({{"query", cell.query},
                          {"key", cell.key},
                          {"weight", cell.weight},
                          {"query_token", nth(trace.queries(), offset + cell.query).label},
                          {"key_token", nth(trace.tokens, cell.key).label}});
    out.push_back({{"class", verdict.rule->id},
                   {"metric", verdict.rule->metric},
                   {"score", verdict.score},
                   {"chance", verdict.chance},
                   {"threshold", verdict.rule->at_least},
                   {"rows", verdict.rows},
                   {"p", verdict.p},
                   {"by_distance", verdict.by_distance},
                   {"weak", verdict.weak},
                   {"evidence", evidence}});
  }
  return out;
}
}  // namespace

std::string label_of(const Tokenizer* tokenizer, std::int32_t id) {
  return tokenizer && id < tokenizer->vocab_size() ? tokenizer->token(id).label : fmt::format("#{}", id);
}

namespace {
const char* stack_words(Stack stack) {
  switch (stack) {
    case Stack::only:
      break;
    case Stack::encoder:
      return "encoder, ";
    case Stack::decoder:
      return "decoder, ";
    case Stack::cross:
      return "cross-attention, ";
  }
  return "";
}
}  // namespace

std::string headline(const Trace& trace) {
  std::string text = fmt::format("{}: {}, {}{} layers × {} heads, ", trace.model.name, trace.model.family,
                                 stack_words(trace.model.stack), trace.model.dims.layers, heads_text(trace.model.dims));
  if (trace.picture && trace.patches.defined())
    text += fmt::format("{} × {} pixels in {} × {} patches, ", trace.picture->width, trace.picture->height,
                        trace.picture->columns, trace.picture->rows);
  if (trace.encoder && trace.encoder->sound) {
    const SoundFrames& sound = *trace.encoder->sound;
    text += sound.from > 0 ? fmt::format("{:g} s to {:g} s of a sound of {:.2f} s, ", sound.from,
                                         sound.from + std::min(sound.seconds, sound.read_seconds()), sound.whole())
            : sound.seconds > sound.read_seconds()
                ? fmt::format("the first {:g} s of a sound of {:.2f} s, ", sound.read_seconds(), sound.seconds)
                : fmt::format("a sound of {:.2f} s, ", sound.seconds);
  }
  text += trace.merged_tokens > 0 ? fmt::format("{} words of {} tokens", trace.tokens.size(), trace.merged_tokens)
          : trace.between_texts()
              ? fmt::format("{} query tokens × {} key tokens", trace.query_tokens.size(), trace.tokens.size())
              : fmt::format("{} tokens", trace.tokens.size());
  if (trace.encoder) text += fmt::format(" of {} in the source", trace.encoder->tokens.size());
  if (trace.milliseconds > 0) text += fmt::format(", {:.3g} ms", trace.milliseconds);
  if (!trace.plan.summary.empty()) text += "; " + trace.plan.summary;
  return text;
}

void describe(Report& report, const Trace& trace) {
  report.line(headline(trace));
  report.data("model", model_json(trace.model));
  report.data("tokens", tokens_json(trace.tokens));
  if (trace.between_texts()) report.data("query_tokens", tokens_json(trace.query_tokens));
  if (trace.encoder) report.data("source_tokens", tokens_json(trace.encoder->tokens));
}

namespace {
/// What an encoder says of every masked position.
void add_masked_tokens(Report& report, const Trace& trace, const Tokenizer* tokenizer, int k) {
  auto& rows = report.table("masked", {{"position", "position"},
                                       {"original", "stood there"},
                                       only_in(Form::json, "id"),
                                       {"label", "token"},
                                       {"probability", "probability", "{:.4f}"},
                                       {"logit", "logit", "{:.2f}"},
                                       for_people("id")});
  for (std::size_t at = 0; at < trace.tokens.size(); ++at) {
    if (!trace.tokens[at].masked) continue;
    const std::int32_t original = trace.tokens[at].original;
    for (const NextToken& each : top_next(trace, k, static_cast<int>(at)))
      rows.add({at, original < 0 ? std::string() : label_of(tokenizer, original), each.id,
                label_in(tokenizer, trace, each.id), each.probability, each.logit, each.id});
  }
  if (!answer_position(trace)) report.line("no token is masked: write [MASK] in the text, or --mask POSITION");
}
}  // namespace

void add_next_tokens(Report& report, const Trace& trace, const Tokenizer* tokenizer, int k) {
  if (trace.model.objective == Objective::masked_token) return add_masked_tokens(report, trace, tokenizer, k);
  const bool picture = trace.model.objective == Objective::image_class;
  auto& rows = report.table(picture ? "classes" : "next", {only_in(Form::json, "id"),
                                                           {"label", prediction_words(trace.model.objective).token},
                                                           {"probability", "probability", "{:.4f}"},
                                                           {"logit", "logit", "{:.2f}"},
                                                           for_people("id")});
  if (!trace.logits.defined()) return;
  for (const NextToken& next : top_next(trace, k))
    rows.add({next.id, label_in(tokenizer, trace, next.id), next.probability, next.logit, next.id});
}

std::string loss_text(const Trace& trace) {
  const double loss = mean_loss(trace);
  if (std::isnan(loss)) return "";
  return fmt::format("loss {:.4f} nats per {}token, perplexity {:.2f} (uniform over the vocabulary: {:.4f}, {})", loss,
                     trace.model.objective == Objective::masked_token ? "masked " : "", std::exp(loss),
                     std::log(static_cast<double>(trace.model.dims.vocab)), trace.model.dims.vocab);
}

std::vector<Column> by_head(std::vector<Column> rest) {
  rest.insert(rest.begin(), {for_people("head"), only_in(Form::scripts, "layer"), only_in(Form::scripts, "head")});
  return rest;
}

void add_heads(Report& report, const std::vector<HeadReport>& heads, const Trace& trace,
               const std::vector<HeadColumn>& columns, bool with_chance) {
  std::vector<Column> titles;
  for (const HeadColumn& each : columns) {
    titles.push_back(only_in(Form::text | Form::csv, {each.id, each.id, "{:.3f}"}));
    if (with_chance) titles.push_back(only_in(Form::csv, each.id + "_chance"));
  }
  for (const char* id : {"values", "chance", "classes", "nearest"}) titles.push_back(only_in(Form::json, id));
  titles.push_back(for_people("class score (chance, rows of evidence, how sure)", "", Column::Align::left));
  auto& rows = report.table("heads", by_head(std::move(titles)));
  const TextMarks text = TextMarks::of(trace.tokens);
  for (const HeadReport& head : heads) {
    std::vector<Cell> row{to_string(head.map->id()), head.map->layer(), head.map->head()};
    Cell values = Cell::object(), chances = Cell::object();
    for (const HeadColumn& each : columns) {
      row.push_back(values[each.id] = each.value({*head.map, text}));
      if (with_chance) row.push_back(chances[each.id] = each.chance({*head.map, text}));
    }
    std::vector<std::string> verdicts;
    for (const HeadVerdict& verdict : head.verdicts) verdicts.push_back(verdict_text(verdict));
    if (head.nearest) verdicts.push_back(verdict_text(*head.nearest));
    row.insert(row.end(),
               {values, chances, verdicts_json(head.verdicts, trace, head.map->place().offset),
                head.nearest ? verdicts_json({*head.nearest}, trace, head.map->place().offset).front() : Cell(),
                fmt::format("{}", fmt::join(verdicts, ", "))});
    rows.add(std::move(row));
  }
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

Cell tokens_json(const std::vector<Token>& tokens) {
  Cell out = Cell::array();
  for (const Token& token : tokens) {
    Cell item{{"id", token.id}, {"label", token.label}};
    if (token.begin >= 0) {
      item["begin"] = token.begin;
      item["end"] = token.end;
    }
    out.push_back(item);
  }
  return out;
}

Cell model_json(const ModelInfo& model) {
  Cell out{{"name", model.name},
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
  if (model.dims.state_heads > 0) out["state_heads"] = model.dims.state_heads;
  for (const Mixer mixer : model.dims.mixers) out["mixers"].push_back(name_in(mixer_names, mixer));
  for (const LayerWidths& each : model.dims.widths)
    out["widths"].push_back(Cell{{"kv_heads", each.kv_heads}, {"d_head", each.d_head}, {"d_mlp", each.d_mlp}});
  if (model.stack != Stack::only) out["stack"] = name_in(stack_names, model.stack);
  return out;
}

}  // namespace headscope::cli
