// Models whose layers differ in their number of heads (ModelDims::heads_of): what is read of them, edited and kept goes
// by the heads of each layer. That their numbers are right families_test.cpp says.

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "core/analysis/head_ablation.h"
#include "core/analysis/head_circuit.h"
#include "core/analysis/logit_attribution.h"
#include "core/analysis/saliency.h"
#include "core/base/error.h"
#include "core/base/nth.h"
#include "core/edits/edit_notes.h"
#include "core/io/trace_file.h"
#include "core/metrics/corpus_statistics.h"
#include "core/metrics/rollout.h"
#include "core/model/config_reader.h"
#include "core/model/family.h"
#include "core/model/model.h"
#include "core/run/run_request.h"
#include "core/trace/model_heads.h"
#include "tests/support/largest_difference.h"
#include "tests/support/paths.h"
#include "viz/scene/matrix_scene.h"

namespace headscope::layer_heads_test {

using testing::largest_difference;
using testing::reference;

namespace {

struct Subject {
  Backend backend{2};
  LoadedModel loaded;
  RunRequest request;
  explicit Subject(const std::string& folder) {
    request.model = reference("families") / folder;
    loaded.model = Model::load(request.model, backend);
    request.ids = {3, 17, 8, 21, 40, 3, 17, 9, 33, 12, 40, 5, 3};
    request.capture.maps = MapStorage::dense;
  }
  const ModelDims& dims() const { return loaded.model->config().dims; }
  Ctx ctx() { return {backend}; }
  std::shared_ptr<const Trace> run_with(const std::vector<std::string>& edits, std::set<SiteKind> sites = {}) {
    RunRequest own = request;
    own.capture.sites = std::move(sites);
    for (const std::string& edit : edits) own.edits.push_back(parse_intervention(edit, "test"));
    return run(loaded, own, ctx());
  }
};

ModelConfig read(const std::string& type, const std::string& keys) {
  return family(type, "here").read_config(ConfigReader::parse("{\"vocab_size\": 43" + keys + "}", "here"));
}

}  // namespace

TEST_CASE("layers with a state have as many heads as attend where their lanes allow it, else one for every lane") {
  const std::string falcon = R"(, "hidden_size": 40, "num_hidden_layers": 3, "intermediate_size": 16, "head_dim": 6,
      "max_position_embeddings": 40, "num_key_value_heads": 2, "mamba_d_ssm": 64, "mamba_d_head": 2,
      "mamba_d_state": 4, "mamba_n_heads": 32, "num_attention_heads": )";
  for (const int attend : {10, 20}) {  // the 3B and the 34B
    const ModelDims d = read("falcon_h1", falcon + std::to_string(attend)).dims;
    CHECK(d.state_heads == 32);
    CHECK(d.heads_of(0) == 32);
    CHECK(d.heads_of(1) == attend);
    CHECK(d.most_heads() == 32);
    CHECK(d.all_heads() == 3 * (32 + attend));
    CHECK(d.of_layer(2).heads == 32);
    CHECK(d.of_layer(2).kv_heads == 32);
    CHECK(d.of_layer(2).d_head == 2);
    CHECK(d.of_layer(3).heads == attend);
    CHECK(d.group(3) == attend / 2);
    CHECK(heads_text(d) == std::to_string(attend) + "–32");
    CHECK(head_index(d, {2, 1}) == 32 + attend + 1);
    CHECK(every_head(d).size() == static_cast<std::size_t>(d.all_heads()));
    CHECK(every_head(d)[static_cast<std::size_t>(32 + attend + 1)] == HeadId{2, 1});
    CHECK(nearest_head(d, {1, 31}) == HeadId{1, attend - 1});
    CHECK(nearest_head(d, {9, 31}) == HeadId{5, attend - 1});
    CHECK(nearest_head(d, {4, 31}) == HeadId{4, 31});
  }
  const ModelDims same = read("falcon_h1", falcon + "8").dims;
  CHECK(same.state_heads == 0);
  CHECK(same.heads_of(0) == 8);
  CHECK(same.of_layer(0).d_head == 8);
  CHECK(heads_text(same) == "8");

  const auto refused = [](const std::string& type, const std::string& keys, const char* words) {
    CHECK_THROWS_WITH_AS(read(type, keys), doctest::Contains(words), Error);
  };
  refused("falcon_h1",
          R"(, "hidden_size": 40, "num_hidden_layers": 3, "intermediate_size": 16, "head_dim": 6, "mamba_d_head": 1,
              "max_position_embeddings": 40, "num_attention_heads": 10, "num_key_value_heads": 2, "mamba_d_ssm": 1025,
              "mamba_n_heads": 1025)",
          "mamba_n_heads: expected at most 1024 heads, or lanes that the 10 heads of attention divide, found 1025");
  refused("granitemoehybrid",
          R"(, "hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 4, "max_position_embeddings": 40,
              "intermediate_size": 16, "num_local_experts": 0, "shared_intermediate_size": 9, "mamba_d_state": 5,
              "mamba_n_heads": 6,
              "mamba_d_head": 8)",
          "mamba_n_heads: expected lanes that the 4 heads of attention divide, found 6");  // and none attends
}

TEST_CASE("maps, sites and files go by the heads of each layer") {
  for (const char* folder : {"falcon_h1-heads", "falcon_h1-fewer", "qwen3_5_text-heads"}) {
    CAPTURE(folder);
    Subject s(folder);
    const ModelDims& d = s.dims();
    REQUIRE(d.state_heads > 0);
    const auto trace = s.run_with({}, {SiteKind::z, SiteKind::result, SiteKind::resid_pre});
    REQUIRE(trace->maps.size() == static_cast<std::size_t>(d.all_heads()));
    for (const HeadId head : every_head(d)) {
      CHECK(trace->maps[static_cast<std::size_t>(head_index(d, head))].id() == head);
      CHECK(trace->sites.at({SiteKind::z, head.layer}).dim(1) == d.heads_of(head.layer));
    }
    const std::string own = "layer 0 has " + std::to_string(d.heads_of(0)) + ", found";
    CHECK_THROWS_WITH_AS((void)trace->map({0, d.heads_of(0)}), doctest::Contains(own.c_str()), Error);
    CHECK(trace->plan.summary.find(std::to_string(d.all_heads()) + " maps") == 0);
    const auto file = testing::scratch_dir("layer-heads") / "trace.safetensors";
    write_trace(*trace, file, {.sites = {SiteKind::pattern, SiteKind::z, SiteKind::result}});
    const auto again = open_trace(file);
    CHECK(again->model.dims.state_heads == d.state_heads);
    REQUIRE(again->maps.size() == trace->maps.size());
    for (std::size_t m = 0; m < again->maps.size(); ++m) {
      CHECK(again->maps[m].id() == trace->maps[m].id());
      CHECK(largest_difference(again->maps[m].to_dense(), trace->maps[m].to_dense()) == 0);
    }
    // What heads write adds up to what the layer does.
    for (int layer = 0; layer < d.layers; ++layer)
      CHECK(trace->sites.at({SiteKind::result, layer}).dim(1) == d.heads_of(layer));
  }
}

TEST_CASE("an edit of a head is of that head in the layers that have it, and refused where none does") {
  Subject s("falcon_h1-heads");  // 8 heads in layers 0 and 2, 5 in 1 and 3
  const auto plain = s.run_with({}), all = s.run_with({"*.7: ablate zero"}),
             two = s.run_with({"0.7: ablate zero", "2.7: ablate zero"}), first = s.run_with({"0.7: ablate zero"});
  CHECK(largest_difference(plain->logits, all->logits) > 1e-4);
  CHECK(largest_difference(two->logits, first->logits) > 1e-4);
  CHECK(largest_difference(all->logits, two->logits) == 0);
  const auto shared = s.run_with({"*.2: ablate zero"}),
             each = s.run_with({"0.2: ablate zero", "1.2: ablate zero", "2.2: ablate zero", "3.2: ablate zero"});
  CHECK(largest_difference(shared->logits, each->logits) == 0);
  CHECK_THROWS_WITH_AS(s.run_with({"1.5: ablate zero"}), doctest::Contains("a head from 0 to 4"), Error);
  CHECK_THROWS_WITH_AS(s.run_with({"0.8: ablate zero"}), doctest::Contains("a head from 0 to 7"), Error);
  CHECK_THROWS_WITH_AS(s.run_with({"*.8: ablate zero"}), doctest::Contains("a head from 0 to 7"), Error);
  CHECK_THROWS_WITH_AS(s.run_with({"4.0: ablate zero"}), doctest::Contains("a layer from 0 to 3"), Error);
  const auto masked = s.run_with({"*: mask window 2"}), set = s.run_with({"0.7: weight 9 4 0.5"});
  for (const HeadId head : every_head(s.dims())) CHECK(masked->map(head).weight(9, 3) == 0);
  CHECK(set->map({0, 7}).weight(9, 4) == doctest::Approx(0.5));
  CHECK(largest_difference(set->map({0, 6}).to_dense(), plain->map({0, 6}).to_dense()) == 0);
  CHECK(largest_difference(plain->logits, s.run_with({"*: temperature 0.5"})->logits) > 1e-4);
  Subject fewer("falcon_h1-fewer");  // 4 in layers 0 and 2, 6 in the others
  CHECK(largest_difference(fewer.run_with({"*.5: ablate mean"})->logits,
                           fewer.run_with({"1.5: ablate mean", "3.5: ablate mean"})->logits) == 0);
  CHECK_THROWS_WITH_AS(fewer.run_with({"2.4: ablate zero"}), doctest::Contains("a head from 0 to 3"), Error);
}

TEST_CASE("what is computed of every head is of as many as there are") {
  Subject s("falcon_h1-heads");
  const ModelDims& d = s.dims();
  const auto count = static_cast<std::size_t>(d.all_heads());
  REQUIRE(count == 26);
  const auto trace = s.run_with({}, attribution_sites(*s.loaded.model));
  const LogitAttribution found = logit_attribution(*s.loaded.model, *trace, {.position = 7, .token = 11});
  CHECK(found.sum() == doctest::Approx(found.logit).epsilon(1e-4));
  REQUIRE(found.by_source.dim(0) == 26);
  for (const HeadId head : every_head(d)) {
    const double whole = found.value(AttributionPart::Kind::head, head.layer, head.head);
    double split = 0;
    for (Index key = 0; key < 13; ++key) split += static_cast<double>(found.by_source.at(head_index(d, head), key));
    if (d.attends(head.layer))
      CHECK(split == doctest::Approx(whole).epsilon(1e-4).scale(0.1));
    else
      CHECK(std::isnan(split));
  }
  // Every layer's row is a whole one, whatever it has heads.
  const std::vector<Tensor> mixing = mixing_matrices(*trace, 0.5);
  for (const Tensor& layer : mixing) {
    double row = 0;
    for (Index key = 0; key < 13; ++key) row += static_cast<double>(layer.at(9, key));
    CHECK(row == doctest::Approx(1));
  }
  HeadAblationRequest asked{s.request, Ablate{Ablate::By::zero}, AnswerPair{11, 9}};
  HeadAblationSweep sweep(s.loaded, asked);
  while (!sweep.finished()) sweep.step(s.ctx());
  const auto ablated = sweep.result();
  REQUIRE(ablated->heads.size() == count);
  for (std::size_t i = 0; i < count; ++i) CHECK(ablated->heads[i].id == every_head(d)[i]);
  const auto alone = s.run_with({"2.6: ablate zero"});
  const auto row = alone->logits.select(0, 12);
  CHECK(ablated->heads[static_cast<std::size_t>(head_index(d, {2, 6}))].after.logit_difference ==
        doctest::Approx(static_cast<double>(row.at(11) - row.at(9))).epsilon(1e-4));
  const Saliency weighed = read_saliency(s.loaded, s.request, s.ctx(), *trace, {});
  CHECK(weighed.importance.shape() == Shape{4, 8});
  for (int layer = 0; layer < 4; ++layer)
    for (int head = 0; head < 8; ++head)
      CHECK(std::isnan(weighed.importance.at(layer, head)) == !d.has_head(layer, head));
  CorpusStatistics statistics(d.layers, d.most_heads(), 13);
  statistics.add(*trace, {}, s.backend.pool());
  CHECK(statistics.has(0 * 8 + 7));
  CHECK(statistics.has(1 * 8 + 4));
  CHECK_FALSE(statistics.has(1 * 8 + 5));
  CHECK(statistics.has(2 * 8));
  // A cell that stands for no head has no number, and is as quiet as those that are awaited.
  std::vector<double> values;
  for (std::size_t i = 0; i < count; ++i) values.push_back(static_cast<double>(i));
  const Matrix matrix = head_matrix(d, values);
  CHECK(matrix.values.shape() == Shape{4, 8});
  REQUIRE(matrix.pending.size() == 32);
  for (int layer = 0; layer < 4; ++layer)
    for (int head = 0; head < 8; ++head) CHECK((nth(matrix.pending, layer * 8 + head) == 0) == d.has_head(layer, head));
  CHECK(matrix.pending_text == "no such head");
  CHECK(matrix.values.at(1, 4) == 12);
  CHECK(std::isnan(matrix.values.at(1, 5)));
  CHECK(matrix.values.at(2, 0) == 13);
  CHECK(matrix.values.at(3, 4) == 25);
  const Matrix half = head_matrix(d, std::span(values).first(9));
  REQUIRE(half.pending.size() == 32);
  CHECK(half.pending[8] == 0);   // 1.0
  CHECK(half.pending[9] == 1);   // 1.1
  CHECK(half.pending[13] == 1);  // none
  CHECK(half.pending[16] == 1);  // 2.0
  // So is a head without a number whose layer does not attend; of one that attends it stays a missing number.
  values[0] = values[8] = std::numeric_limits<double>::quiet_NaN();  // 0.0 has a state, 1.0 attends
  const Matrix attending = head_matrix(d, values);
  CHECK(attending.pending[0] == 1);
  CHECK(attending.pending[1] == 0);
  CHECK(attending.pending[8] == 0);
  CHECK(attending.pending_text == "no attention here");
}

TEST_CASE("a patch of the stream between the two layers of a block says what it does not reach") {
  Subject s("falcon_h1");
  const ModelInfo info = s.loaded.model->info();
  const auto notes = [&](const char* edit) { return edit_notes({parse_intervention(edit, "test")}, info, 13); };
  REQUIRE(notes("1: patch resid_pre from \"9\"").size() == 1);
  CHECK(notes("1: patch resid_pre from \"9\"")[0].find("reaches the MLP and the stream alone") != std::string::npos);
  CHECK(notes("*: patch resid_pre from \"9\"").size() == 1);
  CHECK(notes("2: patch resid_pre from \"9\"").empty());
  CHECK(notes("1: patch attn_out from \"9\"").empty());
  ModelInfo other = info;
  other.dims.paired = false;
  CHECK(edit_notes({parse_intervention("1: patch resid_pre from \"9\"", "test")}, other, 13).empty());
}

}  // namespace headscope::layer_heads_test
