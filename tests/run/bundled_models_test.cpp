// The bundled models: their shipped weights still do what their cards say, measured again on fewer texts.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <numeric>
#include <span>
#include <string>

#include "core/analysis/expert_routing.h"
#include "core/analysis/past_context.h"
#include "core/base/file.h"
#include "core/base/json.h"
#include "core/generate/streaming.h"
#include "core/metrics/next_token.h"
#include "core/run/run_request.h"
#include "core/train/backcopy_task.h"
#include "core/train/evaluation.h"
#include "core/train/model_card.h"
#include "tests/support/paths.h"

namespace headscope::bundled_models_test {

namespace {
void check_model(const std::string& name) {
  const auto folder = testing::source_dir() / "models" / name;
  REQUIRE(std::filesystem::exists(folder / "card.json"));
  CHECK(std::filesystem::file_size(folder / "model.safetensors") <= 3'000'000);
  const auto card = nlohmann::json::parse(read_file(folder / "card.json"));
  Backend backend(2);
  const Ctx ctx{backend};
  // Pictures and short texts cost little, and of a few the mean says nothing yet.
  const bool draws = load_recipe(folder / "recipe.json").task.draws();
  const bool everyday = name == "everyday-gpt2" || name == "tiny-mixtral";
  const ModelCard now =
      measure_card(folder, {.rows = 60, .texts = draws || everyday ? 60 : 12, .ablated_rows = draws ? 40 : 1}, ctx);
  // Above the floor of the very rows measured: rows differ in how much they can surprise, the excess hardly does.
  // (Nobody knows the floor of masked tokens.)
  const bool floor = !std::isnan(now.floor);
  CHECK(card["floor"].is_null() != floor);
  const double excess = now.loss - (floor ? now.floor : 0.0),
               claimed_excess = card["loss"].get<double>() - (floor ? card["floor"].get<double>() : 0.0);
  CHECK(std::fabs(excess - claimed_excess) < (floor ? 0.03 : 0.1));
  if (now.recipe.task.kind == "stories")
    CHECK(excess < (everyday ? 0.08 : name == "tiny-gpt2" ? 0.15 : name == "tiny-mamba" ? 0.45 : 0.18));
  double best_induction = 0;
  const auto dims = load_model(folder, backend).model->config().dims;
  REQUIRE(now.heads.size() == static_cast<std::size_t>(dims.layers * dims.heads));
  REQUIRE(card["heads"].size() == now.heads.size());
  for (std::size_t i = 0; i < now.heads.size(); ++i) {
    const auto& claims = card["heads"][i]["scores"];
    CHECK(claims.size() == now.heads[i].scores.size());
    int compared = 0;
    for (const HeadScore& score : now.heads[i].scores) {
      INFO(name << " " << to_string(now.heads[i].id) << " " << score.id);
      REQUIRE(claims.contains(score.id));
      const auto& claimed = claims[score.id][0];
      CHECK(claimed.is_null() == std::isnan(score.value));
      if (claimed.is_null()) continue;
      CHECK(std::fabs(claimed.get<double>() - score.value) < 0.1);
      ++compared;
      if (score.id == "prefix_matching") best_induction = std::max(best_induction, score.value);
    }
    CHECK(compared >= (now.recipe.task.draws() ? 1 : 4));  // of every head, more than half of what the card tells
  }
  if (now.recipe.task.draws()) {
    CHECK(now.accuracy > 0.95);
    CHECK(std::fabs(now.accuracy - card["accuracy"].get<double>()) < 0.05);
    const auto best = std::ranges::max(now.heads, {}, [](const HeadCard& head) { return head.scores.front().value; });
    CHECK(best.scores.front().value > 4 * best.scores.front().chance);
    CHECK(best.loss_change > 0.1);
  }
  if (now.recipe.task.kind == "repeated") {
    CHECK(best_induction >= 0.8);
    CHECK(now.second_half <= now.first_half / 3);
  }
}
}  // namespace

TEST_CASE("bundled model everyday-gpt2 is what its card says") {
  check_model("everyday-gpt2");
}
TEST_CASE("bundled model tiny-gpt2 is what its card says") {
  check_model("tiny-gpt2");
}
TEST_CASE("bundled model tiny-llama is what its card says") {
  check_model("tiny-llama");
}
TEST_CASE("bundled model tiny-bert is what its card says") {
  check_model("tiny-bert");
}
TEST_CASE("bundled model tiny-mamba is what its card says") {
  check_model("tiny-mamba");
}
TEST_CASE("what tiny-mamba finds and what not, beside tiny-gpt2 of the same size and stories") {
  const auto card = [](const char* name) {
    return nlohmann::json::parse(read_file(testing::source_dir() / "models" / name / "card.json"));
  };
  const auto mamba = card("tiny-mamba"), gpt2 = card("tiny-gpt2");
  CHECK(mamba["targets"] == gpt2["targets"]);
  CHECK(mamba["floor"] == gpt2["floor"]);
  CHECK(mamba["parameters"].get<double>() == doctest::Approx(gpt2["parameters"].get<double>()).epsilon(0.1));
  const auto best = [](const nlohmann::json& of, const char* link) {  // in units of chance
    double most = 0;
    for (const auto& head : of["heads"])
      most = std::max(most, head["scores"][link][0].get<double>() / head["scores"][link][1].get<double>());
    return most;
  };
  for (const char* near : {"verb_to_subject", "noun_to_determiner", "previous_token"}) {
    CHECK(best(mamba, near) > 3);
    CHECK(best(gpt2, near) > 3);
  }
  for (const char* far : {"pronoun_to_antecedent", "song_to_continuation", "prefix_matching"}) {
    CHECK(best(mamba, far) < 2);
    CHECK(best(gpt2, far) > 2);
  }
  CHECK(best(mamba, "to_earlier_occurrence") > 2);  // of a name: the one thing far back that its state learnt to keep
  // The same number of tokens: only the form differs.
  const auto recipe = [](const char* name) {
    return load_recipe(testing::source_dir() / "models" / name / "recipe.json");
  };
  const auto tokens = [](const Recipe& of) { return of.steps * of.batch * of.model.context; };
  CHECK(tokens(recipe("tiny-mamba")) == tokens(recipe("tiny-gpt2")));
}

TEST_CASE("tiny-mamba knows the grammar by heart and who the story is about, and cannot sing a song again") {
  Backend backend(2);
  const LoadedModel loaded = load_model(testing::source_dir() / "models" / "tiny-mamba", backend);
  const auto loss = [&](const std::string& text) {
    RunRequest request;
    request.text = text;
    const auto trace = run(loaded, request, Ctx{backend});
    return next_token_loss(trace->logits.select(0, trace->logits.dim(0) - 2), trace->tokens.back().id);
  };
  const std::string begin = "In the village of Zoziford there lived Anna and her cousin Ben";
  CHECK(loss(begin + ". Every morning,") < 0.05);
  CHECK(loss(begin + ". Every morning, she sold signs, and") < 0.05);
  for (const std::string him : {"Ben", "Paul"}) {
    const std::string other = him == "Ben" ? "Paul" : "Ben";
    const std::string told = "In the village of Zoziford there lived Anna and her cousin " + him +
                             ". Every morning, she sold signs, and " + him + " counted milk. One day,";
    CHECK(loss(told + " " + him) < 2);  // of a dozen names of men
    CHECK(loss(told + " " + other) > 5);
  }
  CHECK(loss(read_file(testing::source_dir() / "assets/examples/tiny-mamba.txt") + " ro") > 2);  // of a song sung twice
}
TEST_CASE("bundled model tiny-mixtral is what its card says, and its experts go by kinds of words") {
  check_model("tiny-mixtral");
  const auto folder = testing::source_dir() / "models" / "tiny-mixtral";
  CHECK(std::filesystem::file_size(folder / "model.safetensors") <= 1'500'000);
  CHECK(load_recipe(folder / "recipe.json").optimizer.expert_balance == 0.02);  // as lesson 31 says
  Backend backend(1);
  const LoadedModel loaded = load_model(folder, backend);
  // Of texts that it never learnt from: no expert idle, none with it all, and a token again goes where it went.
  std::vector<double> load(8, 0);
  double same = 0, any = 0, texts = 0;
  std::vector<int> people(8, 0), ends(8, 0);
  for (const auto& ids : learnt_texts(loaded, folder, 40, 64)) {
    RunRequest request;
    request.ids = ids;
    request.add_bos = false;
    request.capture.sites = expert_routing_sites(*loaded.model);
    const auto trace = run(loaded, request, Ctx{backend});
    const ExpertRouting r = read_expert_routing(*loaded.model, *trace).layers[1];
    for (std::size_t e = 0; e < 8; ++e) load[e] += r.load[e];
    if (!std::isnan(r.shared.same)) same += r.shared.same, any += r.shared.any, ++texts;
    for (Index i = 0; i < r.weights.dim(0); ++i) {
      const std::string word = loaded.tokenizer->decode(std::span(&ids[static_cast<std::size_t>(i)], 1));
      const auto first = static_cast<std::size_t>(experts_of(r, i).front());
      if (word == " he" || word == " she" || word == " Anna" || word == " Tom") ++people[first];
      if (word == ".") ++ends[first];
    }
  }
  for (const double each : load) CHECK(each / 40 > 0.05);
  for (const double each : load) CHECK(each / 40 < 0.25);
  REQUIRE(texts > 10);
  CHECK(same / texts > 2 * any / texts);
  const auto share = [](const std::vector<int>& of) {
    return static_cast<double>(std::ranges::max(of)) / std::accumulate(of.begin(), of.end(), 0.0);
  };
  CHECK(share(people) > 0.8);
  CHECK(share(ends) > 0.8);
}
TEST_CASE("bundled model tiny-vit is what its card says") {
  check_model("tiny-vit");
}
TEST_CASE("bundled model tiny-translate is what its card says") {
  const auto folder = testing::source_dir() / "models" / "tiny-translate";
  CHECK(std::filesystem::file_size(folder / "model.safetensors") <= 1'000'000);
  const auto card = nlohmann::json::parse(read_file(folder / "card.json"));
  Backend backend(2);
  const ModelCard now = measure_card(folder, {.rows = 60, .texts = 12, .ablated_rows = 10}, Ctx{backend});
  REQUIRE(now.translation);
  const TranslationScores& t = *now.translation;
  const auto& claims = card["translation"];
  CHECK(now.floor == 0);
  CHECK(now.loss < 0.01);
  CHECK(t.exact >= 0.95);
  CHECK(claims["exact"].get<double>() >= 0.95);
  CHECK(std::fabs(claims["chance_error"].get<double>() - t.chance) < 0.02);
  CHECK(std::fabs(claims["in_order_error"].get<double>() - t.in_order) < 0.05);
  REQUIRE(claims["cross_heads"].size() == t.heads.size());
  for (std::size_t i = 0; i < t.heads.size(); ++i) {
    CAPTURE(i);
    CHECK(std::fabs(claims["cross_heads"][i]["error_writing"].get<double>() - t.heads[i].written) < 0.05);
    CHECK(std::fabs(claims["cross_heads"][i]["error_reading"].get<double>() - t.heads[i].read) < 0.05);
    CHECK(std::fabs(claims["cross_heads"][i]["weight"].get<double>() - t.heads[i].weight) < 0.05);
  }
  CHECK(t.best().written < 0.02);
  CHECK(t.in_order > 0.5);  // which no order of words explains
}
TEST_CASE("bundled model sink-2l is what its card says, and needs the token that it rests on") {
  check_model("sink-2l");
  const auto folder = testing::source_dir() / "models" / "sink-2l";
  CHECK(std::filesystem::file_size(folder / "model.safetensors") <= 150'000);
  Backend backend(2);
  const LoadedModel loaded = load_model(folder, backend);
  const auto ids = learnt_texts(loaded, folder, 1, 512).front();
  REQUIRE(ids.size() == 512);
  CHECK(ids.front() == *loaded.model->config().eos);
  const StreamingSettings settings{32, 1};
  const auto after = [&](CachePolicy policy) {
    const auto losses = streaming_losses(loaded, ids, policy, settings, Ctx{backend});
    return std::accumulate(losses.begin() + 32, losses.end(), 0.0) / static_cast<double>(losses.size() - 32);
  };
  // The language needs two tokens back and no more, so a window of 32 has all that there is to know: without the first
  // token it costs a nat more, with it as much as within the trained length.
  const double with = after(CachePolicy::sinks), window = after(CachePolicy::window);
  CHECK(with < Backcopy(load_recipe(folder / "recipe.json").task).entropy() + 0.1);
  CHECK(window > with + 1);
  CHECK(after(CachePolicy::recompute) > with + 1);  // another token is first there
  CHECK(after(CachePolicy::whole) > window);        // distances that it never saw
  const auto rests = first_token_shares(loaded, ids, Ctx{backend});
  REQUIRE(rests.size() == 8);
  CHECK(rests.front().share > 0.5);
  CHECK(rests.front().share > 8 * rests.front().chance);
  const auto elsewhere = first_token_shares(loaded, std::span(ids).subspan(100, 64), Ctx{backend});
  CHECK(elsewhere.front().share < 0.4);
}
TEST_CASE("bundled model induction-2l is what its card says") {
  check_model("induction-2l");
}

TEST_CASE("everyday-gpt2 knows who is hungry and who thirsty, whom a reason is about, and verbs across a clause") {
  Backend backend(1);
  const auto folder = testing::source_dir() / "models" / "everyday-gpt2";
  const LoadedModel loaded = load_model(folder, backend);
  const auto ended = [&](const std::string& text, const char* edit = "") {
    RunRequest request;
    request.model = folder;
    request.text = text;
    if (*edit != 0) request.edits.push_back(parse_intervention(edit, "test"));
    return run(loaded, request, Ctx{backend});
  };
  const auto share = [&](const std::string& text, std::initializer_list<const char*> words, const char* edit = "") {
    double sum = 0;
    for (const NextToken& next : top_next(*ended(text, edit), 20))
      for (const char* word : words)
        if (loaded.tokenizer->decode(std::span(&next.id, 1)) == word) sum += next.probability;
    return sum;
  };
  const std::string meal = read_file(testing::source_dir() / "assets/examples/everyday-gpt2.first.txt");
  CHECK(meal == "Anna ate an apple and Tom drank some milk. She was");
  CHECK(ended(meal)->tokens.size() == 13);
  CHECK(share(meal, {" hungry"}) > 0.98);
  CHECK(share("Anna ate an apple and Tom drank some milk. He was", {" thirsty"}) > 0.98);
  CHECK(share(meal, {" thirsty"}, "0.0: ablate mean") > 0.9);
  CHECK(ended(meal)->map({0, 0}).weight(12, 11) > 0.7f);
  const auto needy = {" sad", " ill", " bored", " alone", " upset", " sick"},
             kind = {" kind", " generous", " rich", " polite", " good", " nice"};
  CHECK(share("Tom gave Anna a book because she was", needy) > 0.95);
  CHECK(share("Tom gave Anna a book because he was", kind) > 0.95);
  CHECK(share("Anna saw a dog and she", {" fed", " walked"}) > 0.95);
  CHECK(share("Anna saw a dog and she fed the", {" dog"}) > 0.95);
  CHECK(share("The cat sat on the", {" mat", " sofa", " bed", " chair", " rug", " table", " carpet", " stairs"}) >
        0.95);
  CHECK(share("The girls who fed the horse", {" are"}) > 0.95);
  CHECK(share("The girl who fed the horses", {" is"}) > 0.95);
  CHECK(share("Anna is taller than Tom and Tom is taller than Max. Who is the tallest?", {" Anna"}) > 0.95);
  // What it has not learnt, as the README says: to look up who of two has what.
  const double has = share("Anna has a ball and Tom has a kite. Who has the kite?", {" Tom"}),
               other = share("Anna has a ball and Tom has a kite. Who has the kite?", {" Anna"});
  CHECK(has < 0.9);
  CHECK(has + other > 0.95);
}

TEST_CASE("tiny-gpt2 knows who sells what by a head for the woman and one for the man, and not without them") {
  Backend backend(1);
  const auto folder = testing::source_dir() / "models" / "tiny-gpt2";
  const LoadedModel loaded = load_model(folder, backend);
  const auto sold = [&](const char* who, std::initializer_list<const char*> edits) {
    RunRequest request;
    request.model = folder;
    request.text =
        std::string("In the village of Zoziford there lived Anna and her cousin Ben. Every morning, ") + who + " sold";
    for (const char* edit : edits) request.edits.push_back(parse_intervention(edit, "test"));
    return run(loaded, request, Ctx{backend});
  };
  const auto share = [&](const Trace& trace, std::initializer_list<const char*> things) {
    double sum = 0;
    for (const NextToken& next : top_next(trace, 20))
      for (const char* thing : things)
        if (loaded.tokenizer->decode(std::span(&next.id, 1)) == thing) sum += next.probability;
    return sum;
  };
  const auto hers = {" pies", " cakes", " rolls"}, his = {" milk", " butter", " hay"};
  const auto she = sold("she", {}), he = sold("he", {});
  CHECK(share(*she, hers) > 0.98);
  CHECK(share(*he, his) > 0.98);
  const Index anna = 10, ben = 14, verb = 20;
  REQUIRE(she->tokens.size() == static_cast<std::size_t>(verb + 1));
  CHECK(she->map({0, 2}).weight(verb, anna) > 0.95f);
  CHECK(he->map({0, 3}).weight(verb, ben) > 0.95f);
  CHECK(share(*sold("she", {"0.2: ablate zero"}), his) > 0.7);
}

}  // namespace headscope::bundled_models_test
