// Classes of heads that read words: the sums by hand on made-up maps, what distance explains, weak classes, and heads
// of the bundled models whose behaviour their cards name.

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/metrics/head_class.h"
#include "core/run/run_request.h"
#include "core/train/language.h"
#include "tests/metrics/maps.h"
#include "tests/support/paths.h"

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
  TokenLinks links;
  WordLinks words;
  AttentionMap map;
  Read(std::vector<Token> text, const Tensor& weights)
      : tokens(std::move(text)),
        links(TokenLinks::of(tokens)),
        words(word_links(tokens)),
        map(AttentionMap::dense({}, weights, causal_rule(), stats_of_weights(weights, &links, 0))) {}
  MetricInput input() const { return {map, links, &words}; }
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

TEST_CASE("a head that always looks two back is no grammar head, one whose verbs alone do is") {
  const Read grammar = herd(0.8f, 0), habit = herd(0.8f, 0.8f);
  const auto found = classify(grammar.input(), default_class_rules());
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
  const auto other = classify(habit.input(), default_class_rules());
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
  const auto found = classify(head.input(), rules);
  REQUIRE(found.size() == 1);
  CHECK(found[0].score == Approx(0.9));
  // 39 rows see the token before; 10 of them 0.9, 29 of them 0.2. Without one of the ten: (9 · 0.9 + 29 · 0.2) / 38.
  CHECK(found[0].by_distance == Approx((9 * 0.9 + 29 * 0.2) / 38));
}

TEST_CASE("a head without class is told by what it comes nearest to, as weak, with its ratio to chance") {
  const Read head = herd(0.1f, 0);
  CHECK(classify(head.input(), default_class_rules()).size() == 1);  // uniform
  const auto weak = nearest_class(head.input(), default_class_rules());
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
    const TokenLinks links = TokenLinks::of(trace->tokens);
    const WordLinks words = word_links(trace->tokens);
    for (std::size_t i = 0; i < trace->maps.size(); ++i) {
      const MetricInput head{trace->maps[i], links, &words};
      pronoun[i] += metric("pronoun_to_antecedent").value(head) / stories;
      subject[i] += metric("verb_to_subject").value(head) / stories;
      if (i != 2) continue;
      const RowEvidence rows = row_evidence(head, metric("pronoun_to_antecedent"));
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
