// What the command line says of devices, and that it does its work without a card.

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "app/cli/console.h"
#include "core/base/error.h"
#include "core/tensor/backend.h"
#include "tests/support/paths.h"
#include "tests/support/process.h"

namespace headscope::devices_cli_test {

using namespace testing;

namespace {
std::vector<std::string> run_on(const std::vector<std::string>& device) {
  std::vector<std::string> words{"run", "-m", reference("gpt2-random").string(), "--ids", "3,14,15,9", "--json"};
  words.insert(words.end(), device.begin(), device.end());
  return words;
}
}  // namespace

TEST_CASE("devices lists the processor, every card, and why there is none") {
  const Finished json = run_cli({"devices", "--json", "--threads", "3"});
  REQUIRE(json.code == 0);
  const auto told = nlohmann::json::parse(json.out);
  const auto& processor = told.at("devices").at(0);
  CHECK(processor.at("device") == "cpu");
  CHECK(processor.at("threads") == 3);
  CHECK(processor.at("name").get<std::string>().ends_with("3 threads"));
  CHECK(processor.at("memory_bytes").get<double>() >= processor.at("free_bytes").get<double>());
  CHECK(processor.at("free_bytes").get<double>() > 1e6);
  CHECK(processor.at("compute_capability").is_null());
  CHECK(told.at("devices").size() == find_cards().found.size() + 1);
  CHECK(told.at("why_no_card") == find_cards().why_none);
  const Finished text = run_cli({"devices"});
  CHECK(text.code == 0);
  CHECK(text.out.find("cpu") != std::string::npos);
  if (find_cards().found.empty()) CHECK(text.out.find("No card: " + find_cards().why_none + ".") != std::string::npos);
  const Finished csv = run_cli({"devices", "--csv"});
  CHECK(csv.out.starts_with("device,name,memory_bytes,free_bytes,compute_capability,usable,threads,why_not\ncpu,"));
}

TEST_CASE("without a card the processor does what was asked, and says so once") {
  const Finished here = run_cli(run_on({"--device", "cpu"})), there = run_cli(run_on({"--device", "cuda:99"}));
  CHECK(here.code == 0);
  CHECK(here.err == "");
  CHECK(there.code == 0);
  CHECK(there.err.starts_with("headscope-cli: The processor computes, as cuda:99 cannot be used: "));
  CHECK(there.err.find('\n') == there.err.size() - 1);
  auto a = nlohmann::json::parse(here.out), b = nlohmann::json::parse(there.out);
  for (auto* each : {&a, &b})
    if (each->contains("milliseconds")) each->erase("milliseconds");
  CHECK(a.at("next") == b.at("next"));
}

TEST_CASE("a device or a precision that there is none of is a mistake in the command") {
  for (const char* wrong : {"gpu", "cuda:", "cuda:x", "1"}) {
    const Finished finished = run_cli(run_on({"--device", wrong}));
    CHECK(finished.code == 2);
    CHECK(finished.first_error().find("is not cpu, cuda or cuda:N") != std::string::npos);
  }
  CHECK(run_cli(run_on({"--precision", "f64"})).code == 2);
  CHECK(run_cli(run_on({"--precision", "bf16"})).code == 0);
}

TEST_CASE("a card that fails at work gives way to the processor while nothing was printed, else it is an error") {
  struct Card final : Backend {
    using Backend::Backend;
    std::string name() const override { return "a card"; }
  };
  cli::Console console;
  console.device = "cuda:1";
  console.precision = "tf32";
  std::vector<DeviceChoice> asked;
  console.devices.make = [&](const DeviceChoice& choice, int, Worded& why) -> std::unique_ptr<Backend> {
    why = Worded();
    asked.push_back(choice);
    if (choice.cuda) return std::make_unique<Card>(1);
    return std::make_unique<Backend>(1);
  };
  std::vector<std::string> on;
  const auto work = [&] {
    on.push_back(console.backend().name());
    if (on.back() == "a card") throw CardError("CUDA", "a kernel to succeed", "nothing");
  };
  console.carry_out(work);
  REQUIRE(on.size() == 2);
  CHECK(on[1].starts_with("CPU"));
  REQUIRE(asked.size() == 2);
  CHECK(asked[0] == DeviceChoice{.cuda = true, .index = 1, .precision = Precision::tf32});
  CHECK(asked[1] == DeviceChoice{});

  console.device = "cuda";
  CHECK_THROWS_AS(console.carry_out([] { throw Error("a.json", "numbers", "none"); }), Error);
  console.print("");
  int times = 0;
  CHECK_THROWS_AS(console.carry_out([&] {
    if (++times == 1) throw CardError("CUDA", "a kernel to succeed", "nothing");
  }),
                  CardError);
  CHECK(times == 1);
}

}  // namespace headscope::devices_cli_test
