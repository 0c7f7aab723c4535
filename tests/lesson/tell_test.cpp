// Every term of lessons beside the number it stands for, found another way; and what is said of guesses.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "core/analysis/expert_routing.h"
#include "core/base/error.h"
#include "core/edits/ablate_edit.h"
#include "core/lesson/tell.h"
#include "core/metrics/next_token.h"
#include "tests/support/paths.h"

namespace headscope::tell_test {

using jinja::Formula;
using jinja::Value;

namespace {
constexpr const char* story = "Mr and Mrs Quill of Fox Hythe kept bees. Now Mr and Mrs Qu";

struct Told {
  Backend backend{1};
  RunRequest request;
  LoadedModel model;
  std::shared_ptr<LessonRun> run;
  std::shared_ptr<const Trace> trace;

  Told() {
    request.model = testing::source_dir() / "assets/examples/induction";
    request.text = story;
    model = load_model(request.model, backend);
    run = std::make_shared<LessonRun>(model, request, Stack::only, backend);
    RunRequest dense = request;
    dense.capture.maps = MapStorage::dense;
    trace = headscope::run(model, dense, Ctx{backend});
  }
  std::shared_ptr<const Trace> recorded() {
    RunRequest wanted = request;
    wanted.capture.sites = {SiteKind::resid_post};
    return headscope::run(model, wanted, Ctx{backend});
  }
  Value value(const std::string& formula) const { return Formula(formula, "here").value(lesson_names(run)); }
  double number(const std::string& formula) const { return value(formula).real(); }
  std::string text(const std::string& formula) const { return value(formula).printed(); }
  /// −ln p(token) after the last position, with these edits.
  double loss(std::int32_t token, std::vector<Intervention> edits) {
    RunRequest edited = request;
    edited.edits = std::move(edits);
    const auto after = headscope::run(model, edited, Ctx{backend});
    return next_token_loss(after->logits.select(0, after->logits.dim(0) - 1), token);
  }
};

LessonStep step_of(const std::string& question, const std::string& show = "head: 1.0\nrow: -1") {
  return parse_lesson("---\ntitle: t\n---\n## a\nIt has {tokens()} tokens.\n```show\n" + show + "\n```\n```question\n" +
                          question + "\n```\n",
                      "x", "x.md")
      .steps.front();
}
}  // namespace

TEST_CASE("terms of a run are the numbers of its trace") {
  Told t;
  const AttentionMap& map = t.trace->map({1, 0});
  const auto n = static_cast<Index>(t.trace->tokens.size());
  CHECK(t.number("tokens()") == static_cast<double>(n));
  CHECK(t.number("layers()") == 2);
  CHECK(t.number("kv_heads()") == 4);
  CHECK(t.number("context()") == t.model.model->config().context);
  CHECK(t.text("key_token(13)") == "i");
  CHECK(t.number("heads()") == 4);
  CHECK(t.text("token(0)") == "M");
  CHECK(t.text("token(-1)") == "u");
  CHECK(t.number("position('Q#2')") == static_cast<double>(n - 2));
  CHECK(t.number("weight('1.0', -1, 13)") == doctest::Approx(map.weight(n - 1, 13)));
  CHECK(t.number("strongest('1.0', -1)") == 13);
  CHECK(t.number("strongest_weight('1.0', -1)") == doctest::Approx(map.weight(n - 1, 13)));
  CHECK(t.number("seen('1.0', 4)") == 5);
  CHECK(t.number("even('1.0', 4)") == doctest::Approx(0.2));
  double entropy = 0;
  for (Index k = 0; k < n; ++k)
    if (const double p = static_cast<double>(map.weight(n - 1, k)); p > 0) entropy -= p * std::log(p);
  CHECK(t.number("entropy('1.0', -1)") == doctest::Approx(entropy).epsilon(1e-4));
  // A weight is the softmax of its row's scores.
  double sum = 0;
  for (Index k = 0; k < n; ++k) sum += std::exp(t.number("score('1.0', -1, " + std::to_string(k) + ")"));
  CHECK(std::exp(t.number("score('1.0', -1, 13)")) / sum == doctest::Approx(map.weight(n - 1, 13)).epsilon(1e-4));
  CHECK(t.number("dot('1.0', -1, 13)") / std::sqrt(t.number("width()")) ==
        doctest::Approx(t.number("score('1.0', -1, 13)")));
  CHECK(t.number("metric('1.0', 'entropy')") ==
        doctest::Approx(evaluate(metric("entropy"), *t.trace)[4]).epsilon(1e-4));
  CHECK(t.number("chance('1.3', 'sink')") > 0);
  CHECK(t.text("class_of('1.0')") == "induction");
  CHECK(t.text("head_with_most('sink')") == "1.3");
}

TEST_CASE("terms of the answer are those of the logits, as it is and under edits") {
  Told t;
  const NextToken best = most_probable(*t.trace);
  CHECK(t.text("answer()") == "i");
  CHECK(t.number("answer_probability()") == doctest::Approx(best.probability));
  CHECK(t.number("probability('i')") == doctest::Approx(best.probability));
  CHECK(t.number("probability('i', 3)") ==
        doctest::Approx(std::exp(-next_token_loss(t.trace->logits.select(0, 3), best.id))));
  CHECK(t.number("loss()") == doctest::Approx(mean_loss(*t.trace)));
  const std::vector<Intervention> without{{{1, 0}, Ablate{Ablate::By::zero}}};
  CHECK(-t.number("ln(under('1.0: ablate zero').probability('i'))") ==
        doctest::Approx(t.loss(best.id, without)).epsilon(1e-4));
  CHECK(t.text("under('1.0: ablate zero').answer()") != "i");
  CHECK(t.text("under('1.3: ablate zero').answer()") == "i");
  // The text written on: another run of the whole of it, whose earlier rows are as they were.
  CHECK(t.number("continued('ill').tokens()") == t.number("tokens()") + 3);
  CHECK(t.number("continued('ill').probability('i', " + std::to_string(t.trace->tokens.size() - 1) + ")") ==
        doctest::Approx(best.probability));
  CHECK(t.text("continued('i').answer()") == "l");
  CHECK(t.number("edits()|length") == 0);
  CHECK(t.text("under('1.3: ablate zero', '0.*: temperature 2').edits()|join(' + ')") ==
        "1.3: ablate zero + 0.*: temperature 2");
  const std::vector<Intervention> by_mean{{{1, 0}, Ablate{Ablate::By::mean}}};
  CHECK(t.number("cost('1.0')") == doctest::Approx(t.loss(best.id, by_mean) - t.loss(best.id, {})).epsilon(1e-4));
  CHECK(t.text("needed_head()") == "1.0");
}

TEST_CASE("of an encoder the answer, and what a head costs it, are those of the masked token") {
  Backend backend(1);
  RunRequest request;
  request.model = testing::source_dir() / "models/tiny-bert";
  request.text = "In the village of Zoziford there lived Rosa. Every morning, [MASK] sold signs, and Ben counted milk.";
  const LoadedModel model = load_model(request.model, backend);
  const auto run = std::make_shared<LessonRun>(model, request, Stack::only, backend);
  const auto number = [&](const std::string& formula) {
    return Formula(formula, "here").value(lesson_names(run)).real();
  };
  const auto before = headscope::run(model, request, Ctx{backend});
  const NextToken best = most_probable(*before);
  CHECK(number("answer_probability()") == doctest::Approx(best.probability));
  RunRequest edited = request;
  edited.edits = {{{1, 2}, Ablate{Ablate::By::mean}}};
  const auto after = headscope::run(model, edited, Ctx{backend});
  const Index asked = answer_position(*before).value();
  CHECK(asked + 1 < before->logits.dim(0));
  CHECK(number("cost('1.2')") == doctest::Approx(next_token_loss(after->logits.select(0, asked), best.id) -
                                                 next_token_loss(before->logits.select(0, asked), best.id))
                                     .epsilon(1e-4));
}

TEST_CASE("terms of mechanisms and of the residual stream") {
  Told t;
  // The worked example: scores of (1, 0) with (1, 0), (0, 1), (1, 1) over √2; values 10, 20, 30.
  const double e = std::exp(1 / std::sqrt(2.0));
  CHECK(t.number("mechanism('softmax', 'one-query').cell('weights', 0, 0)") == doctest::Approx(e / (2 * e + 1)));
  CHECK(t.number("mechanism('softmax', 'one-query').output(0, 0)") == doctest::Approx(20));
  CHECK(t.text("mechanism('softmax', 'one-query').terms('weights', 0, 0)") != "");
  CHECK_THROWS_AS(t.value("mechanism('softmax', 'one-query').output(0, 1)"), Error);
  CHECK_THROWS_AS(t.value("mechanism('softmax', 'nothing').output(0, 0)"), Error);
  const auto recorded = t.recorded();
  const Trace& trace = *recorded;
  const Tensor& stream = trace.sites.at({SiteKind::resid_post, 1});
  double sum = 0, most = 0, with = 0, other = 0;
  for (Index i = 0; i < stream.dim(1); ++i) {
    const double x = static_cast<double>(stream.at(3, i)), y = static_cast<double>(stream.at(5, i));
    sum += x * x, most = std::max(most, std::abs(x)), with += x * y, other += y * y;
  }
  CHECK(t.number("norm('resid_post', 1, 3)") == doctest::Approx(std::sqrt(sum)));
  CHECK(t.number("largest('resid_post', 1, 3)") == doctest::Approx(most));
  CHECK(t.number("cosine('resid_post', 1, 3, 5)") == doctest::Approx(with / std::sqrt(sum * other)));
  double below = 0;
  for (int i = 0; i < 58; ++i)
    below += t.number("norm('resid_post', 1, " + std::to_string(i) + ")") < t.number("median_norm('resid_post', 1)");
  CHECK(below == 29);  // of 58
  CHECK_THROWS_AS(t.value("norm('nowhere', 1, 3)"), Error);
  CHECK_THROWS_AS(t.value("norm('resid_post', 7, 3)"), Error);
}

TEST_CASE("terms of the logit lens are those of the last norm and the unembedding, stage by stage") {
  Told t;
  const NextToken best = most_probable(*t.trace);
  CHECK(t.number("lens_probability('i', '1 mlp')") == doctest::Approx(best.probability));
  CHECK(t.number("lens_rank('i', '1 mlp')") == 1);
  CHECK(t.text("lens_answer('1 mlp')") == "i");
  CHECK(t.text("lens_answer('1 mlp', 3)") == t.text("answer(3)"));
  CHECK(t.number("lens_rank('i', '0 mlp')") >= 1);
  CHECK(t.number("lens_probability('i', '0 mlp')") < 0.5 * best.probability);  // block 1 holds the induction head
  for (const char* wrong : {"lens_answer('2 mlp')", "lens_answer(1)", "lens_rank('no such token', '1 mlp')",
                            "lens_probability('i', '1 mlp', 99)"})
    CHECK_THROWS_AS(t.value(wrong), Error);
}

TEST_CASE("terms of attribution sum to the logit, and those of a head to what it wrote") {
  Told t;
  const NextToken best = most_probable(*t.trace);
  CHECK(t.number("logit()") == doctest::Approx(best.logit));
  CHECK(t.number("logit(3, 'i')") == doctest::Approx(t.trace->logits.at(3, best.id)));
  std::vector<std::string> parts{"embedding", "positions", "norm bias"};
  for (int layer = 0; layer < 2; ++layer) {
    for (int head = 0; head < 4; ++head) parts.push_back("head " + std::to_string(layer) + "." + std::to_string(head));
    parts.push_back("attn bias " + std::to_string(layer));
    parts.push_back("MLP " + std::to_string(layer));
  }
  double sum = 0;
  for (const std::string& part : parts) {
    try {
      sum += t.number("attribution('" + part + "')");
    } catch (const Error&) {  // a model without it
      CHECK(part.find("head") == std::string::npos);
    }
  }
  CHECK(sum == doctest::Approx(best.logit).epsilon(1e-4));
  CHECK(t.text("most_attributed_head()") == "1.0");
  double read = 0;
  for (int key = 0; key < 58; ++key) read += t.number("attribution_from('1.0', " + std::to_string(key) + ")");
  CHECK(read == doctest::Approx(t.number("attribution('head 1.0')")).epsilon(1e-4));
  CHECK(t.number("attribution_from('1.0', 13)") > 0.9 * read);  // where it looks
  CHECK_THROWS_AS(t.value("attribution('head 2.0')"), Error);
  // Under an edit what the head writes goes.
  CHECK(t.number("under('1.0: ablate zero').attribution('head 1.0', -1, 'i')") == doctest::Approx(0));
}

TEST_CASE(
    "terms of rollout are the product of the layers' mean maps; of masks, their cells; of mechanisms, their error") {
  Told t;
  const Index n = 58, row = n - 1;
  const auto mixed = [&](int layer, Index i, Index j) {
    double mean = 0;
    for (int head = 0; head < 4; ++head) mean += static_cast<double>(t.trace->map({layer, head}).weight(i, j)) / 4;
    return 0.5 * (i == j) + 0.5 * mean;
  };
  const auto rolled = [&](Index j) {
    double sum = 0;
    for (Index k = j; k <= row; ++k) sum += mixed(1, row, k) * mixed(0, k, j);
    return sum;
  };
  CHECK(t.number("rollout(-1, 13)") == doctest::Approx(rolled(13)).epsilon(1e-4));
  CHECK(t.number("rollout(-1, -1)") == doctest::Approx(rolled(row)).epsilon(1e-4));
  CHECK(t.number("rollout(0, 0)") == doctest::Approx(1));
  CHECK(t.number("rollout_relative(0, 0)") == doctest::Approx(1));
  // Even heads give each of the i + 1 keys that row i may see the same.
  const auto even = [](Index i, Index j) { return 0.5 * (i == j) + 0.5 / static_cast<double>(i + 1); };
  double by_chance = 0;
  for (Index k = 13; k <= row; ++k) by_chance += even(row, k) * even(k, 13);
  CHECK(t.number("rollout_relative(-1, 13)") == doctest::Approx(rolled(13) / by_chance).epsilon(1e-4));
  CHECK_THROWS_AS(t.value("rollout(-1, 13, 1)"), Error);
  CHECK(t.number("mask_cells('causal')") == n * (n + 1) / 2);
  CHECK(t.number("mask_cells('full')") == n * n);
  CHECK(t.number("mask_cells('window 2')") == 2 * n - 1);
  CHECK_THROWS_AS(t.value("mask_cells('nonsense')"), Error);
  CHECK(t.number("mechanism('softmax', '1.0').output_error()") == doctest::Approx(0));
  // Frobenius, from the outputs themselves.
  double gap = 0, whole = 0;
  const auto cell = [&](const char* mechanism, Index i, Index j) {
    return t.number("mechanism('" + std::string(mechanism) + "', 'one-query').output(" + std::to_string(i) + ", " +
                    std::to_string(j) + ")");
  };
  const double other = cell("linear", 0, 0), softmax = cell("softmax", 0, 0);
  gap += (other - softmax) * (other - softmax), whole += softmax * softmax;
  CHECK(t.number("mechanism('linear', 'one-query').output_error()") == doctest::Approx(std::sqrt(gap / whole)));
}

TEST_CASE("places and heads that are not there are refused with what there is") {
  Told t;
  CHECK_THROWS_AS(t.value("position('Anna')"), Error);
  CHECK_THROWS_AS(t.value("position('Q')"), Error);  // twice
  CHECK_THROWS_AS(t.value("position('Q#3')"), Error);
  CHECK_THROWS_AS(t.value("token(58)"), Error);
  CHECK(t.text("token(57)") == "u");
  CHECK_THROWS_AS(t.value("weight('2.0', 0, 0)"), Error);
  CHECK_THROWS_AS(t.value("under('9.9: ablate zero').answer()"), Error);
  CHECK_THROWS_AS(t.value("metric('1.0', 'beauty')"), Error);
  Told once;
  once.request.text = "Mr";  // nothing is said twice
  once.run = std::make_shared<LessonRun>(once.model, once.request, Stack::only, once.backend);
  CHECK_THROWS_WITH_AS(once.value("head_with_most('prefix_matching')"), doctest::Contains("none for any"), Error);
}

TEST_CASE("a step tells its prose and what it looks at") {
  Told t;
  const LessonTold told = tell(step_of("kind: token\nask: Of {token(-1)}?\nanswer: 13\nbecause: c"), t.run);
  REQUIRE(told.prose.size() == 1);
  CHECK(told.tokens.size() == 58);
  CHECK(told.layers == 2);
  CHECK(told.heads == 4);
  CHECK(told.prose[0] == "It has 58 tokens.");
  CHECK(told.ask == "Of u?");
  CHECK(told.head == HeadId{1, 0});
  CHECK(told.row == Index{57});
  CHECK_FALSE(told.key);
  const LessonTold cell = tell(step_of("kind: token\nask: a\nanswer: 13\nbecause: c", "cell: 57 Q#1"), t.run);
  CHECK(cell.row == Index{57});
  CHECK(cell.key == Index{11});
}

TEST_CASE("a guess is held against what the model says, beside chance") {
  Told t;
  const LessonStep token =
      step_of("kind: token\nask: a\nanswer: strongest('1.0', -1)\nbecause: {strongest_weight('1.0', -1):.2f}");
  const LessonReply right = answered(token, t.run, Index{13}), wrong = answered(token, t.run, Index{2});
  CHECK(right.right);
  CHECK_FALSE(wrong.right);
  CHECK(right.truth == "i, position 13");
  CHECK(wrong.guess == "␣, position 2");
  CHECK(right.chance == doctest::Approx(1.0 / 58));
  CHECK(right.because == "1.00");
  CHECK_THROWS_AS(answered(token, t.run, Index{58}), Error);

  const LessonStep head = step_of("kind: head\nask: a\nanswer: needed_head()\nbecause: c");
  CHECK(answered(head, t.run, HeadId{1, 0}).right);
  CHECK_FALSE(answered(head, t.run, HeadId{0, 1}).right);
  CHECK(answered(head, t.run, HeadId{0, 1}).truth == "head 1.0");
  CHECK(answered(head, t.run, HeadId{}).chance == doctest::Approx(1.0 / 8));

  const LessonStep number = step_of("kind: number\nask: a\nanswer: tokens() / 2\nwithin: 0.5\nbecause: c");
  CHECK(answered(number, t.run, 29.5).right);
  CHECK_FALSE(answered(number, t.run, 29.6).right);
  CHECK(answered(number, t.run, 3.0).truth == "29");
  CHECK(answered(number, t.run, -3.0).guess == "−3");
  CHECK(answered(number, t.run, 28672.0).guess == "28672");
  const LessonStep third = step_of("kind: number\nask: a\nanswer: 1 / 3\nbecause: c");
  CHECK_THROWS_AS(answered(third, t.run, 0.3), Error);  // within what?

  const LessonStep choice = step_of("kind: choice\nask: a\nchoices: no | {answer()}\nanswer: answer()\nbecause: c");
  CHECK(answered(choice, t.run, Index{1}).right);
  CHECK_FALSE(answered(choice, t.run, Index{0}).right);
  CHECK(answered(choice, t.run, Index{0}).guess == "no");
  CHECK(answered(choice, t.run, Index{0}).chance == 0.5);

  const LessonStep until = step_of("kind: until\nask: a\nanswer: answer() != 'i'\nbecause: c");
  CHECK_FALSE(answered(until, t.run, 0.0).right);
  CHECK(answered(until, t.run->with({{{1, 0}, Ablate{Ablate::By::zero}}}), 0.0).right);
}

TEST_CASE("terms of experts are the numbers of their page") {
  Backend backend(1);
  RunRequest request;
  request.model = testing::source_dir() / "models/tiny-mixtral";
  request.text = "Anna ate an apple and Tom drank some milk. She was hungry.";
  const LoadedModel model = load_model(request.model, backend);
  const auto run = std::make_shared<LessonRun>(model, request, Stack::only, backend);
  RunRequest wanted = request;
  wanted.capture.sites = expert_routing_sites(*model.model);
  const RoutingReport report = read_expert_routing(*model.model, *headscope::run(model, wanted, Ctx{backend}));
  const ExpertRouting& r = report.layers[1];
  const auto value = [&](const std::string& formula) { return Formula(formula, "here").value(lesson_names(run)); };
  const auto number = [&](const std::string& formula) { return value(formula).real(); };
  CHECK(number("experts()") == 8);
  CHECK(number("experts_per_token()") == 2);
  const Index first = experts_of(r, 2)[0];
  const std::string e = std::to_string(first);
  CHECK(number("experts_of(1, 'ate')[0]") == static_cast<double>(first));
  CHECK(number("experts_of(1, 'ate')|length") == 2);
  CHECK(number("expert_weight(1, 'ate', " + e + ")") == doctest::Approx(r.weights.at(2, first)));
  CHECK(number("router_logit(1, 'ate', " + e + ")") == doctest::Approx(r.logits.at(2, first)));
  double all = 0;
  for (Index i = 0; i < 8; ++i) all += std::exp(static_cast<double>(r.logits.at(2, i)));
  CHECK(number("router_probability(1, 'ate', " + e + ")") ==
        doctest::Approx(std::exp(static_cast<double>(r.logits.at(2, first))) / all));
  CHECK(number("expert_tokens(1, " + e + ")") == static_cast<double>(r.tokens[static_cast<std::size_t>(first)]));
  CHECK(number("expert_load(1, " + e + ")") == doctest::Approx(r.load[static_cast<std::size_t>(first)]));
  CHECK(number("expert_tokens(1, busiest_expert(1))") == static_cast<double>(std::ranges::max(r.tokens)));
  CHECK(number("experts_used(1)") == doctest::Approx(r.used));
  CHECK(number("expert_balance(1)") == doctest::Approx(r.balance));
  CHECK(number("shared_experts(1, 'next')") == doctest::Approx(r.shared.next));
  CHECK(number("shared_experts(1, 'any')") == doctest::Approx(r.shared.any));
  const DroppedTokens dropped = dropped_tokens(r, 0.5);
  CHECK(dropped.whole > 0);
  CHECK(number("expert_capacity(1, 0.5)") == static_cast<double>(dropped.capacity));
  CHECK(number("dropped_places(1, 0.5)") == static_cast<double>(dropped.places.size()));
  CHECK(number("dropped_tokens(1, 0.5)") == static_cast<double>(dropped.whole));
  for (const char* wrong :
       {"expert_load(1, 8)", "expert_load(9, 0)", "shared_experts(1, 'all')", "dropped_tokens(1, 0)"})
    CHECK_THROWS_AS(value(wrong), Error);
}

TEST_CASE("numbers are read in the ways that people write them") {
  const std::pair<const char*, double> good[] = {{"0.5", 0.5},
                                                 {"0,5", 0.5},
                                                 {"1,500", 1500},
                                                 {"35,000", 35000},
                                                 {"1,234,567.5", 1234567.5},
                                                 {"0,500", 0.5},
                                                 {"12,34", 12.34},
                                                 {"1,5", 1.5},
                                                 {"−6.5", -6.5},
                                                 {"–6,5", -6.5},
                                                 {"-1,500", -1500},
                                                 {"35 000", 35000},
                                                 {" 35\u202F000 ", 35000},
                                                 {"1e3", 1000},
                                                 {"7", 7}};
  for (const auto& [text, value] : good) {
    CAPTURE(text);
    CHECK(number_typed(text) == value);
  }
  for (const char* none : {"", " ", "a", "1.5.2", "1,5,2", "1.000,5", "inf", "nan", "1e999", "5x", "−"}) {
    CAPTURE(none);
    CHECK_FALSE(number_typed(none));
  }
}

TEST_CASE("what is not true of the model is a fault of the lesson") {
  Told t;
  CHECK(faults_of(step_of("kind: head\nask: a\nanswer: needed_head()\nbecause: c"), t.run).empty());
  CHECK(faults_of(step_of("kind: head\nask: a\nanswer: '7.0'\nbecause: c"), t.run).size() == 1);
  CHECK(faults_of(step_of("kind: choice\nask: a\nchoices: b | c\nanswer: 'd'\nbecause: c"), t.run).size() == 1);
  CHECK(faults_of(step_of("kind: until\nask: a\nanswer: true\nbecause: c"), t.run).size() == 1);
  CHECK(faults_of(step_of("kind: head\nask: a\nanswer: '0.0'\nbecause: c", "row: Anna"), t.run).size() == 1);
  const auto claims = [&](const std::string& claim) {
    return faults_of(
        parse_lesson("---\ntitle: t\n---\n## a\nb\n```expect\n" + claim + "\n```\n", "x", "x.md").steps.front(), t.run);
  };
  CHECK(claims("answer() == 'i'").empty());
  const auto faults = claims("answer() == 'i'\nanswer() == 'j'\nnobody()");
  REQUIRE(faults.size() == 2);
  CHECK(faults[0].find("x.md, line 8") != std::string::npos);
  CHECK(faults[0].find("answer() == 'j'") != std::string::npos);
}

}  // namespace headscope::tell_test
