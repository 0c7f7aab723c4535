#pragma once
// What a hub of models answers: the files of a model at a revision, what one of them is, and its bytes. The protocol is
// that of huggingface_hub (its file_download.py and hf_api.py): GET api/models/ID/revision/REV, HEAD and GET
// ID/resolve/COMMIT/FILE, the headers X-Repo-Commit, X-Linked-Etag, X-Linked-Size, ETag and Location.

#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "core/hub/http.h"
#include "core/hub/hub_settings.h"

namespace headscope {

struct HubFile {
  std::string name;                   ///< "onnx/model.onnx": below the model's folder, never out of it
  std::optional<std::uint64_t> size;  ///< bytes, where the hub says so
  std::string digest = {};            ///< SHA-256 or Git id of its content, where the hub says so; "" = it does not
};

struct HubModel {
  std::string name;    ///< "org/name", as the hub calls it today
  std::string commit;  ///< 40 hexadecimal digits
  std::vector<HubFile> files;
};

/// What is asked of one file before its bytes are.
struct HubFileFacts {
  std::string tag;  ///< its entity tag: the digest of its content (core/hub/digest.h), and its name among the blobs
  std::optional<std::uint64_t> size;
};

/// How long a request that fails is tried again.
struct HubPatience {
  int tries = 5;             ///< in a row without a byte that is new
  int most = 100;            ///< of all
  double first_wait = 0.5;   ///< seconds; doubles with every try, to `longest_wait` at most
  double longest_wait = 10;  ///< a server that asks for more gets 60 s at most
  double silence = 30;       ///< seconds without a byte after which a try has failed
};

/// Counts the tries of one piece of work.
class HubTries {
 public:
  /// `waiting` is told why, before every wait.
  HubTries(const HubPatience& patience, std::stop_token stop, std::function<void(const std::string&)> waiting = {})
      : patience_(patience), stop_(std::move(stop)), waiting_(std::move(waiting)) {}
  /// Waits before the next try, or throws the error on: it would not help, or was tried often enough. Throws Cancelled.
  void failed(const HttpError& error);
  /// So many bytes are here; more than ever before is a reason to go on.
  void progressed(std::uint64_t bytes) {
    if (bytes <= furthest_) return;
    furthest_ = bytes;
    in_a_row_ = 0;
  }

 private:
  HubPatience patience_;
  std::stop_token stop_;
  std::function<void(const std::string&)> waiting_;
  int in_a_row_ = 0, all_ = 0;
  std::uint64_t furthest_ = 0;
};

class HubClient {
 public:
  HubClient(HubSettings settings, HubPatience patience, std::stop_token stop)
      : settings_(std::move(settings)), patience_(patience), stop_(std::move(stop)), http_(patience.silence) {}

  /// Throws Error, which names the address, what was answered and what can be done.
  HubModel model(const std::string& name, const std::string& revision, HubTries tries);
  HubFileFacts facts(const HubModel& model, const std::string& file);
  /// The bytes of a file from `from` on, unless its content is now another than `tag`. Not tried again;
  /// HttpError::transient says whether that would help.
  void fetch(const HubModel& model, const std::string& file, const std::string& tag, std::uint64_t from,
             const HttpSink& sink);
  std::string page(const std::string& name) const { return settings_.endpoint + "/" + name; }

 private:
  /// Follows redirects: all of them, or those that stay at the endpoint. What the endpoint's headers on the way said
  /// counts, whatever another server says. The token goes with a request as long as none has led elsewhere.
  HttpReply follow(HttpRequest request, bool elsewhere, const HttpSink* sink = nullptr);
  [[noreturn]] void refuse(const HttpReply& reply, const std::string& url, const std::string& model,
                           const std::string& expected) const;

  HubSettings settings_;
  HubPatience patience_;
  std::stop_token stop_;
  HttpClient http_;
};

/// "org/name": two words of letters, digits, "-", "_" and ".", as the hub allows them. Throws Error otherwise.
void check_model_name(const std::string& name);
/// A branch, a tag or a commit. Throws Error for what could lead out of a folder.
void check_revision(const std::string& revision);

}  // namespace headscope
