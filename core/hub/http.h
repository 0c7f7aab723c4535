#pragma once
// One HTTP request at a time, by libcurl: the only place that speaks to a network. Redirects are not followed here,
// since who follows decides who sees the token. Thread rule: one thread at a time.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>

#include "core/base/error.h"

namespace headscope {

struct HttpReply {
  long status = 0;
  std::map<std::string, std::string> headers;  ///< names in small letters; of one that came twice the last
  std::string body;                            ///< unless it went to a sink
  /// "" where there is none.
  std::string header(const std::string& name) const;
  /// "503 Service Unavailable"
  std::string status_text() const;
  bool ok() const { return status >= 200 && status < 300; }
};

/// What went wrong with a request. `transient`: it may well work in a moment.
struct HttpError : Error {
  HttpError(const std::string& url, const std::string& wanted, const std::string& got, const std::string& advice,
            bool is_transient)
      : Error(url, wanted, got, advice), transient(is_transient) {}
  const bool transient;
  long status = 0;  ///< that the server answered with; 0 = there was no answer, or its status was not the trouble
  double wait = 0;  ///< seconds that the server asks to be left alone for; 0 = it does not say
};

struct HttpRequest {
  enum class Method { get, head } method = Method::get;
  std::string url;
  std::string token;                         ///< as "Authorization: Bearer …"; "" = none
  std::optional<std::uint64_t> from;         ///< the first byte that is wanted
  std::size_t most = std::size_t{64} << 20;  ///< of a body that is kept
};
/// Takes the body of a reply with a status in 200 … 299 instead of HttpReply::body. `begin` hears its headers first.
/// What they throw ends the request and comes out of send().
struct HttpSink {
  std::function<void(const HttpReply&)> begin;
  std::function<void(std::span<const std::byte>)> bytes;
};

class HttpClient {
 public:
  /// `patience`: seconds without a byte after which a transfer has failed.
  explicit HttpClient(double patience = 30);
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  /// Whatever status the server answers with. Throws HttpError when there is no whole answer, Cancelled within a tenth
  /// of a second after `stop` was asked for.
  HttpReply send(const HttpRequest& request, const std::stop_token& stop, const HttpSink* sink = nullptr);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Scheme, host and port are the same.
bool same_origin(const std::string& a, const std::string& b);
/// What a Location header means at `base`. Throws HttpError when it is no address.
std::string resolved_url(const std::string& base, const std::string& location);
/// Without what follows "?": it may be a signature, which is nobody's business.
std::string shown_url(const std::string& url);
/// Every byte that is no letter, digit, "-", ".", "_" or "~" as %XX; "/" stays where it `keeps_slashes`.
std::string url_escaped(const std::string& text, bool keeps_slashes);

}  // namespace headscope
