#include "app/window/unsaved_work.h"

#include <fmt/chrono.h>
#include <fmt/ranges.h>

#include <chrono>
#include <stdexcept>

#include "app/widgets/controls.h"
#include "app/widgets/keyboard.h"
#include "app/widgets/paragraph.h"
#include "app/window/floating.h"
#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/words.h"

namespace headscope {

namespace fs = std::filesystem;

namespace {
/// Turns of the loop that wait for a checkpoint to be written at the end; each takes a millisecond or more.
constexpr int most_turns = 20'000;

std::string time_words(fs::file_time_type when) {
  const auto system = std::chrono::file_clock::to_sys(when);
  const std::time_t seconds =
      std::chrono::system_clock::to_time_t(std::chrono::time_point_cast<std::chrono::system_clock::duration>(system));
  return fmt::format("{:%Y-%m-%d %H:%M}", fmt::localtime(seconds));
}
}  // namespace

UnsavedWork::UnsavedWork(JobRunner& jobs, const DocumentEditor& editor, SessionFiles& files, const fs::path& root)
    : jobs_(jobs), editor_(editor), files_(files) {
  if (root.empty()) return;
  try {
    recovery_ = std::make_unique<Recovery>(root);
  } catch (const Error& refused) {  // a home that cannot be written to: everything else works
    jobs_.tell(say_later("Unsaved work cannot be kept: {}", std::string(refused.what())));
  }
}

std::vector<std::string> UnsavedWork::words() const {
  std::vector<std::string> all;
  if (std::string session = files_.unsaved(); !session.empty()) all.push_back(std::move(session));
  if (work_)
    if (std::string training = work_->unsaved(); !training.empty()) all.push_back(std::move(training));
  return all;
}

void UnsavedWork::frame(double now) {
  if (!recovery_) return;
  if (session_at_ < 0) session_at_ = training_at_ = now;
  pending_ = !files_.aside() && editor_.document() != kept_.document;
  const bool session_due = now - session_at_ >= session_seconds;
  const bool training_due = now - training_at_ >= training_seconds;
  if (training_due && work_) {
    training_at_ = now;
    const std::string training = work_->unsaved();
    if (training.empty()) kept_training_.clear();
    if (!training.empty() && (training != kept_training_ || !work_->not_kept().empty()) && !work_->keeping()) {
      kept_training_ = training;
      work_->keep(recovery_->training());
    }
  }
  if (!session_due) return;
  session_at_ = now;
  keep_session();
}

/// What is worth it, beside the UI thread; when nothing is left to be lost, the files go.
void UnsavedWork::keep_session() {
  Session session = files_.own();
  const std::string words = fmt::format("{}", fmt::join(this->words(), " · "));
  const bool write = !files_.unsaved().empty() && session != kept_;
  pending_ = false;
  kept_ = session;
  if (!write && words == kept_words_) return;
  kept_words_ = words;
  jobs_.on_files(
      "recovery",
      [recovery = recovery_.get(), file = recovery_->session(), write, words,
       text = write ? to_json(session) : std::string()](Worker::Job&) -> Worker::Deliver {
        if (write) write_file_atomically(file, text);
        recovery->describe(words);
        return nullptr;
      },
      [this] {  // a full disk may have room again, though nothing is changed here
        kept_ = {}, kept_words_.clear();
        session_at_ += again_seconds - session_seconds;
      });
}

bool UnsavedWork::may_close() {
  if (answer_ != Answer::none || words().empty()) return true;
  ask_ = true;
  return false;
}

void UnsavedWork::leave_all(const std::function<void()>& turn) {
  answer_ = Answer::keep;
  finish(turn);
}

void UnsavedWork::finish(const std::function<void()>& turn) {
  if (!recovery_ || answer_ != Answer::keep) return;
  if (words().empty()) return;
  jobs_.stop();                                                 // a sweep of hours is not waited for
  for (int i = 0; i < most_turns && jobs_.busy(); ++i) turn();  // what is being written here is older than this
  const std::vector<std::string> all = words();
  recovery_->leave();
  std::string failed;
  try {
    if (!files_.unsaved().empty()) write_file_atomically(recovery_->session(), to_json(files_.own()));
    recovery_->describe(fmt::format("{}", fmt::join(all, " · ")));
  } catch (const std::exception& error) {  // the training may still be kept
    failed = error.what();
  }
  if (work_ && !work_->unsaved().empty()) {
    for (int i = 0; i < most_turns && work_->keeping(); ++i) turn();  // one that was under way
    work_->keep(recovery_->training());
    for (int i = 0; i < most_turns && work_->keeping(); ++i) turn();
    if (failed.empty()) failed = work_->not_kept();
  }
  if (failed.empty()) return;
  answer_ = Answer::none;
  recovery_->leave(false);
  throw std::runtime_error(failed);
}

void UnsavedWork::draw(Ui& ui, AppContext& app) {
  draw_offer(ui, app);
  draw_question(ui);
}

void UnsavedWork::draw_offer(Ui& ui, AppContext& app) {
  const Recovery::Offer* offer = recovery_ ? recovery_->offer() : nullptr;
  if (!offer) return;
  const ImVec2 size = ImGui::GetIO().DisplaySize;
  const float width = std::min(ui.px(720), size.x - ui.px(32));
  ImGui::SetNextWindowPos({size.x / 2, ui.px(56)}, ImGuiCond_Always, {0.5f, 0});
  ImGui::SetNextWindowSize({width, 0});
  ImGui::PushStyleColor(ImGuiCol_WindowBg, vec(ui.chrome.raised));
  ImGui::PushStyleVar(ImGuiStyleVar_WindowBorderSize, 1);
  ImGui::Begin("offer", nullptr,
               ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoMove | ImGuiWindowFlags_NoSavedSettings |
                   ImGuiWindowFlags_NoFocusOnAppearing);
  paragraph(ui, say("Not saved when Headscope ended ({}): {}", time_words(offer->when), offer->words), ui.theme.text);
  if (button(ui, to_say("Take it up"))) {
    const bool session = offer->session, training = offer->training;
    recovery_->take_up();
    if (session) files_.take_up_soon(recovery_->session());
    if (training && work_) {
      work_->take_up(recovery_->training());
      if (!session) app.ui.workspace = tab_;
    }
  } else {
    ImGui::SameLine();
    if (button(ui, to_say("Throw it away"))) recovery_->discard();
    ImGui::SameLine();
    if (button(ui, to_say("Ask again next time"))) recovery_->put_off();
  }
  ImGui::End();
  ImGui::PopStyleVar();
  ImGui::PopStyleColor();
}

void UnsavedWork::draw_question(Ui& ui) {
  if (std::exchange(ask_, false)) ImGui::OpenPopup("quit");
  if (!begin_floating(ui, "quit", 520, 160)) return;
  {
    const UseFont use(ui, ui.heading());
    text_line(ui, said("Quit Headscope?"));
  }
  const std::vector<std::string> all = words();
  paragraph(ui, said("In no file yet:"), ui.theme.muted);
  for (const std::string& line : all) paragraph(ui, "· " + line, ui.theme.text);
  ImGui::Dummy({0, ui.px(4)});
  const bool enter =
      !walking_controls() && (ImGui::IsKeyPressed(ImGuiKey_Enter) || ImGui::IsKeyPressed(ImGuiKey_KeypadEnter));
  const auto answer = [&](Answer chosen) {
    answer_ = chosen;
    ImGui::CloseCurrentPopup();
  };
  if (recovery_) {
    if (button(ui, to_say("Quit, keep it for the next start")) || enter) answer(Answer::keep);
    ImGui::SameLine();
  }
  if (button(ui, to_say("Quit without it"))) answer(Answer::drop);
  ImGui::SameLine();
  if (button(ui, to_say("Stay")) || ImGui::IsKeyPressed(ImGuiKey_Escape)) ImGui::CloseCurrentPopup();
  ImGui::EndPopup();
}

}  // namespace headscope
