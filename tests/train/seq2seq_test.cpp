// The recurrent encoder-decoder: every number of it by plain double loops, the gradient of every parameter against
// differences of those, what it writes by itself, and what a trial of it measures.

#include "core/train/seq2seq.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/train/translate_task.h"
#include "core/train/trial.h"

namespace headscope::seq2seq_test {

namespace {
using Row = std::vector<double>;
using Weights = std::map<std::string, Row>;
constexpr std::size_t width = 3, vocabulary = 7;
constexpr std::int32_t end_token = 6;

Weights weights_of(const Seq2Seq& model) {
  Weights out;
  for (const Parameter& each : model.parameters().all()) {
    const auto values = each.value.values();
    out[each.name] = {values.begin(), values.end()};
  }
  return out;
}

/// x W + b, W (in, out).
Row product(const Row& x, const Row& w, const Row& b = {}) {
  const std::size_t out = w.size() / x.size();
  Row y = b.empty() ? Row(out, 0.0) : b;
  for (std::size_t i = 0; i < x.size(); ++i)
    for (std::size_t j = 0; j < out; ++j) y[j] += x[i] * w[i * out + j];
  return y;
}
Row sum(const Row& a, const Row& b) {
  Row out = a;
  for (std::size_t i = 0; i < a.size(); ++i) out[i] += b[i];
  return out;
}
Row bent(Row x) {
  for (double& each : x) each = std::tanh(each);
  return x;
}
Row word(const Row& table, std::int32_t id) {
  const auto at = table.begin() + static_cast<std::ptrdiff_t>(width) * id;
  return {at, at + static_cast<std::ptrdiff_t>(width)};
}
Row gru(const Row& x, const Row& u, const Row& h) {
  Row out;
  for (std::size_t c = 0; c < h.size(); ++c) {
    const double z = 1 / (1 + std::exp(-x[c] - u[c])), r = 1 / (1 + std::exp(-x[width + c] - u[width + c]));
    out.push_back(z * h[c] + (1 - z) * std::tanh(x[2 * width + c] + r * u[2 * width + c]));
  }
  return out;
}

struct Translated {
  double loss = 0;                    // summed over the target
  std::vector<Row> shares;            // α of every step
  std::vector<std::int32_t> written;  // greedily
};

/// One text by the formulas of seq2seq.h. `source` ends with the end token. With a `target` that is read and scored;
/// without, `steps` tokens are written.
Translated translate(const Weights& w, bool attends, bool backwards, std::vector<std::int32_t> source,
                     const std::vector<std::int32_t>& target, std::size_t steps) {
  if (backwards) std::reverse(source.begin(), source.end() - 1);
  std::vector<Row> states;
  Row h(width, 0.0);
  for (const std::int32_t id : source) {
    h = gru(product(word(w.at("encoder.embedding"), id), w.at("encoder.input.weight"), w.at("encoder.input.bias")),
            product(h, w.at("encoder.state.weight"), w.at("encoder.state.bias")), h);
    states.push_back(h);
  }
  Row s = bent(product(h, w.at("decoder.start.weight"), w.at("decoder.start.bias")));
  Translated out;
  std::int32_t last = end_token;
  for (std::size_t t = 0; t < (target.empty() ? steps : target.size()); ++t) {
    Row context = h;
    if (attends) {
      const Row query = product(s, w.at("attention.query.weight"));
      Row share;
      double all = 0;
      for (const Row& state : states) {
        const Row pair = bent(sum(query, product(state, w.at("attention.key.weight"))));
        double score = 0;
        for (std::size_t c = 0; c < width; ++c) score += w.at("attention.w")[c] * pair[c];
        share.push_back(std::exp(score));
        all += share.back();
      }
      context.assign(width, 0.0);
      for (std::size_t j = 0; j < states.size(); ++j) {
        share[j] /= all;
        for (std::size_t c = 0; c < width; ++c) context[c] += share[j] * states[j][c];
      }
      out.shares.push_back(share);
    }
    s = gru(
        sum(product(word(w.at("decoder.embedding"), last), w.at("decoder.input.weight"), w.at("decoder.input.bias")),
            product(context, w.at("decoder.context.weight"))),
        product(s, w.at("decoder.state.weight"), w.at("decoder.state.bias")), s);
    const Row hidden = bent(sum(product(s, w.at("output.state.weight"), w.at("output.state.bias")),
                                product(context, w.at("output.context.weight"))));
    const Row logits = product(hidden, w.at("output.words.weight"), w.at("output.words.bias"));
    double norm = 0;
    for (const double each : logits) norm += std::exp(each);
    const auto best = static_cast<std::int32_t>(std::ranges::max_element(logits) - logits.begin());
    out.written.push_back(best);
    last = target.empty() ? best : target[t];
    if (!target.empty()) out.loss += std::log(norm) - logits[static_cast<std::size_t>(last)];
  }
  return out;
}

/// Two texts, of different lengths on both sides; padded as TranslateTask's.
const std::vector<std::vector<std::int32_t>> sources{{0, 3, 2, 5, end_token}, {4, 1, end_token}};
const std::vector<std::vector<std::int32_t>> targets{{2, 4, end_token}, {1, 1, 0, 3, end_token}};
Batch two_texts() {
  Batch batch{2, 5, {end_token, 2, 4, end_token, end_token, end_token, 1, 1, 0, 3}, {2, 4, end_token, -1, -1}};
  batch.targets.insert(batch.targets.end(), targets[1].begin(), targets[1].end());
  for (const auto& each : sources) {
    batch.source.insert(batch.source.end(), each.begin(), each.end());
    batch.source_lengths.push_back(std::ssize(each));
  }
  return batch;
}
double loss_by_definition(const Weights& w, bool attends, bool backwards) {
  double loss = 0;
  for (std::size_t i = 0; i < sources.size(); ++i)
    loss += translate(w, attends, backwards, sources[i], targets[i], 0).loss;
  return loss / 8;
}
struct Kind {
  bool attends, backwards;
};
constexpr Kind kinds[] = {{false, false}, {false, true}, {true, false}, {true, true}};
Seq2SeqSettings small(const Kind& kind) {
  return {vocabulary, end_token, width, kind.attends, kind.backwards};
}

Recipe small_recipe() {
  Recipe recipe;
  recipe.name = "small";
  recipe.task = {.kind = "translate", .seed = 4, .vocabulary = 640, .vocabulary_stories = 300, .sentences = 2};
  recipe.model = {.family = "bart", .layers = 1, .heads = 1, .kv_heads = 1, .width = 24, .mlp = 1, .context = 40};
  recipe.steps = recipe.optimizer.schedule_steps = 40;
  recipe.batch = 8;
  recipe.optimizer.learning_rate = 0.02;
  recipe.optimizer.warmup_steps = 2;
  recipe.evaluate_every = 10;
  recipe.evaluate_rows = 8;
  return recipe;
}
}  // namespace

TEST_CASE("a recurrent encoder-decoder computes what its formulas say: loss, alignment, what it writes") {
  Backend backend(2);
  for (const Kind& kind : kinds) {
    CAPTURE(kind.attends);
    CAPTURE(kind.backwards);
    Seq2Seq model(small(kind), {}, 5, backend);
    const Weights w = weights_of(model);
    CHECK(model.loss(two_texts(), {}) ==
          doctest::Approx(loss_by_definition(w, kind.attends, kind.backwards)).epsilon(1e-5));
    const auto written = model.write(two_texts(), 6, {});
    for (std::size_t i = 0; i < 2; ++i)
      CHECK(written[i] == translate(w, kind.attends, kind.backwards, sources[i], {}, 6).written);
    if (!kind.attends) continue;
    Batch one{1, 3, {end_token, 2, 4}, targets[0], sources[0], {5}};
    const Tensor weights = model.alignment(one, {});
    const auto shares = translate(w, true, kind.backwards, sources[0], targets[0], 0).shares;
    REQUIRE(weights.shape() == Shape({3, 5}));
    for (Index t = 0; t < 3; ++t) {
      double row = 0;
      for (Index j = 0; j < 5; ++j) {
        // In the order of the source, whichever way it was read.
        const Index place = kind.backwards && j < 4 ? 3 - j : j;
        CHECK(weights.at(t, j) ==
              doctest::Approx(shares[static_cast<std::size_t>(t)][static_cast<std::size_t>(place)]).epsilon(1e-4));
        row += static_cast<double>(weights.at(t, j));
      }
      CHECK(row == doctest::Approx(1).epsilon(1e-6));
    }
  }
}

TEST_CASE("a recurrent encoder-decoder learns down the gradient of its loss, of every parameter") {
  Backend backend(2);
  for (const Kind& kind : kinds) {
    CAPTURE(kind.attends);
    CAPTURE(kind.backwards);
    // Adam's first step is −rate · g / (|g| + ε): with a large ε the gradient can be read off it.
    OptimizerSettings plain;
    plain.learning_rate = plain.final_learning_rate = 0.5;
    plain.epsilon = 0.25;
    plain.weight_decay = plain.clip_norm = 0;
    Seq2Seq model(small(kind), plain, 6, backend);
    for (Parameter& each : model.parameters().all())  // so that it matters where it looks
      if (each.name.starts_with("attention"))
        for (float& value : each.value.mutable_values()) value *= 3;
    const Weights before = weights_of(model);
    const double loss = loss_by_definition(before, kind.attends, kind.backwards);
    CHECK(model.learn(two_texts(), {}).loss == doctest::Approx(loss).epsilon(1e-5));
    const Weights after = weights_of(model);
    CHECK(before.size() == (kind.attends ? 21 : 18));
    for (const auto& [name, values] : before) {
      CAPTURE(name);
      double most = 0;
      for (std::size_t i = 0; i < values.size(); ++i) {
        const double moved = (after.at(name)[i] - values[i]) / plain.learning_rate;
        const double gradient = -moved * plain.epsilon / (1 - std::abs(moved));
        Weights at = before;
        at[name][i] = values[i] + 1e-5;
        const double up = loss_by_definition(at, kind.attends, kind.backwards);
        at[name][i] = values[i] - 1e-5;
        const double slope = (up - loss_by_definition(at, kind.attends, kind.backwards)) / 2e-5;
        CHECK(std::abs(gradient - slope) < 1e-5);
        most = std::max(most, std::abs(slope));
      }
      CHECK(most > 3e-4);  // each has a part in it
    }
  }
}

TEST_CASE("what the kinds of recurrent encoder-decoders have in common begins the same") {
  Backend backend(1);
  const Weights one = weights_of(Seq2Seq(small({false, false}), {}, 9, backend)),
                attention = weights_of(Seq2Seq(small({true, false}), {}, 9, backend)),
                other = weights_of(Seq2Seq(small({false, false}), {}, 10, backend));
  for (const auto& [name, values] : one) CHECK(attention.at(name) == values);
  CHECK(other.at("encoder.embedding") != one.at("encoder.embedding"));
  CHECK(attention.size() == one.size() + 3);
}

TEST_CASE(
    "texts of several sentences: joined by words that align, with lengths as asked for, held out sentence by "
    "sentence") {
  Random random(1);
  const Translation first = draw_translation(random), second = draw_translation(random);
  const Translation both = joined(first, second);
  CHECK(both.source_text() == first.source_text() + " and " + second.source_text());
  CHECK(both.target_text() == first.target_text() + " et " + second.target_text());
  const int source = static_cast<int>(first.source.size()), target = static_cast<int>(first.target.size());
  CHECK(both.known.sure.contains({source, target}));
  CHECK(both.known.sure.size() == first.known.sure.size() + second.known.sure.size() + 1);
  for (const AlignedPair& pair : second.known.possible)
    CHECK(both.known.possible.contains({pair.source + source + 1, pair.target + target + 1}));

  const TranslateTask task(small_recipe().task);
  const auto sentences_of = [](const std::string& text) {
    std::vector<std::string> out;
    std::string rest = text;
    for (auto at = rest.find(" and "); at != std::string::npos; at = rest.find(" and ")) {
      out.push_back(rest.substr(0, at));
      rest = rest.substr(at + 5);
    }
    out.push_back(rest);
    return out;
  };
  const auto held_out = [](const std::string& sentence) {
    Translation of;  // which is told by the words of its source
    of.source = {sentence};
    return of.held_out();
  };
  int several = 0;
  for (std::int64_t step = 1; step <= 20; ++step) {
    const Batch batch = task.batch(step, 8, 40);
    auto at = batch.source.begin();
    for (const Index length : batch.source_lengths) {
      const std::string text = task.tokenizer()->decode({at, at + length - 1});
      at += length;
      const auto parts = sentences_of(text);
      several += parts.size() > 1;
      for (const std::string& each : parts) CHECK_FALSE(held_out(each));
      CHECK(parts.size() <= 2);
    }
  }
  CHECK(several > 50);
  CHECK(several < 110);
  for (const int words : {5, 12, 20}) {
    const auto texts = task.held_out_of_length(words, 6);
    CHECK(texts.size() == 6);
    for (const Translation& text : texts) {
      CHECK(std::ssize(text.source) == words);
      for (const std::string& each : sentences_of(text.source_text())) CHECK(held_out(each));
    }
    CHECK(task.held_out_of_length(words, 6)[5].source == texts[5].source);
  }
  CHECK_THROWS_AS(task.held_out_of_length(4, 1), Error);
  CHECK_THROWS_AS(task.held_out_of_length(26, 1), Error);
  // The recipe says how many where there may be several, and is as it was where there is one.
  const std::string json = recipe_json(small_recipe());
  CHECK(json.find("\"sentences\": 2") != std::string::npos);
  CHECK(parse_recipe(json, "r.json").task.sentences == 2);
  Recipe plain = small_recipe();
  plain.task.sentences = 1;
  CHECK(recipe_json(plain).find("sentences") == std::string::npos);
  CHECK(step_text(plain) == "8 sentences");
  CHECK(step_text(small_recipe()) == "8 texts");
  // 140 words of one sentence (translation_test.cpp counts them), and "et".
  CHECK(target_words() == 141);
}

TEST_CASE("recurrent pairs in a trial: the same batches for all, what they score and keep, learning, stop and go on") {
  Backend backend(2);
  TrialPlan plan;
  plan.sizes = {5, 12, 20};
  const Recipe recipe = small_recipe();
  const std::vector<SourceReading> readings{SourceReading::one_vector, SourceReading::one_vector_backwards,
                                            SourceReading::attention};
  for (const SourceReading how : readings) plan.contestants.push_back({"", recipe, recurrent_pair(how)});
  Trial whole(plan, backend);
  whole.run(100);
  REQUIRE(whole.finished());
  Trial parts(plan, backend);
  parts.run(3);
  std::stop_source stop;
  stop.request_stop();
  CHECK_THROWS_AS(parts.run(1, stop.get_token()), Cancelled);
  while (!parts.finished()) parts.run(1);
  const auto at_once = whole.standings(), in_parts = parts.standings();
  const TranslateTask task(recipe.task);
  const Kind as[] = {{false, false}, {false, true}, {true, false}};
  for (std::size_t i = 0; i < readings.size(); ++i) {
    CAPTURE(i);
    CHECK(at_once[i].curve == in_parts[i].curve);
    CHECK(at_once[i].score == in_parts[i].score);
    CHECK(at_once[i].scored_step == 40);
    CHECK(at_once[i].progress.held_out < 0.75 * at_once[i].curve.front().loss);
    CHECK(at_once[i].progress.floor == 0);
    CHECK(at_once[i].state == (i == 2 ? 24 * 40 : 24));

    // By itself, on the batches of the task, it comes to the same; what it then writes is counted word by word.
    Seq2SeqSettings settings = small(as[i]);
    settings.vocabulary = std::ssize(task.vocabulary().tokens);
    settings.end = task.vocabulary().end_of_text_id();
    settings.width = 24;
    Seq2Seq model(settings, recipe.optimizer, recipe.seed, backend);
    CHECK(at_once[i].parameters == model.parameters().count());
    for (std::int64_t step = 1; step <= 40; ++step)
      CHECK(model.learn(task.batch(step, 8, 40), {}).loss == at_once[i].curve[static_cast<std::size_t>(step - 1)].loss);
    for (std::size_t s = 0; s < plan.sizes.size(); ++s) {
      const auto texts = task.held_out_of_length(plan.sizes[s], 32);
      const auto written = model.write(task.batch_of(texts, 40), 30, {});
      int right = 0, all = 0;
      for (std::size_t text = 0; text < texts.size(); ++text) {
        std::vector<std::int32_t> target = task.target_ids(texts[text]);
        target.push_back(settings.end);
        for (std::size_t t = 0; t < target.size(); ++t, ++all) right += written[text][t] == target[t];
      }
      CHECK(right > 0);
      CHECK(at_once[i].score[s] == doctest::Approx(static_cast<double>(right) / all));
    }
    REQUIRE((at_once[i].alignment != nullptr) == (i == 2));
    // What it writes for the text that is shown, up to its own end.
    std::string written;
    for (const std::string& each : at_once[i].written) written += (written.empty() ? "" : " ") + each;
    std::vector<std::int32_t> whole_text =
        model.write(task.batch_of(task.held_out_of_length(14, 1), 40), 40, {}).front();
    whole_text.erase(std::ranges::find(whole_text, settings.end), whole_text.end());
    std::string said = task.tokenizer()->decode(whole_text);
    CHECK(!written.empty());
    std::erase(written, ' '), std::erase(said, ' ');  // pieces of words stand apart
    CHECK(written == said);
  }
  const Trace& shown = *at_once[2].alignment;
  REQUIRE(shown.maps.size() == 1);
  CHECK(shown.between_texts());
  CHECK(shown.maps[0].n_key() == std::ssize(shown.tokens));
  CHECK(shown.maps[0].n_query() == std::ssize(shown.query_tokens));
  CHECK(shown.tokens.back().label == "end");
  const Translation text = task.held_out_of_length(14, 1).front();
  CHECK(shown.tokens.front().label == text.source.front());
  CHECK(shown.query_tokens[1].label == text.target[1]);
  Recipe other = recipe;
  other.task = {};
  other.model = {};
  CHECK_THROWS_AS(recurrent_pair(SourceReading::attention)(other, backend), Error);
}

}  // namespace headscope::seq2seq_test
