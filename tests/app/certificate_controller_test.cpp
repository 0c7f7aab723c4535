#include "app/state/certificate_controller.h"

#include <doctest/doctest.h>

#include <chrono>
#include <fstream>
#include <thread>

#include "app/state/exports.h"
#include "core/base/file.h"
#include "tests/app/explorer_controller.h"

namespace headscope::certificate_controller_test {

using testing::Controller;
using testing::example;
using testing::reference;
using testing::scratch_dir;
using testing::story;

namespace {
namespace fs = std::filesystem;
using State = CertificateController::State;

struct Bench : Controller {
  CertificateController& certificates = explorer.certificates;
  explicit Bench(const fs::path& kept = {}, bool automatic = true) {
    certificates.remember_in(kept);
    certificates.check_small_models(automatic);
  }
  void open(const fs::path& model) {
    explorer.run.open_model(model);
    if (explorer.state().document.text.empty()) explorer.editor.set_text(story);
    wait();
  }
  /// Until nothing runs, aside neither. `later`: seconds that pass.
  void wait(double later = 0) {
    now += later;
    settle();
    for (int i = 0; i < 20000 && (certificates.busy() || !explorer.jobs.aside().doing.empty()); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      explorer.frame(now += 0.001);
    }
    settle();
  }
};

fs::path copy_of(const fs::path& model, const std::string& name) {
  const fs::path folder = scratch_dir("controller-" + name) / name;
  fs::copy(model, folder, fs::copy_options::recursive);
  return folder;
}
}  // namespace

TEST_CASE("a small model is checked without being asked, aside; another one has its own certificate") {
  Bench b;
  CHECK(b.certificates.state() == State::none);
  CHECK(b.certificates.note() == "");
  b.open(example());
  CHECK(b.message() == "");
  REQUIRE(b.certificates.state() == State::checked);
  const auto first = b.certificates.certificate();
  CHECK(first->model == "induction");
  CHECK(first->agrees());
  CHECK(first->files == b.results().model_files);
  CHECK_FALSE(b.certificates.remembered());
  CHECK(b.certificates.note() == model_note("induction", first.get()));
  CHECK(b.certificates.effort() == "");

  b.open(reference("llama-gqa"));
  REQUIRE(b.certificates.state() == State::checked);
  CHECK(b.certificates.certificate()->model == "llama-gqa");
  CHECK(b.certificates.certificate()->family == "llama");
}

TEST_CASE("unasked it is not checked; asked it is, and a check can be stopped and is not taken up by itself") {
  Bench b({}, false);
  b.open(example());
  CHECK(b.certificates.state() == State::not_checked);
  CHECK(b.certificates.note() == "model induction, not checked beside its float64 definition");
  b.certificates.check();
  CHECK(b.certificates.state() == State::checking);
  b.certificates.stop();
  b.wait();
  CHECK(b.certificates.state() == State::not_checked);
  b.certificates.check_small_models(true);
  b.wait();
  CHECK(b.certificates.state() == State::not_checked);
  b.certificates.check();
  b.wait();
  CHECK(b.certificates.state() == State::checked);
  const auto first = b.certificates.certificate();
  b.certificates.check();  // again
  CHECK(b.certificates.state() == State::checking);
  b.wait();
  CHECK(b.certificates.certificate() != first);
}

TEST_CASE("what was found ends with the files: until the model is opened again") {
  const fs::path folder = copy_of(reference("gpt2-random"), "stale");
  Bench b;
  b.explorer.editor.set_ids({1, 5, 2, 5});
  b.open(folder);
  REQUIRE(b.certificates.state() == State::checked);
  std::ofstream(folder / "config.json", std::ios::app) << "\n";
  b.wait(3);
  CHECK(b.certificates.state() == State::changed);
  CHECK_FALSE(b.certificates.certificate());
  CHECK(b.certificates.note() == "model stale, not checked beside its float64 definition");
  b.certificates.check();  // of what?
  CHECK(b.certificates.state() == State::changed);
  b.open(folder);
  REQUIRE(b.certificates.state() == State::checked);
  CHECK(b.certificates.certificate()->files == b.results().model_files);
}

TEST_CASE("certificates are remembered between starts for the same files, with their date") {
  const fs::path kept = scratch_dir("controller-kept"), folder = copy_of(example(), "kept");
  std::string date;
  {
    Bench b(kept);
    b.open(folder);
    REQUIRE(b.certificates.state() == State::checked);
    date = b.certificates.certificate()->date;
  }
  {
    Bench b(kept, false);
    b.open(folder);
    REQUIRE(b.certificates.state() == State::checked);
    CHECK(b.certificates.remembered());
    CHECK(b.certificates.certificate()->date == date);
    b.wait(3);  // looked at again: still the same
    CHECK(b.certificates.remembered());
    b.open(example());
    CHECK(b.certificates.state() == State::not_checked);
  }
  fs::last_write_time(folder / "model.safetensors",
                      fs::last_write_time(folder / "model.safetensors") + std::chrono::seconds(1));
  Bench b(kept, false);
  b.open(folder);
  CHECK(b.certificates.state() == State::not_checked);
}

TEST_CASE("sessions keep what was known of the model, and say so when they are opened; exports carry it") {
  const fs::path folder = scratch_dir("controller-session");
  std::string note;
  {
    Bench b;
    b.open(example());
    note = b.certificates.note();
    REQUIRE(note.find("checked beside") != std::string::npos);
    b.explorer.files.save(folder / "session.json");
    ExportOptions options{folder / "head.svg"};
    options.note.model = note;
    export_view(b.explorer.jobs, b.explorer.state(), b.results(), options);
    b.settle();
    CHECK(read_file(folder / "head.svg").find(note) != std::string::npos);
    CHECK(b.explorer.files.opened_model_note() == "");
  }
  const Session session = session_from_json(read_file(folder / "session.json"), "s");
  CHECK(session.model_note == note);
  CHECK(session_from_json(to_json(session), "s") == session);
  Bench b({}, false);
  b.explorer.files.open(folder / "session.json");
  b.wait();
  CHECK(b.explorer.files.opened_model_note() == note);
  CHECK(b.certificates.state() == State::not_checked);  // now, by this start
}

}  // namespace headscope::certificate_controller_test
