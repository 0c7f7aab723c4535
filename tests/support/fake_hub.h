#pragma once
// A hub of models on this machine, with a second server beside it that holds the large files, as the real one has: what
// huggingface_hub asks of it, and every way in which a transfer goes wrong.

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/http_server.h"

namespace headscope::testing {

class FakeHub {
 public:
  struct File {
    std::string content;
    bool large = false;    ///< kept by the other server, called by its SHA-256
    std::string tag = {};  ///< what it is called instead of its digest
  };
  FakeHub();

  std::string name = "someone/small";
  std::map<std::string, std::string> revisions;  ///< branch or tag → commit
  std::map<std::string, File> files;

  // What goes wrong. Set before something is asked for.
  bool ignores_ranges = false, no_sizes = false;
  std::map<std::string, std::vector<std::size_t>> break_after;  ///< by file: the bytes that each next transfer gets to
  std::map<std::string, std::vector<int>> statuses;             ///< by what a target begins with: its next answers
  std::map<std::string, std::string> error_code;                ///< … X-Error-Code of these
  std::string token;                                            ///< without which nothing is answered; "" = none
  int pause_ms = 0;                                             ///< of large files, before every 4096 bytes

  std::string url() const { return hub_.url(); }
  std::string store_url() const { return store_.url(); }
  /// Of both servers: "GET /someone/small/…".
  std::vector<std::string> targets() const;
  std::vector<Asked> asked() const { return hub_.asked(); }
  std::vector<Asked> asked_of_store() const { return store_.asked(); }
  void forget();

  std::string tag_of(const File& file) const;
  /// All files of a folder; those larger than `large` bytes are the other server's.
  void take_folder(const std::string& folder, std::size_t large);

 private:
  Answered answer(const Asked& asked);
  Answered answer_stored(const Asked& asked);
  Answered content(const std::string& file, const Asked& asked, std::vector<std::pair<std::string, std::string>> with);

  std::mutex both_;  // one answer at a time, of either server
  HttpServer store_, hub_;
};

inline const std::string first_commit = "1111111111111111111111111111111111111111";
inline const std::string second_commit = "2222222222222222222222222222222222222222";

}  // namespace headscope::testing
