#pragma once
// A small HTTP server on 127.0.0.1 for tests of what fetches: each request is told to the test, which says what is
// answered, and how it breaks off.

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace headscope::testing {

struct Asked {
  std::string method, target;                  ///< "GET", "/api/models/a/b?x=1"
  std::map<std::string, std::string> headers;  ///< names in small letters
  std::string header(const std::string& name) const {
    const auto found = headers.find(name);
    return found == headers.end() ? "" : found->second;
  }
};

struct Answered {
  int status = 200;
  std::vector<std::pair<std::string, std::string>> headers = {};  ///< Content-Length is added
  std::string body = {};
  std::size_t sent = std::string::npos;  ///< so many bytes of the body, then the connection ends
  int pause_ms = 0;                      ///< before every 4096 bytes of it
};

class HttpServer {
 public:
  /// `answer` is called on the server's threads, one at a time.
  explicit HttpServer(std::function<Answered(const Asked&)> answer);
  ~HttpServer();  ///< ends what is under way
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  std::string url() const;           ///< "http://127.0.0.1:41234"
  std::vector<Asked> asked() const;  ///< so far, in order
  void forget();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace headscope::testing
