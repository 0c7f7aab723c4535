#pragma once
// Whether the open model computes what its definition says (core/analysis/certificate.h): asked aside of everything
// else, by itself where that takes about a second, else when somebody wants to know; remembered between starts for the
// same files. What was found holds for the model that is open, while its files stay as they were. Thread rule: the UI
// thread.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "app/state/answer.h"
#include "app/state/run_controller.h"
#include "core/analysis/certificate.h"
#include "core/analysis/model_facts.h"
#include "core/base/words.h"

namespace headscope {

class CertificateController {
 public:
  enum class State {
    none,         ///< no model is open
    not_checked,  ///< or not with these files
    checking,
    checked,  ///< certificate() says how far it is; also where it differs
    changed,  ///< the files are no longer those that the model was read from: nothing is known of either
    failed    ///< error() says why
  };
  /// Both outlive this.
  CertificateController(JobRunner& jobs, const RunController& run) : jobs_(jobs), run_(run) {}

  /// Where certificates are remembered; empty = nowhere. By itself: no.
  void remember_in(const std::filesystem::path& folder) { store_ = CertificateStore(folder); }
  /// Small models are checked without being asked. By itself: no.
  void check_small_models(bool wanted) { automatic_ = wanted; }

  /// Once per frame, after RunController::frame(). `now` in seconds.
  void frame(double now);
  /// Asks, also again. Not while the files are changed: open the model again.
  void check();
  void stop();

  State state() const;
  /// Of the open model as it is; null while that is not known.
  std::shared_ptr<const Certificate> certificate() const;
  /// It is of an earlier start, or of the command line.
  bool remembered() const;
  std::string error() const;
  float progress() const;  ///< of the check, 0 … 1
  /// What the check would take, in words: "about 40 s"; "" = no model, or a second at most.
  std::string effort() const;
  /// Something is under way that this start would wait for, as a picture of the window does.
  bool busy() const;

  /// A line for files: model_note() of the open model; "" = none is open.
  std::string note() const;

  /// What the open model is, once somebody wants to see it: read aside. null until it is there.
  const Answer<std::uint64_t, ModelFacts>& want_facts();

 private:
  struct Key {
    std::uint64_t reading = 0;
    int attempt = 0;  // one who asks again wants it computed again
    bool operator==(const Key&) const = default;
  };
  struct Looked {  // at the files on the disk
    std::uint64_t reading = 0;
    bool same = true;
    std::shared_ptr<const Certificate> remembered;
  };
  bool open() const { return run_.results().model.model != nullptr; }
  bool of_this_model(const std::optional<Key>& key) const {
    return key && key->reading == run_.results().model_reading;
  }
  bool looked_at() const { return looked_.reading == run_.results().model_reading; }
  double work() const;  ///< certificate_work() of the open model
  bool small() const;
  void look();
  void want();

  JobRunner& jobs_;
  const RunController& run_;
  CertificateStore store_{std::filesystem::path()};
  bool automatic_ = false, looking_ = false;
  int attempt_ = 0;
  double looked_when_ = 0;
  Looked looked_;
  mutable std::weak_ptr<const Model> work_of_;  // asked for in every frame, and takes longer than a lookup
  mutable double work_ = 0;
  Answer<Key, Certificate> answer_{
      {"certificate", to_say("checking the model"), true}, Answer<Key, Certificate>::OnFailure::keep, Holds::numbers};
  Answer<std::uint64_t, ModelFacts> facts_{{"model facts", to_say("reading what the model is"), true},
                                           Answer<std::uint64_t, ModelFacts>::OnFailure::keep};
};

}  // namespace headscope
