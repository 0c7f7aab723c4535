// Classes of heads that read words: the sums by hand on made-up maps, what distance explains, weak classes, and heads
// of the bundled models whose behaviour their cards name.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/base/random.h"
#include "core/metrics/head_class.h"
#include "core/run/run_request.h"
#include "core/train/language.h"
#include "tests/metrics/classes.h"
#include "tests/metrics/maps.h"
#include "tests/support/paths.h"
#include "tests/support/word_metrics.h"

namespace headscope::word_classes_test {

using namespace testing;
using doctest::Approx;

namespace {

/// Words with the space before them; "." is one of its own.
std::vector<Token> tokens_of(const std::vector<std::string>& words) {
  std::vector<Token> tokens;
  for (const std::string& word : words) {
    Token& token = tokens.emplace_back();
    token.bytes = token.label = (tokens.size() == 1 || word == "." ? "" : " ") + word;
    token.id = static_cast<std::int32_t>(std::ranges::find(words, word) - words.begin());
  }
  return tokens;
}

struct Read {
  std::vector<Token> tokens;
  TextMarks marks;
  AttentionMap map;
  Read(std::vector<Token> text, const Tensor& weights, std::shared_ptr<const AttentionRule> rule = causal_rule())
      : tokens(std::move(text)),
        marks(TextMarks::of(tokens)),
        map(AttentionMap::dense({}, weights, std::move(rule), stats_of_weights(weights, &marks.links, 0))) {}
  MetricInput input() const { return {map, marks}; }
  double value(std::string_view id) const { return metric(id).value(input()); }
  double chance(std::string_view id) const { return metric(id).chance(input()); }
};

// 0 The | 1 old | 2 wolf | 3 saw | 4 her | 5 dog
const std::vector<std::string> sentence{"The", "old", "wolf", "saw", "her", "dog"};
Read wolf() {
  return {tokens_of(sentence), rows_of({{1},
                                        {0.5f, 0.5f},
                                        {0.7f, 0.2f, 0.1f},
                                        {0.1f, 0.1f, 0.6f, 0.2f},
                                        {0.2f, 0.2f, 0.2f, 0.2f, 0.2f},
                                        {0.1f, 0.1f, 0.1f, 0.3f, 0.4f, 0}})};
}

/// Twenty sentences "the wolf saw", and a head whose verbs look at their subject with `link`, and all other rows at the
/// token right before with `before`; the rest is spread evenly.
Read herd(float link, float before) {
  std::vector<std::string> words;
  for (int i = 0; i < 20; ++i)
    for (const char* word : {"the", "wolf", "gladly", "sang", "."}) words.emplace_back(word);
  const std::vector<Token> tokens = tokens_of(words);
  const auto n = static_cast<Index>(tokens.size());
  Tensor weights = Tensor::zeros({n, n});
  for (Index i = 0; i < n; ++i) {
    const bool verb = i % 5 == 3;
    const Index key = i - 2;
    const float share = i < 2 ? 0 : verb ? link : before;
    for (Index j = 0; j <= i; ++j) weights.ref(i, j) = (1 - share) / static_cast<float>(i + 1);
    if (i >= 2) weights.ref(i, key) += share;
  }
  return {tokens, weights};
}

const HeadVerdict* verdict_of(const std::vector<HeadVerdict>& all, std::string_view id) {
  const auto found = std::ranges::find(all, id, [](const HeadVerdict& each) { return each.rule->id; });
  return found == all.end() ? nullptr : &*found;
}

}  // namespace

TEST_CASE("metrics of words, by hand: the weight on the words that belong to one another, and what chance gives") {
  const Read head = wolf();
  CHECK(head.value("verb_to_subject") == Approx(0.6));  // saw → wolf
  CHECK(head.chance("verb_to_subject") == Approx(1 / 4.0));
  CHECK(head.value("noun_to_determiner") == Approx((0.7 + 0.4) / 2));  // wolf → The, dog → her
  CHECK(head.chance("noun_to_determiner") == Approx((1 / 3.0 + 1 / 6.0) / 2));
  CHECK(head.value("object_to_verb") == Approx(0.3));  // dog → saw
  // An adjective's noun stands ahead: a head that looks back says nothing, and chance neither.
  CHECK(std::isnan(head.value("adjective_to_noun")));
  CHECK(std::isnan(head.chance("adjective_to_noun")));
  CHECK(std::isnan(head.value("pronoun_to_antecedent")));  // nobody is named
  // Every word stands once; the first token is left out: row i sees tokens 1 … i.
  CHECK(head.value("rare_words") == Approx((0.5 + 0.3 + 0.9 + 0.8 + 0.9) / 5));
  CHECK(head.chance("rare_words") == Approx((1 / 2.0 + 2 / 3.0 + 3 / 4.0 + 4 / 5.0 + 5 / 6.0) / 5));
  CHECK(std::isnan(head.value("own_sentence")));  // there is one alone
}

TEST_CASE("a sentence of one's own: rows of later sentences count, and no row of the first") {
  const Read head(tokens_of({"Go", ".", "Ben", "ran"}),
                  rows_of({{1}, {0.5f, 0.5f}, {0.2f, 0.2f, 0.6f}, {0.1f, 0.2f, 0.3f, 0.4f}}));
  CHECK(head.value("own_sentence") == Approx((0.6 + 0.7) / 2));
  CHECK(head.chance("own_sentence") == Approx((1 / 3.0 + 2 / 4.0) / 2));
}

TEST_CASE("links to what stands ahead, by hand, of a head that sees both ways") {
  // 0 The | 1 old | 2 wolf | 3 ran | 4 to | 5 the | 6 village | 7 . | 8 A
  Tensor weights = Tensor::zeros({9, 9});
  for (Index i = 0; i < 9; ++i)
    for (Index j = 0; j < 9; ++j) weights.ref(i, j) = 0.1f;
  weights.ref(1, 2) = 0.3f;  // old → wolf
  weights.ref(4, 6) = 0.7f;  // to → village
  weights.ref(6, 4) = 0.6f;  // and back
  const Read head(tokens_of({"The", "old", "wolf", "ran", "to", "the", "village", ".", "A"}), weights, full_rule());
  CHECK(head.value("adjective_to_noun") == Approx(0.3));
  CHECK(head.value("preposition_to_noun") == Approx(0.7));
  CHECK(head.value("noun_to_preposition") == Approx(0.6));
  for (const char* id : {"adjective_to_noun", "preposition_to_noun", "noun_to_preposition"})
    CHECK(head.chance(id) == Approx(1 / 9.0));
  // Two adjectives, one with a noun in two pieces, of which both count.
  std::vector<Token> tokens = tokens_of({"The", "old", "wolf", "saw", "a", "small", "vil", "lage", "."});
  tokens[7].bytes = "lage";
  Tensor two = Tensor::zeros({9, 9});
  two.ref(1, 2) = 0.5f;
  two.ref(5, 6) = 0.25f, two.ref(5, 7) = 0.5f;
  const Read pieces(tokens, two, full_rule());
  CHECK(pieces.value("adjective_to_noun") == Approx((0.5 + 0.75) / 2));
  CHECK(pieces.chance("adjective_to_noun") == Approx((1 / 9.0 + 2 / 9.0) / 2));
}

TEST_CASE("one sentence alone says nothing, special tokens around it or not") {
  std::vector<Token> tokens = tokens_of({"[BOS]", "The", "wolf", "ran", "."});
  tokens[0].bytes.clear();
  Tensor weights = Tensor::zeros({5, 5});
  for (Index i = 0; i < 5; ++i)
    for (Index j = 0; j <= i; ++j) weights.ref(i, j) = 1 / static_cast<float>(i + 1);
  CHECK(std::isnan(Read(tokens, weights).value("own_sentence")));
  // Nor does a picture, of which no patch has bytes: else each would be a sentence of its own.
  for (Token& token : tokens) token.bytes.clear();
  for (const char* id : {"own_sentence", "rare_words"}) {
    CHECK(std::isnan(Read(tokens, weights).value(id)));
    CHECK(std::isnan(Read(tokens, weights, full_rule()).value(id)));
  }
}

TEST_CASE("rows of a metric of whole columns are those of its cells, for masks with windows and holes") {
  Random random(8);
  constexpr Index n = 150;
  const std::vector<Token> tokens = english(n, random);
  const std::shared_ptr<const AttentionRule> rules[] = {causal_rule(), full_rule(), std::make_shared<Holes>()};
  for (const auto& rule : rules) {
    Tensor weights = Tensor::zeros({n, n});
    for (Index i = 0; i < n; ++i)
      for (Index j = 0; j < n; ++j)
        if (!masked(*rule, i, j, n)) weights.ref(i, j) = static_cast<float>(random.uniform() / static_cast<double>(n));
    const Read head(tokens, weights, rule);
    for (const char* id : {"separator", "punctuation", "rare_words"}) {
      CAPTURE(id);
      Metric cell_by_cell = metric(id);
      const bool of_columns = cell_by_cell.columns != nullptr;
      REQUIRE(of_columns);
      cell_by_cell.columns = nullptr;
      const RowEvidence found = row_evidence(head.input(), metric(id)),
                        truth = row_evidence(head.input(), cell_by_cell);
      CHECK(found.rows == truth.rows);
      CHECK(found.score == Approx(truth.score).epsilon(1e-5));
      CHECK(found.chance == Approx(truth.chance));
      CHECK(truth.rows > 10);
    }
    for (const std::string_view id : word_metrics) {
      CAPTURE(id);
      const double truth = by_definition(id, head.map, head.marks),
                   chance = by_definition(id, head.map, head.marks, true);
      CHECK((std::isnan(truth) ? std::isnan(head.value(id)) : head.value(id) == Approx(truth).epsilon(1e-5)));
      CHECK((std::isnan(chance) ? std::isnan(head.chance(id)) : head.chance(id) == Approx(chance).epsilon(1e-5)));
    }
  }
}

TEST_CASE("what distance explains is counted where it is asked for") {
  const Read head = herd(0.8f, 0);
  CHECK(row_evidence(head.input(), metric("verb_to_subject")).by_distance == 0);
  CHECK(row_evidence(head.input(), metric("verb_to_subject"), true).by_distance > 0);
}

TEST_CASE("a bound near 1 is not told, and what a weak class lacks is: rows, or sureness") {
  HeadVerdict verdict;
  verdict.rows = 14;
  for (const auto& [p, words] : {std::pair{1.0, "14 rows"},
                                 {0.6, "14 rows"},
                                 {0.05, "14 rows, p ≤ 1e-1"},
                                 {1e-12, "14 rows, p ≤ 1e-12"},
                                 {0.0, "14 rows, p ≤ 1e-30"},
                                 {std::numeric_limits<double>::quiet_NaN(), "14 rows"}}) {
    verdict.p = p;
    CHECK(sureness(verdict) == words);
  }
  const auto rule = std::ranges::find(default_class_rules(), "verb_to_subject", &ClassRule::id);
  verdict.rule = &*rule;
  verdict.weak = true;
  verdict.score = 0.9;
  verdict.chance = 0.1;
  verdict.margin = class_margin(*rule, 0.9, 0.1);
  verdict.p = 0.02;
  CHECK(beside_chance(verdict) == "weak: 9.0 × chance 0.100, 14 rows, p ≤ 1e-1: not sure enough");
  verdict.rows = 3;
  CHECK(beside_chance(verdict) == "weak: 9.0 × chance 0.100, 3 rows, p ≤ 1e-1: too few rows");
  verdict.score = 0.2, verdict.margin = class_margin(*rule, 0.2, 0.1);  // does not reach the threshold either way
  CHECK(beside_chance(verdict) == "weak: 2.0 × chance 0.100, 3 rows, p ≤ 1e-1");
}

TEST_CASE("a score beyond what its class allows is not near it") {
  const auto rules = parse_class_rules(R"({"classes": [{"id": "b", "title": "b", "metric": "sink", "at_least": 0.3,
      "below": 0.6, "color": "#000000"}]})",
                                       "test");
  Tensor weights = Tensor::zeros({6, 6});
  for (Index i = 0; i < 6; ++i) weights.ref(i, 0) = 1;
  const HeadClasses found = classes_of(Read(tokens_of(sentence), weights).input(), rules);
  CHECK(found.met.empty());
  CHECK_FALSE(found.nearest);
}

TEST_CASE("the classes of a trace are those of its heads one by one, and stop when asked to") {
  Backend backend(1);
  const LoadedModel loaded = load_model(source_dir() / "models/tiny-gpt2", backend);
  RunRequest request;
  request.text = "Anna saw the old wolf near the river. Then she ran to the house of the king. Anna sold him a cake.";
  const auto trace = run(loaded, request, Ctx{backend});
  const TextMarks text = TextMarks::of(trace->tokens);
  const HeadTable table = head_table(*trace, text);
  const auto all = head_classes(*trace, text, table, default_class_rules());
  REQUIRE(all.size() == trace->maps.size());
  const auto same = [](const HeadVerdict& a, const HeadVerdict& b) {
    CHECK(a.rule == b.rule);
    CHECK(a.score == b.score);
    CHECK(a.rows == b.rows);
    CHECK(a.evidence.size() == b.evidence.size());
  };
  int weak = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const MetricInput head{trace->maps[i], text};
    const HeadClasses alone = classes_of(head, default_class_rules());
    REQUIRE(all[i].met.size() == alone.met.size());
    for (std::size_t v = 0; v < alone.met.size(); ++v) same(all[i].met[v], alone.met[v]);
    REQUIRE(all[i].nearest.has_value() == alone.nearest.has_value());
    CHECK((all[i].met.empty() || !all[i].nearest));
    if (all[i].nearest) same(*all[i].nearest, *alone.nearest), ++weak;
  }
  MESSAGE(weak << " heads without class");
  std::stop_source stop;
  stop.request_stop();
  CHECK_THROWS_AS(head_classes(*trace, text, table, default_class_rules(), stop.get_token()), Cancelled);
  CHECK_THROWS_AS(head_table(*trace, text, stop.get_token()), Cancelled);
}

TEST_CASE("a head that always looks two back is no grammar head, one whose verbs alone do is") {
  const Read grammar = herd(0.8f, 0), habit = herd(0.8f, 0.8f);
  const auto found = classes_of(grammar.input(), default_class_rules()).met;
  const HeadVerdict* subject = verdict_of(found, "verb_to_subject");
  REQUIRE(subject);
  CHECK(subject == &found.front());
  CHECK(subject->rows == 20);
  CHECK(subject->score == Approx(grammar.value("verb_to_subject")));
  CHECK(subject->by_distance < 0.4 * subject->score);
  for (const Evidence& cell : subject->evidence) {
    CHECK(cell.query % 5 == 3);
    CHECK(cell.key == cell.query - 2);
  }
  CHECK(grammar.value("verb_to_subject") == Approx(habit.value("verb_to_subject")));
  const auto other = classes_of(habit.input(), default_class_rules()).met;
  CHECK_FALSE(verdict_of(other, "verb_to_subject"));
  CHECK(verdict_of(other, "fixed_offset"));
}

TEST_CASE("what distance explains is the mean weight of the other rows at that distance") {
  // Ten sentences of "the wolf sang ." hold ten links at distance 1; the others of the 39 rows have 0.2 there.
  std::vector<std::string> words;
  for (int i = 0; i < 10; ++i)
    for (const char* word : {"the", "wolf", "sang", "."}) words.emplace_back(word);
  const auto n = static_cast<Index>(words.size());
  Tensor weights = Tensor::zeros({n, n});
  weights.ref(0, 0) = 1;
  for (Index i = 1; i < n; ++i) {
    const float back = i % 4 == 2 ? 0.9f : 0.2f;
    weights.ref(i, i - 1) = back;
    weights.ref(i, i) = 1 - back;
  }
  const std::vector<ClassRule> rules = parse_class_rules(
      R"({"classes": [{"id": "v", "title": "V", "metric": "verb_to_subject", "at_least": 0.1, "times_distance": 1.5,
      "color": "#000000"}]})",
      "test");
  const Read head(tokens_of(words), weights);
  const auto found = classes_of(head.input(), rules).met;
  REQUIRE(found.size() == 1);
  CHECK(found[0].score == Approx(0.9));
  // 39 rows see the token before; 10 of them 0.9, 29 of them 0.2. Without one of the ten: (9 · 0.9 + 29 · 0.2) / 38.
  CHECK(found[0].by_distance == Approx((9 * 0.9 + 29 * 0.2) / 38));
  // 1.5 times that is the threshold, above 0.1 and what chance gives: rows 2, 6, … 38 see 3, 7, … 39 keys.
  CHECK(found[0].margin == Approx(0.9 * 38 / (1.5 * (9 * 0.9 + 29 * 0.2))));
}

TEST_CASE("a head without class is told by what it comes nearest to, as weak, with its ratio to chance") {
  const Read head = herd(0.1f, 0);
  CHECK(classes_of(head.input(), default_class_rules()).met.size() == 1);  // uniform
  auto rules = default_class_rules();
  std::erase_if(rules, [](const ClassRule& rule) { return rule.id == "uniform"; });
  const HeadClasses found = classes_of(head.input(), rules);
  CHECK(found.met.empty());
  const auto& weak = found.nearest;
  REQUIRE(weak);
  CHECK(weak->weak);
  CHECK(weak->rule->id == "verb_to_subject");
  CHECK(weak->score == Approx(head.value("verb_to_subject")));
  CHECK(weak->score > weak->chance);
  CHECK(beside_chance(*weak).starts_with("weak: "));
  CHECK(beside_chance(*weak).find(" × chance ") != std::string::npos);
  CHECK(weak->evidence.size() == 5);
}

TEST_CASE("what a text holds no cells of is not measurable, and named") {
  const std::string titles = not_measurable(wolf().input(), default_class_rules());
  CHECK(titles.find("pronoun → whom it means") != std::string::npos);
  CHECK(titles.find("adjective → noun") != std::string::npos);
  CHECK(titles.find("verb → subject") == std::string::npos);
  CHECK(titles.find("English") == std::string::npos);
  const Read other(tokens_of({"Der", "Wolf", "sah", "den", "Hund", "."}), Tensor::zeros({6, 6}));
  const std::string foreign = not_measurable(other.input(), default_class_rules());
  CHECK(foreign.find("links between words, which are told of English alone (verb → subject; noun → determiner") !=
        std::string::npos);
}

TEST_CASE("tiny-gpt2: on stories head 0.2 reads whom a pronoun means, as its card says, and 1.2 subjects of verbs") {
  Backend backend(1);
  const LoadedModel loaded = load_model(source_dir() / "models/tiny-gpt2", backend);
  Random random(11);
  std::vector<double> pronoun(16), subject(16);
  RowEvidence evidence;  // of head 0.2, all texts added up
  constexpr int stories = 12;
  for (int s = 0; s < stories; ++s) {
    RunRequest request;
    request.text = Language(Grammar::stories()).sample(random).text;
    request.text.resize(std::min<std::size_t>(request.text.size(), 600));
    const auto trace = run(loaded, request, Ctx{backend});
    const TextMarks text = TextMarks::of(trace->tokens);
    for (std::size_t i = 0; i < trace->maps.size(); ++i) {
      const MetricInput head{trace->maps[i], text};
      pronoun[i] += metric("pronoun_to_antecedent").value(head) / stories;
      subject[i] += metric("verb_to_subject").value(head) / stories;
      if (i != 2) continue;
      const RowEvidence rows = row_evidence(head, metric("pronoun_to_antecedent"), true);
      evidence.rows += rows.rows;
      evidence.score += rows.score;
      evidence.chance += rows.chance;
      evidence.by_distance += rows.by_distance;
    }
  }
  const auto best = [](const std::vector<double>& of) { return std::ranges::max_element(of) - of.begin(); };
  CHECK(best(pronoun) == 0 * 4 + 2);
  CHECK(best(subject) == 1 * 4 + 2);
  CHECK(pronoun[2] > 0.3);
  CHECK(subject[6] > 0.2);
  // One text has too few pronouns to be sure; of all of them together the class holds.
  const auto rule = std::ranges::find(default_class_rules(), "pronoun_to_antecedent", &ClassRule::id);
  const auto mean = [&](double sum) { return sum / static_cast<double>(evidence.rows); };
  CHECK(evidence.enough_for(*rule));
  CHECK(class_margin(*rule, mean(evidence.score), mean(evidence.chance), mean(evidence.by_distance)) > 1);
}

}  // namespace headscope::word_classes_test
