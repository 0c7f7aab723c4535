// Which device computes: words for it, what comes of them where there is no card, and what goes on when one fails.

#include "core/cuda/device_choice.h"

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <thread>

#include "app/state/answer.h"
#include "app/state/explorer.h"
#include "app/state/generation_controller.h"
#include "app/state/settings.h"
#include "core/base/error.h"
#include "tests/support/paths.h"

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
    if (*lost_) throw Error("CUDA", "a product to succeed", "an unspecified launch failure", "");
    return Backend::linear(x, w, later);
  }

  Tensor resident(Tensor weight) override {
    if (*full_) throw Error("CUDA, NVIDIA L4", "2.1 GB of its memory", "1.0 GB free of 24.0 GB", "a smaller model");
    return weight;
  }

 private:
  std::shared_ptr<std::atomic<bool>> lost_, full_;
};

struct Window {
  std::shared_ptr<std::atomic<bool>> lost = std::make_shared<std::atomic<bool>>(false);
  std::shared_ptr<std::atomic<bool>> full = std::make_shared<std::atomic<bool>>(false);
  int made = 0;
  Explorer explorer{{.threads = 1,
                     .wake = {},
                     .device = {.cuda = true},
                     .devices = {.make = [this](const DeviceChoice& choice, int threads,
                                                std::string& why) -> std::unique_ptr<Backend> {
                       why.clear();
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
  std::string why = "of before";
  CHECK(make_backend({}, 1, why)->name().starts_with("CPU"));
  CHECK(why == "");
  const DeviceChoice missing{.cuda = true, .index = 99};
  CHECK(make_backend(missing, 1, why)->name().starts_with("CPU"));
  CHECK(why.starts_with("The processor computes, as cuda:99 cannot be used: "));
  CHECK(why.ends_with("."));
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
  CHECK(jobs.backend()->name().find("2 threads") != std::string::npos);
  jobs.try_device_again();
  CHECK(jobs.message());
  jobs.set_device({}, 2);
  CHECK(jobs.why_cpu() == "");
}

TEST_CASE("what failed of the card is told from what failed of files") {
  for (const char* where : {"CUDA", "cuBLAS", "cuBLASLt", "device cuda:1", "CUDA, NVIDIA H100 80GB HBM3"})
    CHECK(of_the_card(Error(where, "a", "b")));
  for (const char* where : {"a.safetensors", "memory", "/models/CUDA", "--device"})
    CHECK_FALSE(of_the_card(Error(where, "a", "b")));
  CHECK(processor_goes_on(Error("CUDA", "a product to succeed", "no device", "a hint")) ==
        "The card failed, the processor goes on. CUDA: expected a product to succeed, found no device.");
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

}  // namespace headscope::device_test
