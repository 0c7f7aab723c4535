// Which device computes: words for it, what comes of them where there is no card, and what goes on when one fails.

#include "core/cuda/device_choice.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "app/state/answer.h"
#include "app/state/explorer.h"
#include "app/state/generation_controller.h"
#include "app/state/jobs.h"
#include "app/state/settings.h"
#include "app/state/sweep_controller.h"
#include "app/state/training_controller.h"
#include "core/base/error.h"
#include "core/tensor/remote.h"
#include "tests/support/paths.h"
#include "tests/support/small_recipe.h"

namespace headscope::device_test {

namespace {

/// Computes as the processor does, until it is lost; keeps weights unless it is full.
class FailingCard final : public Backend {
 public:
  FailingCard(std::shared_ptr<std::atomic<bool>> lost, std::shared_ptr<std::atomic<bool>> full)
      : Backend(1), lost_(std::move(lost)), full_(std::move(full)) {}
  std::string name() const override { return "a card"; }
  bool asynchronous() const override { return true; }
  Tensor linear(const Tensor& x, const Linear& w, RowQueue* later) override {
    if (*lost_) throw CardError("CUDA", "a product to succeed", "an unspecified launch failure");
    return Backend::linear(x, w, later);
  }

  Tensor resident(Tensor weight) override {
    if (*full_) throw CardError("CUDA, NVIDIA L4", "2.1 GB of its memory", "1.0 GB free of 24.0 GB", "a smaller model");
    return weight;
  }

 private:
  std::shared_ptr<std::atomic<bool>> lost_, full_;
};

struct Window {
  std::shared_ptr<std::atomic<bool>> lost = std::make_shared<std::atomic<bool>>(false);
  std::shared_ptr<std::atomic<bool>> full = std::make_shared<std::atomic<bool>>(false);
  int made = 0;
  Explorer explorer{
      {.threads = 1,
       .wake = {},
       .device = {.cuda = true},
       .devices = {.make = [this](const DeviceChoice& choice, int threads, Worded& why) -> std::unique_ptr<Backend> {
         why = Worded();
         if (!choice.cuda) return std::make_unique<Backend>(threads);
         ++made;
         return std::make_unique<FailingCard>(lost, full);
       }}}};
  std::string message() const { return explorer.jobs.message() ? explorer.jobs.message()->text.substr(0, 35) : ""; }
  bool until(const std::function<bool()>& done, const std::function<void()>& further = {}) {
    for (int i = 0; i < 4000; ++i) {
      if (done()) return true;
      explorer.frame(0);
      if (further) further();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return done();
  }
  bool settle() {
    return until([&] {
      const auto& run = explorer.results().run;
      return !explorer.jobs.busy() && run && run->request.ids == explorer.state().document.ids &&
             explorer.results().current_losses();
    });
  }
};

const std::string gone = "The card failed, the processor goes";

}  // namespace

TEST_CASE("a device is named by cpu, cuda or cuda:N, and by nothing else") {
  CHECK(parse_device("cpu") == DeviceChoice{});
  CHECK(parse_device("cuda") == DeviceChoice{.cuda = true});
  CHECK(parse_device("cuda:0") == DeviceChoice{.cuda = true});
  CHECK(parse_device("cuda:12") == DeviceChoice{.cuda = true, .index = 12});
  for (const char* wrong :
       {"", "gpu", "CPU", "cuda:", "cuda:-1", "cuda:+1", "cuda:1x", "cuda 1", "cuda:99999999999", "cpu:0", "cudax"})
    CHECK_MESSAGE(!parse_device(wrong), wrong);
  CHECK(device_text({}) == "cpu");
  CHECK(device_text({.cuda = true, .index = 3}) == "cuda:3");
  // The processor is the processor, whatever card and precision stand beside it.
  CHECK(DeviceChoice{.index = 2, .precision = Precision::bf16} == DeviceChoice{});
  CHECK(DeviceChoice{.cuda = true, .precision = Precision::bf16} != DeviceChoice{.cuda = true});
}

TEST_CASE("where no card can be used the processor computes, and a sentence says why") {
  const Cards cards = find_cards();
  CHECK(cards.found.empty() == !cards.why_none.empty());
  Worded why = "of before";
  CHECK(make_backend({}, 1, why)->name().starts_with("CPU"));
  CHECK(why == "");
  const DeviceChoice missing{.cuda = true, .index = 99};
  CHECK(make_backend(missing, 1, why)->name().starts_with("CPU"));
  CHECK(why.text().starts_with("The processor computes, as cuda:99 cannot be used: "));
  CHECK(why.text().ends_with("."));
  if (cuda_versions().empty()) CHECK(cards.why_none == "this program was built without CUDA");

  JobRunner jobs(1, {}, missing);
  CHECK(jobs.device() == DeviceChoice{});
  REQUIRE(jobs.message());
  CHECK(jobs.message()->text == why);
  CHECK(jobs.message()->level == Message::Level::info);
  CHECK(jobs.why_cpu() == why);
  jobs.dismiss();
  jobs.set_device(missing, 1);  // asked for in every frame: told once
  CHECK_FALSE(jobs.message());
  jobs.set_device(missing, 2);
  CHECK_FALSE(jobs.message());
  CHECK(jobs.why_cpu() == why);
  CHECK(jobs.backend()->described().find("2 threads") != std::string::npos);
  jobs.try_device_again();
  CHECK(jobs.message());
  jobs.set_device({}, 2);
  CHECK(jobs.why_cpu() == "");
}

TEST_CASE("what failed of the card passes whoever catches what is wrong with the work, and is told in one sentence") {
  const CardError failure("CUDA", "a product to succeed", "no device", "a hint");
  CHECK(std::string(failure.what()) == Error("CUDA", "a product to succeed", "no device", "a hint").what());
  CHECK(processor_goes_on(failure) ==
        "The card failed, the processor goes on. CUDA: expected a product to succeed, found no device.");
  bool as_error = false, as_card = false;
  try {
    try {
      throw failure;
    } catch (const Error&) {
      as_error = true;
    }
  } catch (const CardError& error) {
    as_card = error.why.found == "no device";
  }
  CHECK_FALSE(as_error);
  CHECK(as_card);
  if (!why_no_cuda().empty()) CHECK_THROWS_AS(make_cuda_backend(), CardError);
}

TEST_CASE("settings keep the device and its precision, and refuse others") {
  Settings settings;
  settings.device = {.cuda = true, .index = 1, .precision = Precision::tf32};
  CHECK(settings_from_json(to_json(settings), "x") == settings);
  CHECK(settings_from_json(to_json(Settings{}), "x").device == DeviceChoice{});
  CHECK_THROWS_AS(settings_from_json(R"({"type": "headscope settings", "device": "cuda:x"})", "x"), Error);
  CHECK_THROWS_AS(settings_from_json(R"({"type": "headscope settings", "precision": "f64"})", "x"), Error);
}

TEST_CASE(
    "a card that fails gives way to the processor: the model is opened again and the text read, with one message") {
  Window w;
  w.explorer.run.open_model(testing::reference("gpt2-random"));
  w.explorer.editor.set_ids({3, 14, 15, 9});
  REQUIRE(w.settle());
  CHECK(w.message() == "");
  CHECK(w.explorer.jobs.backend()->name() == "a card");
  CHECK(w.explorer.results().model_device == DeviceChoice{.cuda = true});
  const auto reading = w.explorer.results().model_reading;
  Answer<int, std::string> question({"question", "asking"});
  const auto ask = [&] {
    question.want(w.explorer.jobs, static_cast<int>(w.explorer.results().model_reading), [](const Ctx& ctx) {
      const Tensor x = Tensor::zeros({1, 2});
      ctx.backend.linear(x, ctx.backend.linear_weights({Tensor::zeros({2, 2})}, {}));
      return ctx.backend.name();
    });
  };

  *w.lost = true;
  w.explorer.editor.set_ids({3, 14, 15, 9, 2, 6});
  ask();
  REQUIRE(w.settle());
  CHECK(w.message() == gone);
  CHECK(w.explorer.jobs.device() == DeviceChoice{});
  CHECK(w.explorer.results().model_device == DeviceChoice{});
  CHECK(w.explorer.results().model_reading > reading);
  CHECK(w.explorer.results().run->trace->tokens.size() == 6);
  CHECK(w.explorer.results().facts->trace == w.explorer.results().run->trace);
  CHECK(w.made == 1);  // it is not tried again by itself
  ask();
  REQUIRE(w.until([&] { return question.current() != nullptr; }));
  CHECK(question.current()->starts_with("CPU"));
  CHECK(w.message() == gone);  // until somebody has read it
  CHECK_FALSE(w.explorer.run.behind());

  *w.lost = false;
  w.explorer.jobs.try_device_again();
  REQUIRE(w.until([&] { return w.explorer.results().model_device.cuda; }));
  REQUIRE(w.settle());
  CHECK(w.made == 2);
  CHECK(w.explorer.jobs.why_cpu() == "");
}

TEST_CASE("a model that a card has no room for is opened by the processor") {
  Window w;
  *w.full = true;
  bool opened = false;
  w.explorer.run.open_model(testing::reference("gpt2-random"), {}, [&] { opened = true; });
  w.explorer.editor.set_ids({3, 14, 15});
  REQUIRE(w.settle());
  CHECK(opened);
  CHECK(w.message() == gone);
  CHECK(w.explorer.results().model_device == DeviceChoice{});
}

TEST_CASE("where another device is chosen the same model is opened for it, and the text read again") {
  Window w;
  w.explorer.run.open_model(testing::reference("gpt2-random"));
  w.explorer.editor.set_ids({3, 14, 15});
  REQUIRE(w.settle());
  w.explorer.jobs.set_device({}, 1);
  REQUIRE(w.until([&] { return w.explorer.results().model_device == DeviceChoice{}; }));
  REQUIRE(w.settle());
  CHECK(w.explorer.results().run->trace->tokens.size() == 3);
  CHECK(w.message() == "");
}

TEST_CASE("text that was being written when the card failed stays, and is written on") {
  Window w;
  GenerationController writes(w.explorer.jobs, w.explorer.editor, w.explorer.run, w.explorer.files,
                              std::size_t{256} << 20);
  const auto frame = [&] { writes.frame(true); };
  w.explorer.run.open_model(testing::reference("gpt2-random"));
  w.explorer.editor.set_ids({3, 14, 15, 9, 2, 6});
  writes.settings().pace = 0;
  writes.settings().greedy = true;
  REQUIRE(w.until([&] { return writes.next().has_value(); }, frame));
  writes.step();
  REQUIRE(w.until([&] { return writes.branch().steps.size() == 1 && writes.next(); }, frame));
  const auto first = writes.branch().steps[0].step;
  *w.lost = true;
  writes.step();
  REQUIRE(w.until([&] { return writes.branch().steps.size() == 2; }, frame));
  CHECK(writes.branch().steps[0].step == first);
  CHECK(w.message() == gone);
  CHECK(w.explorer.results().model_device == DeviceChoice{});
  writes.run();
  REQUIRE(w.until([&] { return !writes.branch().ended.empty(); }, frame));
  CHECK(writes.branch().steps.size() > 4);
}

TEST_CASE("a token of one's choice is not lost with the card that should have read it") {
  Window w;
  GenerationController writes(w.explorer.jobs, w.explorer.editor, w.explorer.run, w.explorer.files,
                              std::size_t{256} << 20);
  const auto frame = [&] { writes.frame(true); };
  w.explorer.run.open_model(testing::reference("gpt2-random"));
  w.explorer.editor.set_ids({3, 14, 15, 9, 2, 6});
  writes.settings().greedy = true;
  REQUIRE(w.until([&] { return writes.next().has_value(); }, frame));
  const std::int32_t other = writes.next()->step->token == 5 ? 7 : 5;
  *w.lost = true;
  writes.fork(0, other);
  REQUIRE(w.until([&] { return writes.branch().steps.size() == 1 && writes.next(); }, frame));
  CHECK(writes.branch().steps[0].step->token == other);
  CHECK(writes.branch().steps[0].step->by == GenerationStep::By::given);
  CHECK(w.message() == gone);
}

TEST_CASE("models in the form of a device that computes no more are let go") {
  Window w;
  w.explorer.run.open_model(testing::reference("gpt2-random"));
  w.explorer.editor.set_ids({3, 14, 15});
  REQUIRE(w.settle());
  const std::weak_ptr<const Model> first = w.explorer.results().model.model;
  w.explorer.run.open_model(testing::reference("llama-gqa"));
  REQUIRE(w.until([&] { return w.explorer.results().model_folder == testing::reference("llama-gqa"); }));
  REQUIRE(w.settle());
  CHECK_FALSE(first.expired());  // undo goes back to it at once
  const std::weak_ptr<const Model> second = w.explorer.results().model.model;
  w.explorer.jobs.set_device({}, 1);
  REQUIRE(w.until([&] { return w.explorer.results().model_device == DeviceChoice{}; }));
  REQUIRE(w.settle());
  CHECK(first.expired());
  CHECK(second.expired());
}

TEST_CASE("a target that the card failed to write is written by the processor") {
  Window w;
  w.explorer.run.open_model(testing::source_dir() / "models" / "tiny-translate");
  w.explorer.editor.set_source("the dog sees a cat");
  REQUIRE(w.until([&] { return w.explorer.results().run && !w.explorer.jobs.busy(); }));
  *w.lost = true;
  w.explorer.run.write_target();
  REQUIRE(w.until([&] { return !w.explorer.state().document.text.empty(); }));
  CHECK(w.message() == gone);
  CHECK(w.explorer.results().model_device == DeviceChoice{});
}

namespace {
struct Steps final : Sweep {
  using Result = int;
  void step(const Ctx& ctx) override {
    const Tensor x = Tensor::zeros({1, 2});
    ctx.backend.linear(x, ctx.backend.linear_weights({Tensor::zeros({2, 2})}, {}));
    names.push_back(ctx.backend.name());
    std::this_thread::sleep_for(std::chrono::milliseconds(15));
  }
  int done() const override { return static_cast<int>(names.size()); }
  int total() const override { return 40; }
  bool finished() const override { return done() == total(); }
  double share() const override { return done() / 40.0; }
  std::shared_ptr<const int> result() const { return std::make_shared<const int>(done()); }
  std::vector<std::string> names;
};
}  // namespace

TEST_CASE("a sweep ends on the device that it began on, whatever is chosen meanwhile, and ends where its card fails") {
  using Phase = SweepController::Phase;
  Window w;
  SweepController sweeps(w.explorer.jobs, "test");
  const auto frame = [&] { sweeps.frame(); };
  auto sweep = std::make_shared<Steps>();
  int known = 0;
  const std::function take([&](std::shared_ptr<const int> now) { known = *now; });
  sweeps.start(sweep, take);
  REQUIRE(w.until([&] { return known > 0; }, frame));
  w.explorer.jobs.set_device({}, 1);
  REQUIRE(w.until([&] { return sweeps.phase() == Phase::finished; }, frame));
  CHECK(std::ranges::count(sweep->names, "a card") == 40);
  CHECK(sweep.use_count() == 1);  // its model goes with it

  w.explorer.jobs.set_device({.cuda = true}, 1);
  sweep = std::make_shared<Steps>();
  known = 0;
  sweeps.start(sweep, take);
  REQUIRE(w.until([&] { return known > 0; }, frame));
  *w.lost = true;
  REQUIRE(w.until([&] { return sweeps.phase() == Phase::failed; }, frame));
  CHECK(sweeps.error() ==
        "The card failed. What was found stays; started again, the sweep begins anew, on the processor.");
  CHECK(w.message() == gone);
  CHECK(known > 0);
  CHECK(sweep.use_count() == 1);
}

TEST_CASE("a trace that is shown has all its numbers in this machine's memory") {
  struct Far final : Remote {
    explicit Far(const std::vector<float>& here) : Remote(here.data(), false) {}
    void fetch() override { ++fetched; }
    int fetched = 0;
  };
  const std::vector<float> here(6, 1.0f);
  std::vector<std::shared_ptr<Far>> far;
  const auto tensor = [&](Shape shape) {
    far.push_back(std::make_shared<Far>(here));
    return Tensor::of(far.back(), shape);
  };
  auto part = std::make_shared<Trace>();
  part->sites.emplace(Site{SiteKind::resid_post, 1}, tensor({2, 3}));
  auto whole = std::make_shared<Trace>();
  whole->logits = tensor({2, 3});
  whole->patches = tensor({3, 2});
  whole->sites.emplace(Site{SiteKind::resid_post, 0}, tensor({2, 3}));
  whole->cross = part;
  CHECK(jobs::at_home(whole) == whole);
  for (const auto& each : far) CHECK(each->fetched == 1);
}

TEST_CASE("a card that fails under a training run: the processor goes on from the last moment") {
  Window w;
  TrainingController training(w.explorer.jobs, w.explorer.editor, w.explorer.run);
  const auto until = [&](const auto& done) { return w.until(done, [&] { training.frame(); }); };
  training.draft() = testing::small_recipe();
  training.start();
  training.pause_at(12);
  REQUIRE(
      until([&] { return training.progress().step >= 12 && training.phase() == TrainingController::Phase::paused; }));
  CHECK(w.message() == "");
  *w.lost = true;
  training.pause_at(0);
  training.resume();
  REQUIRE(until([&] { return training.phase() == TrainingController::Phase::finished; }));
  CHECK(w.message() == gone);
  CHECK(training.progress().step == 40);
  CHECK(training.curve().size() == 40);

  // Lost before the first step: the processor begins.
  *w.lost = false;
  w.explorer.jobs.try_device_again();
  *w.lost = true;
  training.start();
  REQUIRE(until([&] { return training.phase() == TrainingController::Phase::finished; }));
  CHECK(training.progress().step == 40);
}

}  // namespace headscope::device_test
