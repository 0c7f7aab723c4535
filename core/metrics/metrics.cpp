#include <algorithm>
#include <cmath>
#include <string>

#include "core/base/error.h"
#include "core/base/nth.h"
#include "core/base/special_values.h"
#include "core/base/words.h"
#include "core/metrics/even_head.h"
#include "core/metrics/mass.h"
#include "core/metrics/metric.h"
#include "core/metrics/text_metrics.h"

namespace headscope {

namespace {

constexpr Index sink_keys = 4;     // "first k" tokens
constexpr Index local_window = 4;  // tokens on each side that count as near

/// A mean that leaves out what has no value; NaN when nothing has one.
struct Mean {
  double sum = 0;
  Index count = 0;
  void add(double value) {
    if (std::isnan(value)) return;
    sum += value;
    ++count;
  }
  double value() const { return count > 0 ? sum / static_cast<double>(count) : nan; }
};

template <class F>
double mean_over_rows(const MetricInput& in, F&& of_row) {
  Mean mean;
  for (Index query = 0; query < in.map.n_query(); ++query) mean.add(of_row(query));
  return mean.value();
}

double at(const std::vector<float>& values, Index i) {
  return static_cast<double>(nth(values, i));
}

Index position(const MetricInput& in, Index query) {
  return in.map.place().offset + query;
}

// --- spread ---------------------------------------------------------------------------------------------------------

double entropy(const MetricInput& in) {
  return mean_over_rows(in, [&](Index query) { return at(in.map.stats().entropy, query); });
}

double entropy_normalized(const MetricInput& in) {
  return mean_over_rows(in, [&](Index query) {
    const Index visible = visible_count(in.map, query);
    return visible > 1 ? at(in.map.stats().entropy, query) / std::log(static_cast<double>(visible)) : nan;
  });
}

double entropy_without_sink(const MetricInput& in) {
  return mean_over_rows(in, [&](Index query) { return at(in.map.stats().entropy_without_first, query); });
}

double effective_tokens(const MetricInput& in) {
  return mean_over_rows(in, [&](Index query) { return std::exp(at(in.map.stats().entropy, query)); });
}

double max_weight(const MetricInput& in) {
  return mean_over_rows(in, [&](Index query) { return at(in.map.stats().max_weight, query); });
}

// --- sinks ----------------------------------------------------------------------------------------------------------

/// The first query that sees more than the `keys` first keys themselves. In another text there is none before it.
Index first_beyond(const MetricInput& in, Index keys) {
  return in.map.place().between_texts ? 0 : std::clamp<Index>(keys - in.map.place().offset, 0, in.map.n_query());
}

double sink(const MetricInput& in) {
  const Index first = first_beyond(in, 1);
  return mean_over_rows(in, [&](Index query) { return query >= first ? at(in.map.stats().first, query) : nan; });
}

KeysOfRow sink_cells(const MetricInput& in) {
  return [first = first_beyond(in, 1)](Index query, std::vector<Index>& keys) {
    if (query >= first) keys.push_back(0);
  };
}

double sink_first_k(const MetricInput& in) {
  const Index first = first_beyond(in, sink_keys);
  const Index keys = std::min(sink_keys, in.map.n_key());
  const Tensor weights = in.map.tile({first, in.map.n_query()}, {0, keys});
  Mean mean;
  for (Index row = 0; row < weights.dim(0); ++row) {
    double sum = 0;
    for (Index key = 0; key < keys; ++key) sum += static_cast<double>(weights.at(row, key));
    mean.add(sum);
  }
  return mean.value();
}

KeysOfRow sink_first_k_cells(const MetricInput& in) {
  return [first = first_beyond(in, sink_keys), n_key = in.map.n_key()](Index query, std::vector<Index>& keys) {
    if (query < first) return;
    for (Index key = 0; key < std::min(sink_keys, n_key); ++key) keys.push_back(key);
  };
}

// --- distance -------------------------------------------------------------------------------------------------------

double mean_distance(const MetricInput& in) {
  const std::vector<double>& mass = in.map.stats().distance_mass;
  const Index zero = in.map.n_key() - 1 - in.map.place().offset;  // the entry of distance 0
  double sum = 0;
  for (std::size_t entry = 0; entry < mass.size(); ++entry)
    sum += mass[entry] * static_cast<double>(std::abs(static_cast<Index>(entry) - zero));
  return in.map.n_query() > 0 ? sum / static_cast<double>(in.map.n_query()) : nan;
}

double self_attention(const MetricInput& in) {
  return weight_at_distance(in.map, 0);
}
double previous_token(const MetricInput& in) {
  return weight_at_distance(in.map, 1);
}
double fixed_offset(const MetricInput& in) {
  return best_offset(in.map).weight;
}

Index offsets_tried(const MetricInput& in) {
  return best_offset(in.map).tried;
}

double fixed_offset_at(const MetricInput& in) {
  const BestOffset best = best_offset(in.map);
  return std::isnan(best.weight) ? nan : static_cast<double>(best.distance);
}

KeysOfRow cells_at_distance(const MetricInput& in, Index distance) {
  const Index shift = in.map.place().offset - distance, n_key = in.map.n_key();
  return [shift, n_key](Index query, std::vector<Index>& keys) {
    if (query + shift >= 0 && query + shift < n_key) keys.push_back(query + shift);
  };
}

KeysOfRow self_cells(const MetricInput& in) {
  return cells_at_distance(in, 0);
}
KeysOfRow previous_cells(const MetricInput& in) {
  return cells_at_distance(in, 1);
}
KeysOfRow next_cells(const MetricInput& in) {
  return cells_at_distance(in, -1);
}
KeysOfRow offset_cells(const MetricInput& in) {
  return cells_at_distance(in, best_offset(in.map).distance);
}

KeyRange window(const MetricInput& in, Index query) {
  const Index centre = position(in, query);
  const Index begin = std::clamp<Index>(centre - local_window, 0, in.map.n_key());
  return {begin, std::clamp<Index>(centre + local_window + 1, begin, in.map.n_key())};
}

bool sees_beyond_window(const MetricInput& in, Index query) {
  const KeyRange visible = visible_range(in.map, query), near = window(in, query);
  return visible.size() > 0 && (visible.begin < near.begin || visible.end > near.end);
}

// The sums by distance run over all rows; rows that see nothing beyond the window say nothing and are taken out again.
double local(const MetricInput& in) {
  const AttentionMap& map = in.map;
  std::vector<Index> trivial;
  for (Index query = 0; query < map.n_query(); ++query)
    if (!sees_beyond_window(in, query)) trivial.push_back(query);
  const Index rows = map.n_query() - static_cast<Index>(trivial.size());
  if (rows == 0) return nan;
  double sum = 0;
  for (Index distance = -local_window; distance <= local_window; ++distance)
    if (const Index count = rows_at_distance(map, distance); count > 0)
      sum += weight_at_distance(map, distance) * static_cast<double>(count);
  for (const Index query : trivial) {
    const Tensor weights = map.tile({query, query + 1}, window(in, query));
    for (Index i = 0; i < weights.dim(1); ++i) sum -= static_cast<double>(weights.at(0, i));
  }
  return std::max(0.0, sum) / static_cast<double>(rows);
}

KeysOfRow local_cells(const MetricInput& in) {
  return [in](Index query, std::vector<Index>& keys) {
    if (!sees_beyond_window(in, query)) return;
    const KeyRange near = window(in, query);
    for (Index key = near.begin; key < near.end; ++key) keys.push_back(key);
  };
}

// A decoder sees none of these cells: no evidence, not none of its weight.
double next_token(const MetricInput& in) {
  Index rows = 0;
  for (Index query = 0; query < in.map.n_query(); ++query)
    rows += position(in, query) + 1 < in.map.n_key() && !in.map.masked(query, position(in, query) + 1);
  return rows > 0 ? weight_at_distance(in.map, -1) * static_cast<double>(rows_at_distance(in.map, -1)) /
                        static_cast<double>(rows)
                  : nan;
}

// --- repeated tokens ------------------------------------------------------------------------------------------------

std::span<const std::int32_t> links_of(const TokenLinks::List& list, Index row) {
  return row < list.rows() ? list.row(static_cast<int>(row)) : std::span<const std::int32_t>{};
}

// `summed` is what the softmax pass collected; maps made without links (opened, imported) are read row by row.
double linked_weight(const MetricInput& in, const TokenLinks::List& list, const std::vector<float>& summed) {
  std::vector<float> row(summed.empty() ? static_cast<std::size_t>(in.map.n_key()) : 0);
  return mean_over_rows(in, [&](Index query) {
    const auto links = links_of(list, position(in, query));
    if (links.empty()) return nan;
    if (!summed.empty()) return at(summed, query);
    in.map.row(query, row);
    double sum = 0;
    for (const std::int32_t key : links)
      if (key < in.map.n_key()) sum += static_cast<double>(nth(row, key));
    return sum;
  });
}

double duplicate_token(const MetricInput& in) {
  return linked_weight(in, in.text.links.duplicate, in.map.stats().duplicate);
}

double prefix_matching(const MetricInput& in) {
  return linked_weight(in, in.text.links.induction, in.map.stats().induction);
}

KeysOfRow linked_cells(const MetricInput& in, const TokenLinks::List& list) {
  const Index offset = in.map.place().offset, n_key = in.map.n_key();
  return [&list, offset, n_key](Index query, std::vector<Index>& keys) {
    for (const std::int32_t key : links_of(list, offset + query))
      if (key < n_key) keys.push_back(key);
  };
}

KeysOfRow duplicate_cells(const MetricInput& in) {
  return linked_cells(in, in.text.links.duplicate);
}
KeysOfRow induction_cells(const MetricInput& in) {
  return linked_cells(in, in.text.links.induction);
}

// --- mass -----------------------------------------------------------------------------------------------------------

double row_mass_mean(const MetricInput& in) {
  double sum = 0;
  for (const double mass : column_mass(in.map)) sum += mass;
  return in.map.n_query() > 0 ? sum / static_cast<double>(in.map.n_query()) : nan;
}

Index top_column(const MetricInput& in) {
  const std::vector<double>& mass = column_mass(in.map);
  return std::max_element(mass.begin(), mass.end()) - mass.begin();
}

double column_mass_top(const MetricInput& in) {
  if (in.map.n_query() == 0 || column_mass(in.map).empty()) return nan;
  return nth(column_mass(in.map), top_column(in)) / static_cast<double>(in.map.n_query());
}

KeysOfRow top_column_cells(const MetricInput& in) {
  const Index key = top_column(in);
  return [key](Index, std::vector<Index>& keys) { keys.push_back(key); };
}

Index columns_tried(const MetricInput& in) {
  return in.map.n_key();
}

KeysOfRow whole_row(const MetricInput&) {
  return {};
}

// --------------------------------------------------------------------------------------------------------------------

constexpr std::string_view clark = "Clark et al., What Does BERT Look At?, 2019";
constexpr std::string_view xiao = "Xiao et al., Efficient Streaming Language Models with Attention Sinks, 2023";
constexpr std::string_view olsson = "Olsson et al., In-context Learning and Induction Heads, 2022";
constexpr std::string_view vig = "Vig & Belinkov, Analyzing the Structure of Attention, 2019";
constexpr std::string_view correia = "Correia et al., Adaptively Sparse Transformers, 2019";

double no_chance(const MetricInput&) {
  return nan;
}

/// Every formula's chance level is the formula itself on the head that spreads evenly.
template <double (*Value)(const MetricInput&)>
double even(const MetricInput& in) {
  return Value({even_head(in.map, in.text.links), in.text});
}

/// A formula of probabilities says nothing about a map of other weights.
template <double (*Value)(const MetricInput&)>
double of_probabilities(const MetricInput& in) {
  return has_probabilities(in.map) ? Value(in) : nan;
}

template <double (*Value)(const MetricInput&)>
constexpr Metric row(std::string_view id, std::string_view title, std::string_view unit, double high,
                     std::string_view formula, std::string_view source,
                     KeysOfRow (*cells)(const MetricInput&) = whole_row,
                     Index (*best_of)(const MetricInput&) = nullptr) {
  return {id,          title, unit,  0,     high,   formula, source, of_probabilities<Value>,
          even<Value>, cells, false, false, best_of};
}

/// A formula that compares places says nothing about queries and keys of two texts; nor does chance.
template <double (*Value)(const MetricInput&)>
double of_one_text(const MetricInput& in) {
  return in.map.place().between_texts ? nan : Value(in);
}

template <double (*Value)(const MetricInput&)>
constexpr Metric row_of_one_text(std::string_view id, std::string_view title, std::string_view unit, double high,
                                 std::string_view formula, std::string_view source,
                                 KeysOfRow (*cells)(const MetricInput&) = whole_row,
                                 Index (*best_of)(const MetricInput&) = nullptr) {
  Metric metric = row<of_one_text<Value>>(id, title, unit, high, formula, source, cells, best_of);
  metric.one_text = true;
  return metric;
}

constexpr Metric on_columns(Metric metric, std::span<const std::int32_t> (*columns)(const MetricInput&)) {
  metric.columns = columns;
  return metric;
}

template <WordRelation Relation>
constexpr Metric row_of_relation(std::string_view id, std::string_view title, std::string_view formula) {
  Metric metric = row_of_one_text<related_word<Relation>>(id, title, "", 1, formula, clark, related_cells<Relation>);
  metric.english = true;
  return metric;
}

template <double (*Value)(const MetricInput&)>
constexpr Metric row_of_any_weights(std::string_view id, std::string_view title, double high,
                                    std::string_view formula) {
  return {id, title, "", -infinity, high, formula, "", Value, even<Value>, whole_row, true};
}

// Sums written Σ_k run over the keys a query sees, means over all query rows unless the formula says which.
constexpr Metric table[] = {
    row<entropy>("entropy", to_say("Entropy"), to_say("nats"), infinity, to_say("mean over queries of −Σ_k p ln p"),
                 clark),
    row<entropy_normalized>("entropy_normalized", to_say("Entropy, share of the possible"), "", 1,
                            to_say("mean of (−Σ_k p ln p) / ln(visible keys) over queries that see at least two keys"),
                            clark),
    row<entropy_without_sink>(
        "entropy_without_sink", to_say("Entropy without the first token"), to_say("nats"), infinity,
        to_say("entropy of rows renormalised without key 0, over queries with weight elsewhere"), xiao),
    row<effective_tokens>("effective_tokens", to_say("Effective tokens"), to_say("tokens"), infinity,
                          to_say("mean over queries of e^entropy"), ""),
    row<max_weight>("max_weight", to_say("Largest weight"), "", 1, to_say("mean over queries of max_k p"), ""),
    row<sink>("sink", to_say("Sink: first token"), "", 1,
              to_say("mean of p(key 0) over queries 1… (between two texts over all)"), xiao, sink_cells),
    row<sink_first_k>("sink_first_k", to_say("Sink: first 4 tokens"), "", 1,
                      to_say("mean of Σ p(keys 0…3) over queries 4… (between two texts over all)"), xiao,
                      sink_first_k_cells),
    row_of_one_text<mean_distance>("mean_distance", to_say("Mean distance"), to_say("tokens"), infinity,
                                   to_say("mean over queries of Σ_k p |query − key|"), vig),
    row_of_one_text<self_attention>("self_attention", to_say("Self"), "", 1, to_say("mean of p(key = query)"), clark,
                                    self_cells),
    row_of_one_text<previous_token>("previous_token", to_say("Previous token"), "", 1,
                                    to_say("mean of p(key = query − 1) over queries 1…"), clark, previous_cells),
    row_of_one_text<next_token>("next_token", to_say("Next token"), "", 1,
                                to_say("mean of p(key = query + 1) over queries that see that key: encoders"), clark,
                                next_cells),
    row_of_one_text<fixed_offset>("fixed_offset", to_say("Fixed offset"), "", 1,
                                  to_say("largest mean of p(key = query − d) over distances d other than −1, 0 and 1 "
                                         "that at least half of the queries see"),
                                  clark, offset_cells, offsets_tried),
    {"fixed_offset_at", to_say("Fixed offset: distance"), to_say("tokens"), -infinity, infinity,
     to_say("the d whose mean weight is largest"), clark, of_one_text<fixed_offset_at>, no_chance, offset_cells, true,
     true},
    row_of_one_text<local>("local", to_say("Local"), "", 1,
                           to_say("mean of Σ p(|query − key| ≤ 4) over queries that see keys farther away"), vig,
                           local_cells),
    row_of_one_text<duplicate_token>(
        "duplicate_token", to_say("Duplicate token"), "", 1,
        to_say("mean of Σ p(earlier keys with the query's token) over queries that have any"),
        "Wang et al., Interpretability in the Wild, 2022", duplicate_cells),
    row_of_one_text<prefix_matching>(
        "prefix_matching", to_say("Prefix matching (induction)"), "", 1,
        to_say("mean of Σ p(keys right after earlier occurrences of the query's token) over queries that have any"),
        olsson, induction_cells),
    on_columns(
        row<separator>("separator", to_say("Separators"), "", 1,
                       to_say("mean of Σ p(keys that end a text or part two: [SEP], </s> …) over queries that see any"),
                       clark, separator_cells),
        separator_columns),
    on_columns(row<punctuation>("punctuation", to_say("Punctuation"), "", 1,
                                to_say("mean of Σ p(punctuation) over queries that see any"), clark, punctuation_cells),
               punctuation_columns),
    row_of_relation<WordRelation::subject>(
        "verb_to_subject", to_say("Verb → subject"),
        to_say("mean of Σ p(subject) over verbs whose subject the rules for English words tell")),
    row_of_relation<WordRelation::determiner>("noun_to_determiner", to_say("Noun → determiner"),
                                              to_say("mean of Σ p(its article or the like) over nouns that have one")),
    row_of_relation<WordRelation::adjective>(
        "adjective_to_noun", to_say("Adjective → noun"),
        to_say("mean of Σ p(its noun, which stands ahead) over adjectives before nouns: "
               "encoders")),
    row_of_relation<WordRelation::preposition_object>(
        "preposition_to_noun", to_say("Preposition → noun"),
        to_say("mean of Σ p(its noun, which stands ahead) over prepositions: "
               "encoders")),
    row_of_relation<WordRelation::object_preposition>("noun_to_preposition", to_say("Noun → preposition"),
                                                      to_say("mean of Σ p(its preposition) over nouns behind one")),
    row_of_relation<WordRelation::object>("object_to_verb", to_say("Object → verb"),
                                          to_say("mean of Σ p(its verb) over nouns right behind a verb")),
    row_of_relation<WordRelation::antecedent>(
        "pronoun_to_antecedent", to_say("Pronoun → whom it means"),
        to_say("mean of Σ p(earlier mentions of the person of that sex named last) over "
               "he, him, his, she, her")),
    on_columns(row_of_one_text<rare_words>(
                   "rare_words", to_say("Rare words"), "", 1,
                   to_say("mean of Σ p(tokens of words that stand once in this text, its first token apart) over "
                          "queries that see any"),
                   correia, rare_cells),
               rare_columns),
    row_of_one_text<own_sentence>(
        "own_sentence", to_say("Own sentence"), "", 1,
        to_say("mean of Σ p(keys of the query's sentence) over queries that see other sentences"), correia,
        sentence_cells),
    row_of_any_weights<row_mass_mean>("row_mass", to_say("Row mass"), infinity,
                                      to_say("mean over queries of Σ_k weight; 1 for probabilities")),
    row<column_mass_top>("column_mass", to_say("Most attended token"), "", 1,
                         to_say("max over keys of Σ_q p / number of queries"), "", top_column_cells, columns_tried),
};

}  // namespace

bool has_probabilities(const AttentionMap& map) {
  return map.place().kind == MapKind::probability || map.place().kind == MapKind::sparse;
}

std::string why_silent(const Metric& metric, const AttentionMap& map) {
  if (metric.one_text && map.place().between_texts)
    return say("{} compares places within one text; queries and keys of this map are of two.", said_view(metric.title));
  if (!metric.any_weights && !has_probabilities(map))
    return say("{} takes rows for probabilities, which the weights of this map are not.", said_view(metric.title));
  return "";
}

std::span<const Metric> metrics() {
  return table;
}

const Metric& metric(std::string_view id) {
  std::string known;
  for (const Metric& entry : table) {
    if (entry.id == id) return entry;
    known += (known.empty() ? "" : ", ") + std::string(entry.id);
  }
  throw Error("metric", "one of " + known, "\"" + std::string(id) + "\"");
}

std::vector<double> evaluate(const Metric& metric, const Trace& trace) {
  const TextMarks text = TextMarks::of(trace.tokens);
  std::vector<double> values;
  for (const AttentionMap& map : trace.maps) values.push_back(map.n_query() > 0 ? metric.value({map, text}) : nan);
  return values;
}

}  // namespace headscope
