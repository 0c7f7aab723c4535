// Every number that a finding tells is that of one run with the edit it names; and it is the largest of its kind.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stop_token>

#include "core/analysis/finding_words.h"
#include "core/analysis/findings.h"
#include "core/base/error.h"
#include "core/base/nth.h"
#include "core/edits/ablate_edit.h"
#include "core/edits/drop_first_edit.h"
#include "core/edits/weight_edit.h"
#include "tests/metrics/classes.h"
#include "tests/support/paths.h"

namespace headscope::findings_test {

using doctest::Approx;
using testing::source_dir;

namespace {

const char* const text = "Mr and Mrs Quill of Fox Hythe kept bees. Now Mr and Mrs Qu";

struct Scan {
  explicit Scan(const std::filesystem::path& folder, const std::string& of = text)
      : loaded(load_model(folder, backend)) {
    request.model = folder;
    request.text = of;
    request.capture.all_logits = true;
    FindingsSweep sweep(loaded, {.run = request});
    CHECK(sweep.result() == nullptr);
    while (!sweep.finished()) sweep.step(ctx);
    CHECK(sweep.share() == Approx(1));
    found = sweep.result();
    before = with({});
  }
  std::shared_ptr<const Trace> with(const std::vector<Intervention>& edits) {
    RunRequest edited = request;
    edited.edits = edits;
    return run(loaded, edited, ctx);
  }
  const Finding* kind(Finding::Kind kind) const {
    for (const Finding& each : found->all)
      if (each.kind == kind) return &each;
    return nullptr;
  }
  /// −ln p of the answer, by its definition.
  double answer_loss(const Trace& trace) const {
    const auto answer = most_probable(*before).id;
    const Index row = trace.logits.dim(0) - 1;
    double most = -1e300, sum = 0;
    for (Index i = 0; i < trace.logits.dim(1); ++i) most = std::max(most, static_cast<double>(trace.logits.at(row, i)));
    for (Index i = 0; i < trace.logits.dim(1); ++i)
      sum += std::exp(static_cast<double>(trace.logits.at(row, i)) - most);
    return most + std::log(sum) - static_cast<double>(trace.logits.at(row, answer));
  }

  Backend backend{1};
  Ctx ctx{backend};
  LoadedModel loaded;
  RunRequest request;
  std::shared_ptr<const Findings> found;
  std::shared_ptr<const Trace> before;
};

bool says(const Finding& found, const std::string& words) {
  return found.sentence.text().find(words) != std::string::npos;
}

}  // namespace

TEST_CASE("the head the answer needs is the one whose removal costs it most, and the sentence has that run's numbers") {
  for (const char* model : {"tiny-gpt2", "tiny-llama", "tiny-mamba"}) {
    CAPTURE(model);
    Scan scan(source_dir() / "models" / model, "One day, Anna sold pies. Tom sold milk. One day, Anna");
    const double was = scan.answer_loss(*scan.before);
    double most = -1e300;
    HeadId of;
    const ModelDims& dims = scan.before->model.dims;
    for (int layer = 0; layer < dims.layers; ++layer)
      for (int head = 0; head < dims.heads; ++head) {
        const double cost = scan.answer_loss(*scan.with({{{layer, head}, Ablate{Ablate::By::mean}}})) - was;
        if (cost > most) most = cost, of = {layer, head};
      }
    const Finding* cause = scan.kind(Finding::Kind::cause);
    REQUIRE(cause);
    CHECK(cause->head == of);
    CHECK(cause->effect == Approx(most).epsilon(1e-4));
    CHECK(says(*cause, "head " + to_string(of)));
    CHECK(says(*cause, fmt::format("from {:.2f} to ", std::exp(-was))));
    // A state space has no row of weights that could say where its head looks.
    CHECK(cause->cells.empty() == dims.state_space());
    if (cause->cells.empty()) continue;
    const AttentionMap& map = scan.before->map(of);
    const Evidence cell = cause->cells.front();
    CHECK(cell.query == map.n_query() - 1);
    for (Index key = 0; key < map.n_key(); ++key) CHECK(cell.weight >= map.weight(cell.query, key));
    CHECK(cell.weight == map.weight(cell.query, cell.key));
  }
}

TEST_CASE("the token the answer hangs on is the one whose hiding costs it most") {
  Scan scan(source_dir() / "models" / "tiny-gpt2", "One day, Anna sold pies. Tom sold milk. One day, Anna");
  const double was = scan.answer_loss(*scan.before);
  const auto n = static_cast<int>(scan.before->tokens.size());
  double most = -1e300;
  Index of = -1;
  for (int token = 0; token < n - 1; ++token) {
    std::vector<Intervention> edits;
    for (int query = token + 1; query < n; ++query) edits.push_back({{}, SetWeight{query, token, 0}});
    const double cost = scan.answer_loss(*scan.with(edits)) - was;
    if (cost > most) most = cost, of = token;
  }
  const Finding* token = scan.kind(Finding::Kind::token);
  REQUIRE(token);
  CHECK(token->token == of);
  CHECK(token->effect == Approx(most).epsilon(1e-4));
  CHECK(says(*token, fmt::format("(position {})", of)));
}

TEST_CASE("the hand-made circuit is told: what is copied from where, and that the answer is gone without the head") {
  Scan scan(source_dir() / "assets" / "examples" / "induction");
  const Finding* copy = scan.kind(Finding::Kind::copy);
  REQUIRE(copy);
  const AttentionMap& map = scan.before->map(*copy->head);
  const Evidence cell = copy->cells.front();
  CHECK(cell.weight == map.weight(cell.query, cell.key));
  double there = 0;
  for (const Evidence& each : copy->cells) there += static_cast<double>(each.weight);
  CHECK(there > 0.9);
  // Prefix matching: what stood before the key stands at the query (Olsson et al. 2022).
  CHECK(nth(scan.before->tokens, cell.key - 1).id == nth(scan.before->tokens, cell.query).id);
  const auto without = scan.with({{{copy->head->layer, copy->head->head}, Ablate{Ablate::By::mean}}});
  const std::int32_t told = nth(scan.before->tokens, cell.key).id;
  const double fall = std::exp(-next_token_loss(scan.before->logits.select(0, cell.query), told)) -
                      std::exp(-next_token_loss(without->logits.select(0, cell.query), told));
  CHECK(fall > 0.5);
  CHECK(copy->effect == Approx(next_token_loss(without->logits.select(0, cell.query), told) -
                               next_token_loss(scan.before->logits.select(0, cell.query), told))
                            .epsilon(1e-4));
  CHECK(says(*copy, "head " + to_string(*copy->head)));
  const auto told_at = [&](const Trace& trace) {
    return portion(std::exp(-next_token_loss(trace.logits.select(0, cell.query), told)));
  };
  CHECK(says(*copy, "Without the head its probability falls from " + told_at(*scan.before) + " to " +
                        told_at(*without) + "."));
}

TEST_CASE("heads that rest on the first token are counted, and the text read once more without it") {
  Scan scan(source_dir() / "models" / "tiny-llama", "One day, Anna sold pies. Tom sold milk. One day, Anna");
  int resting = 0;
  for (const AttentionMap& map : scan.before->maps) {
    double mass = 0;
    for (Index row = 1; row < map.n_query(); ++row) mass += map.weight(row, 0);
    resting += mass / static_cast<double>(map.n_query() - 1) >= 0.5;
  }
  REQUIRE(resting > 0);
  const Finding* sink = scan.kind(Finding::Kind::sink);
  REQUIRE(sink);
  CHECK(says(*sink, fmt::format("{} of {} heads", resting, scan.before->maps.size())));
  const double after = mean_loss(*scan.with({{{}, DropFirst{1, true}}}));
  CHECK(sink->effect == Approx(after - mean_loss(*scan.before)).epsilon(1e-4));
  CHECK(says(*sink, fmt::format("{:.3f} nats per token in place of {:.3f}", after, mean_loss(*scan.before))));
}

TEST_CASE(
    "the pattern that is told has the lowest bound of all, and its head is named with the text's loss without it") {
  Scan scan(source_dir() / "assets" / "examples" / "induction");
  const TextMarks text = TextMarks::of(scan.before->tokens);
  // Of classes whose cells are not all on the first token: that is the sink's sentence.
  const auto least_of = [&](const AttentionMap& map, double least) {
    for (const HeadVerdict& verdict : testing::classes_of({map, text}, default_class_rules()).met)
      if (std::ranges::any_of(verdict.evidence, [](const Evidence& cell) { return cell.key > 0; }))
        least = std::min(least, std::isnan(verdict.p) ? 1 : verdict.p);
    return least;
  };
  double least = 1;
  for (const AttentionMap& map : scan.before->maps) least = least_of(map, least);
  REQUIRE(least < 1);
  const Finding* pattern = scan.kind(Finding::Kind::pattern);
  REQUIRE(pattern);
  const double own = least_of(scan.before->map(*pattern->head), 1);
  CHECK(own == least);
  const double without =
      mean_loss(*scan.with({{{pattern->head->layer, pattern->head->head}, Ablate{Ablate::By::mean}}}));
  CHECK(pattern->effect == Approx(without - mean_loss(*scan.before)).epsilon(1e-4));
}

TEST_CASE("looking for the strangest head stops when it is asked to, and can be taken up again") {
  struct Stopping final : Backend {
    using Backend::Backend;
    Tensor linear(const Tensor& x, const Linear& w, RowQueue* later) override {
      if (++calls == last) asked.request_stop();
      return Backend::linear(x, w, later);
    }
    int calls = 0, last = -1;  // of the products of a first step
    std::stop_source asked;
  } backend(1);
  RunRequest request;
  request.model = source_dir() / "models" / "tiny-gpt2";
  request.text = text;
  const LoadedModel loaded = load_model(request.model, backend);
  backend.calls = 0;
  FindingsSweep(loaded, {.run = request}).step(Ctx{backend});
  backend.last = 2 * backend.calls;
  FindingsSweep sweep(loaded, {.run = request});
  CHECK_THROWS_AS(sweep.step(Ctx{.backend = backend, .stop = backend.asked.get_token()}), Cancelled);
  CHECK(sweep.result() == nullptr);
  sweep.step(Ctx{backend});
  CHECK(sweep.result() != nullptr);
}

TEST_CASE(
    "of a picture the first token is its own, not the class that has its number, and what stays is said to stay") {
  Backend backend(1);
  RunRequest request;
  request.model = source_dir() / "models" / "tiny-vit";
  request.image = source_dir() / "assets" / "examples" / "tiny-vit.png";
  FindingsSweep sweep(load_model(request.model, backend), {.run = request});
  while (!sweep.finished()) sweep.step(Ctx{backend});
  const auto found = sweep.result();
  bool told = false;
  for (const Finding& each : found->all) {
    CHECK_FALSE(says(each, "from 1.00 to 1.00"));
    if (each.kind != Finding::Kind::sink) continue;
    told = true;
    CHECK(says(each, "[CLS] (position 0)"));
    CHECK_FALSE(says(each, "circle"));
  }
  CHECK(told);
}

TEST_CASE("of an encoder that is asked for nothing no answer is told; asked for a token it is") {
  Scan silent(source_dir() / "models" / "tiny-bert", "Anna sold pies.");
  CHECK(silent.kind(Finding::Kind::cause) == nullptr);
  CHECK(silent.kind(Finding::Kind::token) == nullptr);
  CHECK(silent.kind(Finding::Kind::sink) == nullptr);  // there would be nothing to test it by
  Scan asked(source_dir() / "models" / "tiny-bert", "Anna sold [MASK].");
  CHECK(asked.kind(Finding::Kind::cause) != nullptr);
  CHECK(asked.kind(Finding::Kind::token) != nullptr);
}

TEST_CASE("a scan tells what it knows so far, and edits stay in force") {
  Backend backend(1);
  const Ctx ctx{backend};
  const auto folder = source_dir() / "assets" / "examples" / "induction";
  RunRequest request;
  request.model = folder;
  request.text = text;
  request.edits = {{{}, SetWeight{-1, 0, 1}}};  // every head's last row looks at the first token alone
  FindingsSweep sweep(load_model(folder, backend), {.run = request});
  sweep.step(ctx);
  CHECK(sweep.result()->all.empty());
  sweep.step(ctx);
  const auto found = sweep.result();
  REQUIRE(!found->all.empty());
  const Finding& cause = found->all.front();
  CHECK(cause.kind == Finding::Kind::cause);
  CHECK(cause.head == HeadId{0, 0});
  CHECK(cause.cells.front().key == 0);
  CHECK(cause.cells.front().weight == 1);
}

TEST_CASE("portions in two decimals, or three below a tenth; what an absence did to the answer in words") {
  CHECK(portion(1) == "1.00");
  CHECK(portion(0.0995) == "0.10");
  CHECK(portion(0.0994) == "0.099");
  CHECK(portion(0.15) == "0.15");
  CHECK(portion(0.001) == "0.001");
  CHECK(portion(0.0009) == "below 0.001");
  CHECK(portion(0) == "0.00");
  CHECK(portion(std::nan("")) == "–");
  const LoadedModel nameless;
  CHECK(in_words(nameless, {7, 0.81, 0.12, {3, 0.55, 0}}) ==
        "token 7 falls from 0.81 to 0.12, and token 3 (0.55) comes first");
  CHECK(in_words(nameless, {7, 0.5, 0.9, {7, 0.9, 0}}) == "token 7 rises from 0.50 to 0.90, still the answer");
  CHECK(in_words(nameless, {7, 0.501, 0.499, {7, 0.499, 0}}) == "token 7 stays at 0.50, still the answer");
}

TEST_CASE("the strongest cell of a row: of equals the first, of signed weights the least negative") {
  const auto strongest = [](const std::vector<float>& row) {
    const Tensor weights = Tensor::from({1, static_cast<Index>(row.size())}, row);
    return strongest_cell(AttentionMap::dense({}, weights, full_rule(), stats_of_weights(weights, nullptr)), 0);
  };
  const Evidence cell = strongest({0.25f, 0.5f, 0.25f});
  CHECK(cell.query == 0);
  CHECK(cell.key == 1);
  CHECK(cell.weight == 0.5f);
  CHECK(strongest({0.5f, 0.5f}).key == 0);
  CHECK(strongest({-4, -3, -5}).key == 1);
  CHECK(strongest({-4, -3, -5}).weight == -3);
}

TEST_CASE("of two tokens the one before the last is all that can be hidden, and is told as one") {
  Backend backend(1);
  RunRequest request;
  request.model = testing::reference("gpt2-random");
  request.ids = {5, 9};
  LoadedModel loaded;
  loaded.model = Model::load(request.model, backend);
  FindingsSweep sweep(loaded, {.run = request});
  while (!sweep.finished()) sweep.step(Ctx{backend});
  const auto found = sweep.result();
  const auto token = std::ranges::find(found->all, Finding::Kind::token, &Finding::kind);
  REQUIRE(token != found->all.end());
  CHECK(token->token == 0);
  CHECK(says(*token, "token 5 (position 0)"));
  CHECK(token->provenance.text().ends_with(" of 1 token"));
}

TEST_CASE("findings that were made in one language are told in the one that is chosen then") {
  struct Back {
    ~Back() { use_words({}); }
  } const back;
  WordTable::Entries all;  // every text of the window in brackets
  const WordTable table = WordTable::read(source_dir() / "assets/words/en.json");
  for (const auto& [english, same] : table.entries()) all[english] = "⟦" + english + "⟧";
  for (const char* model : {"tiny-gpt2", "tiny-bert"}) {
    CAPTURE(model);
    use_words({});
    Backend backend{1};
    const Ctx ctx{backend};
    RunRequest request;
    request.model = source_dir() / "models" / model;
    request.text = "One day, Anna sold pies. Tom sold milk. One day, Anna";
    request.capture.all_logits = true;
    FindingsSweep sweep(load_model(request.model, backend), {.run = request});
    while (!sweep.finished()) sweep.step(ctx);
    const auto kept = sweep.result();
    REQUIRE(!kept->all.empty());
    const auto texts = [](const Findings& findings) {
      std::vector<std::string> out;
      for (const Finding& each : findings.all)
        for (const Worded* part : {&each.title, &each.sentence, &each.looks, &each.provenance})
          out.push_back(part->text());
      return out;
    };
    const std::vector<std::string> english = texts(*kept);
    use_words(WordTable(all), "xx");
    const std::vector<std::string> now = texts(*kept);
    CHECK(now == texts(*sweep.result()));  // as if they had been made in it
    for (std::size_t i = 0; i < now.size(); ++i) {
      CAPTURE(now[i]);
      CHECK(now[i].starts_with("⟦") == !english[i].empty());
      std::string bare = now[i];
      for (const char* bracket : {"⟦", "⟧"})
        for (std::size_t at = 0; (at = bare.find(bracket, at)) != bare.npos;) bare.erase(at, 3);
      CHECK(bare == english[i]);  // the same numbers
    }
    use_words({});
    CHECK(texts(*kept) == english);
  }
}

}  // namespace headscope::findings_test
