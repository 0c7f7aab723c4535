#include "core/lesson/run_terms.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "core/analysis/edit_probe.h"
#include "core/base/error.h"
#include "core/base/excerpt.h"
#include "core/base/median.h"
#include "core/base/nearest_names.h"
#include "core/base/nth.h"
#include "core/edits/ablate_edit.h"
#include "core/lesson/given.h"
#include "core/metrics/even_head.h"
#include "core/metrics/head_class.h"
#include "core/metrics/next_token.h"
#include "core/run/mechanism_input.h"
#include "core/trace/model_heads.h"

namespace headscope {

using jinja::Arguments;
using jinja::Callable;
using jinja::List;
using jinja::Members;
using jinja::Value;

LessonRun::LessonRun(LoadedModel model, RunRequest request, Stack stack, Backend& backend, std::stop_token stop)
    : model_(std::move(model)), request_(std::move(request)), stack_(stack), backend_(backend), stop_(std::move(stop)) {
  request_.capture = {};
  request_.capture.maps = MapStorage::factored;
  request_.capture.all_logits = true;
}

const Trace& LessonRun::whole() {
  if (!whole_) whole_ = run(model_, request_, ctx());
  return *whole_;
}

const Trace& LessonRun::trace() {
  if (const Trace* part = whole().part(stack_)) return *part;
  throw Error(whole().model.name, "a model with that stack", std::string(name_in(stack_names, stack_)));
}

const Tensor& LessonRun::site(Site site) {
  if (const auto known = sites_.find(site); known != sites_.end()) return known->second;
  RunRequest recorded = request_;
  recorded.capture.maps = MapStorage::none;
  recorded.capture.sites = {site.kind};
  const auto found = run(model_, recorded, ctx());
  const Trace* const part = found->part(stack_);
  const auto at = part ? part->sites.find(site) : std::map<Site, Tensor>::const_iterator{};
  if (!part || at == part->sites.end()) throw Error(name(site), "a site of the model", "none");
  return sites_[site] = at->second;
}

const Trace& LessonRun::recorded(const std::set<SiteKind>& sites) {
  auto& known = recorded_[sites];
  if (!known) {
    RunRequest wanted = request_;
    wanted.capture.sites = sites;
    known = run(model_, wanted, ctx());
  }
  if (const Trace* part = known->part(stack_)) return *part;
  throw Error(known->model.name, "a model with that stack", std::string(name_in(stack_names, stack_)));
}

const HeadTable& LessonRun::table() {
  if (!table_) table_ = head_table(trace());
  return *table_;
}

std::shared_ptr<LessonRun> LessonRun::other(const std::string& key, const std::function<void(RunRequest&)>& change) {
  auto& known = others_[key];
  if (!known) {
    RunRequest request = request_;
    change(request);
    known = std::make_shared<LessonRun>(model_, std::move(request), stack_, backend_, stop_);
  }
  return known;
}

std::shared_ptr<LessonRun> LessonRun::with(std::vector<Intervention> edits) {
  std::string key = "edits\n";
  for (const Intervention& edit : edits) key += describe(edit) + "\n";
  return other(key, [&](RunRequest& request) { request.edits = std::move(edits); });
}

std::shared_ptr<LessonRun> LessonRun::continued(const std::string& text) {
  return other("text\n" + text, [&](RunRequest& request) { request.text += text; });
}

std::string LessonRun::reads(const Token& token) const {
  if (token.bytes.empty()) return token.label;
  const auto first = token.bytes.find_first_not_of(' ');
  return first == std::string::npos ? token.label : token.bytes.substr(first);
}

Index LessonRun::position(const Value& named, const std::vector<Token>& tokens, const std::string& where) {
  const auto count = static_cast<Index>(tokens.size());
  if (named.whole() && !named.is<bool>()) {
    const Index at = named.integer() < 0 ? count + named.integer() : named.integer();
    if (at < 0 || at >= count)
      throw Error(where, fmt::format("a position from 0 to {}, or from the end from −1 on", count - 1),
                  std::to_string(named.integer()));
    return at;
  }
  if (!named.text()) throw Error(where, "a position, or the token that stands there", named.kind());
  std::string text = *named.text();
  std::size_t which = 0;
  if (const auto sharp = text.rfind('#'); sharp != std::string::npos && sharp > 0 && sharp + 1 < text.size()) {
    const auto [end, error] = std::from_chars(text.data() + sharp + 1, text.data() + text.size(), which);
    if (error == std::errc() && end == text.data() + text.size() && which > 0)
      text.resize(sharp);
    else
      which = 0;
  }
  std::vector<Index> found;
  for (Index i = 0; i < count; ++i)
    if (const Token& token = nth(tokens, i); reads(token) == text || token.label == text) found.push_back(i);
  if (which > 0 ? which <= found.size() : found.size() == 1) return found[which > 0 ? which - 1 : 0];
  if (found.empty()) {
    std::vector<std::string> names;
    for (const Token& token : tokens) names.push_back(reads(token));
    throw Error(where, "a token of the text", "\"" + excerpt(text, 40) + "\"", nearest_names_hint(text, names));
  }
  throw Error(where, fmt::format("a token that stands there once, or which one: \"{}#1\"", text),
              fmt::format("{} of \"{}\"", found.size(), excerpt(*named.text(), 40)));
}

HeadId LessonRun::head(const Value& named, const std::string& where) {
  const auto head = named.text() ? parse_head_id(*named.text()) : std::nullopt;
  const ModelDims& dims = trace().model.dims;
  if (!head || !dims.has_head(head->layer, head->head))
    throw Error(where,
                fmt::format("a head from \"0.0\" to \"{}.{}\"", dims.layers - 1, dims.heads_of(dims.layers - 1) - 1),
                named.text() ? "\"" + excerpt(*named.text(), 40) + "\"" : named.kind());
  return *head;
}

std::int32_t LessonRun::token(const std::string& text, const std::string& where) {
  try {
    return answer_token(model_, " " + text, where);
  } catch (const Error&) {
    return answer_token(model_, text, where);
  }
}

double LessonRun::cost(HeadId head) {
  const ModelDims& dims = trace().model.dims;
  if (costs_.empty()) {
    EditProbe probe(model_, request_, true, ctx());
    const NextToken answer = most_probable(*probe.before());
    const Index asked = answer_position(*probe.before()).value_or(0);
    for (const auto& [layer, each] : every_head(dims)) {
      const HeadTarget target{.layer = layer, .head = each, .stack = stack_};
      const auto after = probe.run({{target, Ablate{Ablate::By::mean}}}, ctx());
      const Tensor row = after->logits.select(0, after->logits.dim(0) == 1 ? 0 : asked);
      costs_.push_back(next_token_loss(row, answer.id) + std::log(answer.probability));
    }
  }
  return nth(costs_, head_index(dims, head));
}

namespace {

double metric_of(LessonRun& run, HeadId head, const std::string& id, bool chance) {
  const Metric& which = metric(id);
  const auto column = static_cast<std::size_t>(&which - metrics().data());
  const Trace& trace = run.trace();
  for (std::size_t i = 0; i < trace.maps.size(); ++i)
    if (trace.maps[i].id() == head) return (chance ? run.table().chance : run.table().value)[i][column];
  return std::nan("");
}

/// The classes of every head that has one, the surest first.
HeadClasses classes_of(LessonRun& run, HeadId head) {
  const Trace& trace = run.trace();
  const TextMarks text = TextMarks::of(trace.tokens);
  const std::vector<HeadClasses> all = head_classes(trace, text, run.table(), default_class_rules());
  for (std::size_t i = 0; i < trace.maps.size(); ++i)
    if (trace.maps[i].id() == head) return all[i];
  return {};
}

/// The head for which `value` is largest, "L.H".
template <class F>
Value head_with_most(LessonRun& run, const std::string& where, F value) {
  std::optional<HeadId> best;
  double most = -std::numeric_limits<double>::infinity();
  for (const HeadId head : every_head(run.trace().model.dims))
    if (const double v = value(head); v > most) most = v, best = head;
  if (!best) throw Error(where, "a number for some head of this model", "none for any");
  return to_string(*best);
}

double probability(LessonRun& run, std::int32_t token, Index row) {
  return std::exp(-next_token_loss(run.whole().logits.select(0, run.whole().logits.dim(0) == 1 ? 0 : row), token));
}

const AttentionMap& with_factors(LessonRun& run, HeadId head, const std::string& where) {
  const AttentionMap& map = run.map(head);
  if (!map.is_factored())
    throw Error(where, "a head whose queries and keys are known", "one whose weights were edited");
  return map;
}

double dot(const AttentionMap& map, Index row, Index key) {
  double sum = 0;
  for (Index i = 0; i < map.q().dim(1); ++i)
    sum += static_cast<double>(map.q().at(row, i)) * static_cast<double>(map.k().at(key, i));
  return sum;
}

std::vector<Intervention> edits_in(const Arguments& a) {
  std::vector<Intervention> edits;
  for (std::size_t i = 0; i < a.given.size(); ++i) {
    if (!a.given[i].text()) throw Error(a.where, "edits, such as \"0.2: ablate zero\"", a.given[i].kind());
    edits.push_back(parse_intervention(*a.given[i].text(), a.where));
  }
  return edits;
}

constexpr LessonTerm run_terms[] = {
    {"tokens()", "how many tokens the text has",
     [](LessonRun& run, const Arguments&) -> Value { return static_cast<std::int64_t>(run.trace().queries().size()); }},
    {"token(position)", "what stands there",
     [](LessonRun& run, const Arguments& a) -> Value {
       return run.reads(nth(run.trace().queries(), Given(run, a).row(0)));
     }},
    {"key_token(position)", "what stands there among what is looked at: of cross-attention the source",
     [](LessonRun& run, const Arguments& a) -> Value {
       return run.reads(nth(run.trace().tokens, Given(run, a).key(0)));
     }},
    {"position(token)", "where it stands, from 0",
     [](LessonRun& run, const Arguments& a) -> Value { return static_cast<std::int64_t>(Given(run, a).row(0)); }},
    {"layers()", "of the model",
     [](LessonRun& run, const Arguments&) -> Value { return std::int64_t{run.trace().model.dims.layers}; }},
    {"heads()", "of each layer",
     [](LessonRun& run, const Arguments&) -> Value { return std::int64_t{run.trace().model.dims.heads}; }},
    {"kv_heads()", "of each layer, as many as have keys and values of their own",
     [](LessonRun& run, const Arguments&) -> Value { return std::int64_t{run.trace().model.dims.kv_heads}; }},
    {"context()", "tokens that the model was trained to read at once",
     [](LessonRun& run, const Arguments&) -> Value { return std::int64_t{run.model().model->config().context}; }},
    {"width()", "numbers in the query of a head, d",
     [](LessonRun& run, const Arguments&) -> Value { return std::int64_t{run.model().model->config().dims.d_head}; }},
    {"weight(head, row, key)", "how much the head looks from row to key: the softmax's weight, 0 to 1",
     [](LessonRun& run, const Arguments& a) -> Value {
       const Given g(run, a);
       return static_cast<double>(run.map(g.head(0)).weight(g.row(1), g.key(2)));
     }},
    {"score(head, row, key)", "scale · q·k, what the softmax is taken of, before a bias",
     [](LessonRun& run, const Arguments& a) -> Value {
       const Given g(run, a);
       const AttentionMap& map = with_factors(run, g.head(0), a.where);
       return static_cast<double>(map.scale()) * dot(map, g.row(1), g.key(2));
     }},
    {"dot(head, row, key)", "q·k",
     [](LessonRun& run, const Arguments& a) -> Value {
       const Given g(run, a);
       return dot(with_factors(run, g.head(0), a.where), g.row(1), g.key(2));
     }},
    {"seen(head, row)", "how many keys the row may look at",
     [](LessonRun& run, const Arguments& a) -> Value {
       const Given g(run, a);
       return static_cast<std::int64_t>(visible_count(run.map(g.head(0)), g.row(1)));
     }},
    {"even(head, row)", "the weight of each key if the head spread its attention evenly: 1 ÷ seen",
     [](LessonRun& run, const Arguments& a) -> Value {
       const Given g(run, a);
       return 1.0 / static_cast<double>(visible_count(run.map(g.head(0)), g.row(1)));
     }},
    {"strongest(head, row)", "the position that the row looks at most",
     [](LessonRun& run, const Arguments& a) -> Value {
       const Given g(run, a);
       return std::int64_t{nth(run.map(g.head(0)).stats().max_key, g.row(1))};
     }},
    {"strongest_weight(head, row)", "its weight",
     [](LessonRun& run, const Arguments& a) -> Value {
       const Given g(run, a);
       return static_cast<double>(nth(run.map(g.head(0)).stats().max_weight, g.row(1)));
     }},
    {"entropy(head, row)", "of the row's weights, −Σ p ln p, nats",
     [](LessonRun& run, const Arguments& a) -> Value {
       const Given g(run, a);
       return static_cast<double>(nth(run.map(g.head(0)).stats().entropy, g.row(1)));
     }},
    {"metric(head, id)", "a metric of the head over all rows (headscope-cli metrics --list)",
     [](LessonRun& run, const Arguments& a) -> Value {
       const Given g(run, a);
       return metric_of(run, g.head(0), g.text(1, "id"), false);
     }},
    {"chance(head, id)", "what the metric would be of a head that spreads its weight evenly",
     [](LessonRun& run, const Arguments& a) -> Value {
       const Given g(run, a);
       return metric_of(run, g.head(0), g.text(1, "id"), true);
     }},
    {"head_with_most(metric)", "the head for which that metric is largest",
     [](LessonRun& run, const Arguments& a) -> Value {
       const std::string id = Given(run, a).text(0, "metric");
       return head_with_most(run, a.where, [&](HeadId head) { return metric_of(run, head, id, false); });
     }},
    {"class_of(head)", "the surest class of the head, \"\" where it has none",
     [](LessonRun& run, const Arguments& a) -> Value {
       const HeadClasses found = classes_of(run, Given(run, a).head(0));
       return found.met.empty() ? std::string() : found.met.front().rule->title;
     }},
    {"answer(row)", "the most probable next token after that row, or after the last",
     [](LessonRun& run, const Arguments& a) -> Value {
       const NextToken best = most_probable(run.whole(), static_cast<int>(Given(run, a).row_or_answer(0)));
       return run.model().tokenizer ? run.reads(run.model().tokenizer->token(best.id)) : fmt::format("#{}", best.id);
     }},
    {"answer_probability(row)", "its probability",
     [](LessonRun& run, const Arguments& a) -> Value {
       return most_probable(run.whole(), static_cast<int>(Given(run, a).row_or_answer(0))).probability;
     }},
    {"probability(token, row)", "of that next token, after that row or the last",
     [](LessonRun& run, const Arguments& a) -> Value {
       const Given g(run, a);
       return probability(run, run.token(g.text(0, "token"), a.where), g.row_or_answer(1));
     }},
    {"loss()", "mean −ln p of the text's tokens, nats",
     [](LessonRun& run, const Arguments&) -> Value { return mean_loss(run.whole()); }},
    {"cost(head)", "by how much −ln p of the answer rises when the head's output is replaced by its mean",
     [](LessonRun& run, const Arguments& a) -> Value { return run.cost(Given(run, a).head(0)); }},
    {"needed_head()", "the head that costs most",
     [](LessonRun& run, const Arguments& a) -> Value {
       return head_with_most(run, a.where, [&](HeadId head) { return run.cost(head); });
     }},
    {"edits()", "what the run is changed by, a list of texts: edits()|length",
     [](LessonRun& run, const Arguments&) -> Value {
       List all;
       for (const Intervention& edit : run.request().edits)
         if (edit.enabled) all.emplace_back(describe(edit));
       return all;
     }},
    {"under(edit, …)", "the same names of the run with these edits alone: under('0.2: ablate zero').answer()",
     [](LessonRun& run, const Arguments& a) -> Value { return lesson_names(run.with(edits_in(a))); }},
    {"continued(text)", "the same names of the run's text with this behind it: continued(' pies').loss()",
     [](LessonRun& run, const Arguments& a) -> Value {
       return lesson_names(run.continued(Given(run, a).text(0, "text")));
     }},
    {"mechanism(choice, on)",
     "names cell(step, row, column), output(row, column), fact(name), terms(step, row, column), output_error(): how "
     "far "
     "its output lies from softmax attention's, ‖O − O_softmax‖ ÷ ‖O_softmax‖",
     [](LessonRun& run, const Arguments& a) -> Value {
       const Given g(run, a);
       return mechanism_terms(run, {g.text(0, "choice"), g.text(1, "on")}, a.where);
     }},
    {"norm(site, layer, row)", "length of a vector of the pass: norm('resid_post', 2, 0)",
     [](LessonRun& run, const Arguments& a) -> Value {
       const Given g(run, a);
       const Tensor row = run.site(g.site(0)).select(0, g.row(2)).packed();
       double sum = 0;
       for (const float x : row.values()) sum += static_cast<double>(x) * static_cast<double>(x);
       return std::sqrt(sum);
     }},
    {"median_norm(site, layer)", "the middle one of these lengths, over all rows",
     [](LessonRun& run, const Arguments& a) -> Value {
       const Tensor& all = run.site(Given(run, a).site(0));
       std::vector<double> lengths;
       for (Index row = 0; row < all.dim(0); ++row) {
         double sum = 0;
         const Tensor vector = all.select(0, row).packed();
         for (const float x : vector.values()) sum += static_cast<double>(x) * static_cast<double>(x);
         lengths.push_back(std::sqrt(sum));
       }
       return median(lengths);
     }},
    {"largest(site, layer, row)", "its largest number, signs apart",
     [](LessonRun& run, const Arguments& a) -> Value {
       const Given g(run, a);
       double most = 0;
       const Tensor row = run.site(g.site(0)).select(0, g.row(2)).packed();
       for (const float x : row.values()) most = std::max(most, static_cast<double>(std::abs(x)));
       return most;
     }},
    {"cosine(site, layer, row, key)", "of the angle between the vectors of two positions",
     [](LessonRun& run, const Arguments& a) -> Value {
       const Given g(run, a);
       const Tensor& all = run.site(g.site(0));
       const Tensor x = all.select(0, g.row(2)).packed(), y = all.select(0, g.key(3)).packed();
       double xy = 0, xx = 0, yy = 0;
       for (Index i = 0; i < x.size(); ++i) {
         const double p = static_cast<double>(x.data()[i]), q = static_cast<double>(y.data()[i]);
         xy += p * q, xx += p * p, yy += q * q;
       }
       return xy / std::sqrt(xx * yy);
     }},
    {"pi()", "π", [](LessonRun&, const Arguments&) -> Value { return 3.14159265358979323846; }},
    {"cos(x)", "of an angle in radians",
     [](LessonRun& run, const Arguments& a) -> Value { return std::cos(Given(run, a).number(0, "x")); }},
    {"sin(x)", "likewise",
     [](LessonRun& run, const Arguments& a) -> Value { return std::sin(Given(run, a).number(0, "x")); }},
    {"exp(x)", "eˣ",
     [](LessonRun& run, const Arguments& a) -> Value { return std::exp(Given(run, a).number(0, "x")); }},
    {"ln(x)", "natural logarithm",
     [](LessonRun& run, const Arguments& a) -> Value { return std::log(Given(run, a).number(0, "x")); }},
    {"sqrt(x)", "√x",
     [](LessonRun& run, const Arguments& a) -> Value { return std::sqrt(Given(run, a).number(0, "x")); }},
};

}  // namespace

std::span<const LessonTerm> lesson_terms() {
  static const std::vector<LessonTerm> all = [] {
    std::vector<LessonTerm> out(std::begin(run_terms), std::end(run_terms));
    out.insert(out.end(), analysis_terms().begin(), analysis_terms().end());
    out.insert(out.end(), expert_terms().begin(), expert_terms().end());
    return out;
  }();
  return all;
}

Members lesson_names(const std::shared_ptr<LessonRun>& run, const LessonMechanism& mechanism) {
  Members names;
  for (const LessonTerm& term : lesson_terms())
    names.emplace_back(term.name(), Callable{[run, value = term.value](const Arguments& a) { return value(*run, a); }});
  if (!mechanism.choice.empty())
    for (auto& each : mechanism_terms(*run, mechanism, "mechanism")) names.push_back(std::move(each));
  return names;
}

}  // namespace headscope
