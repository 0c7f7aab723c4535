#include "core/hub/http.h"

#include <curl/curl.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <utility>

#include "core/base/excerpt.h"

namespace headscope {

namespace {

/// Of a reply that is an error: enough for its message.
constexpr std::size_t most_of_an_error = std::size_t{64} << 10;

/// Once in a process, before any handle, and never undone: others in it may use the library too.
void begin_curl() {
  static const CURLcode begun = curl_global_init(CURL_GLOBAL_DEFAULT);
  if (begun != CURLE_OK) throw Error("libcurl", "a library that starts", curl_easy_strerror(begun));
}

std::string small_letters(std::string text) {
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return text;
}

std::string trimmed(std::string text) {
  const auto blank = [](char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; };
  while (!text.empty() && blank(text.back())) text.pop_back();
  text.erase(0, static_cast<std::size_t>(std::ranges::find_if_not(text, blank) - text.begin()));
  return text;
}

const char* phrase(long status) {
  switch (status) {
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 408:
      return "Request Timeout";
    case 416:
      return "Range Not Satisfiable";
    case 429:
      return "Too Many Requests";
    case 451:
      return "Unavailable For Legal Reasons";
    case 500:
      return "Internal Server Error";
    case 502:
      return "Bad Gateway";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    default:
      return "";
  }
}

/// Of failures that another try may not meet.
bool is_transient(CURLcode code) {
  switch (code) {
    case CURLE_COULDNT_CONNECT:
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_OPERATION_TIMEDOUT:
    case CURLE_PARTIAL_FILE:
    case CURLE_GOT_NOTHING:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_HTTP2:
    case CURLE_HTTP2_STREAM:
      return true;
    default:
      return false;
  }
}

const char* hint_of(CURLcode code) {
  switch (code) {
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
      return "is this machine online? behind a proxy set https_proxy; HF_ENDPOINT names another server";
    case CURLE_COULDNT_RESOLVE_PROXY:
      return "https_proxy or http_proxy names a proxy that is not found";
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
      return "the server's certificate is not trusted here: install ca-certificates, or name a file of certificates "
             "in SSL_CERT_FILE";
    default:
      return "";
  }
}

/// A list of headers that ends with its owner.
struct Headers {
  curl_slist* list = nullptr;
  Headers() = default;
  ~Headers() { curl_slist_free_all(list); }
  Headers(const Headers&) = delete;
  Headers& operator=(const Headers&) = delete;
  void add(const std::string& line) { list = curl_slist_append(list, line.c_str()); }
};

/// What libcurl's callbacks see of one request.
struct Exchange {
  const HttpRequest& request;
  const HttpSink* sink;
  HttpReply reply;
  bool begun = false;           // the sink has heard of the headers
  bool too_long = false;        // the body is more than was asked for
  std::exception_ptr thrown{};  // by the sink: C code is not to be thrown through

  void begin() {
    if (std::exchange(begun, true)) return;
    if (sink && reply.ok() && sink->begin) sink->begin(reply);
  }
};

std::size_t take_header(char* data, std::size_t, std::size_t size, void* to) {
  Exchange& at = *static_cast<Exchange*>(to);
  const std::string line = trimmed(std::string(data, size));
  if (line.starts_with("HTTP/")) {  // the first line, also of a proxy's answer before the server's
    at.reply = {};
    const std::size_t space = line.find(' ');
    if (space != std::string::npos) at.reply.status = std::strtol(line.c_str() + space, nullptr, 10);
  } else if (const std::size_t colon = line.find(':'); colon != std::string::npos) {
    at.reply.headers[small_letters(line.substr(0, colon))] = trimmed(line.substr(colon + 1));
  }
  return size;
}

std::size_t take_body(char* data, std::size_t, std::size_t size, void* to) {
  Exchange& at = *static_cast<Exchange*>(to);
  try {
    at.begin();
    if (at.sink && at.reply.ok()) {
      at.sink->bytes(std::as_bytes(std::span(data, size)));
      return size;
    }
    if (!at.reply.ok()) {
      at.reply.body.append(data, std::min(size, most_of_an_error - std::min(most_of_an_error, at.reply.body.size())));
      return size;
    }
    at.too_long = at.reply.body.size() + size > at.request.most;
    if (at.too_long) return 0;
    at.reply.body.append(data, size);
    return size;
  } catch (...) {
    at.thrown = std::current_exception();
    return 0;
  }
}

/// A file of certificates that the user named, as Python's and other tools take it.
const char* certificates() {
  for (const char* variable : {"REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE"})
    if (const char* const value = std::getenv(variable); value && *value) return value;
  return nullptr;
}

/// A parsed address.
struct Url {
  CURLU* handle = curl_url();
  Url() = default;
  ~Url() { curl_url_cleanup(handle); }
  Url(const Url&) = delete;
  Url& operator=(const Url&) = delete;
  bool set(const std::string& text) { return curl_url_set(handle, CURLUPART_URL, text.c_str(), 0) == CURLUE_OK; }
  std::string part(CURLUPart which, unsigned flags = 0) const {
    char* text = nullptr;
    if (curl_url_get(handle, which, &text, flags) != CURLUE_OK) return "";
    std::string copy = text;
    curl_free(text);
    return copy;
  }
};

}  // namespace

std::string HttpReply::header(const std::string& name) const {
  const auto found = headers.find(name);
  return found == headers.end() ? "" : found->second;
}

std::string HttpReply::status_text() const {
  const std::string words = phrase(status);
  return words.empty() ? fmt::format("status {}", status) : fmt::format("{} {}", status, words);
}

struct HttpClient::State {
  CURL* easy = curl_easy_init();     // kept, and with it the connection
  CURLM* multi = curl_multi_init();  // so that a wait can be ended
  double patience = 30;
  ~State() {
    curl_easy_cleanup(easy);
    curl_multi_cleanup(multi);
  }
};

HttpClient::HttpClient(double patience) {
  begin_curl();
  state_ = std::make_unique<State>();
  if (!state_->easy || !state_->multi) throw std::bad_alloc();
  state_->patience = patience;
}
HttpClient::~HttpClient() = default;

HttpReply HttpClient::send(const HttpRequest& request, const std::stop_token& stop, const HttpSink* sink) {
  using Clock = std::chrono::steady_clock;
  CURL* const easy = state_->easy;
  curl_easy_reset(easy);
  Exchange at{request, sink, {}};
  Headers headers;
  headers.add("Accept-Encoding: identity");  // lengths and digests are of the file as it is
  if (!request.token.empty()) headers.add("Authorization: Bearer " + request.token);
  char details[CURL_ERROR_SIZE] = "";
  curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, details);
  curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(easy, CURLOPT_URL, request.url.c_str());
  curl_easy_setopt(easy, CURLOPT_USERAGENT, "headscope");
#if LIBCURL_VERSION_NUM >= 0x075700
  curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);  // a name that is still looked up is not waited for
#else
  curl_easy_setopt(easy, CURLOPT_PROTOCOLS, CURLPROTO_HTTP | CURLPROTO_HTTPS);
#endif
  curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers.list);
  curl_easy_setopt(easy, CURLOPT_NOBODY, request.method == HttpRequest::Method::head ? 1L : 0L);
  const std::string range = request.from && *request.from > 0 ? fmt::format("{}-", *request.from) : "";
  if (!range.empty()) curl_easy_setopt(easy, CURLOPT_RANGE, range.c_str());
  curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(state_->patience * 1000));
  if (const char* const file = certificates()) curl_easy_setopt(easy, CURLOPT_CAINFO, file);
  curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, take_header);
  curl_easy_setopt(easy, CURLOPT_HEADERDATA, &at);
  curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, take_body);
  curl_easy_setopt(easy, CURLOPT_WRITEDATA, &at);

  if (curl_multi_add_handle(state_->multi, easy) != CURLM_OK)
    throw HttpError(shown_url(request.url), "a request that begins", "none", "", false);
  struct Removed {  // whatever ends this; the handle forgets what is on this function's stack
    CURLM* multi;
    CURL* handle;
    ~Removed() {
      curl_multi_remove_handle(multi, handle);
      curl_easy_reset(handle);
    }
  } const removed{state_->multi, easy};

  CURLcode code = CURLE_OK;
  const auto received = [&] {
    curl_off_t bytes = 0;
    curl_easy_getinfo(easy, CURLINFO_SIZE_DOWNLOAD_T, &bytes);
    return bytes + static_cast<curl_off_t>(at.reply.headers.size());
  };
  curl_off_t last = 0;
  Clock::time_point last_news = Clock::now();
  for (int running = 1; running > 0;) {
    if (stop.stop_requested()) throw Cancelled();
    if (curl_multi_perform(state_->multi, &running) != CURLM_OK)
      throw HttpError(shown_url(request.url), "a request that goes on", "a failure of libcurl", "", false);
    if (running == 0) break;
    if (const curl_off_t now = received(); now != last) {
      last = now;
      last_news = Clock::now();
    } else if (std::chrono::duration<double>(Clock::now() - last_news).count() > state_->patience) {
      throw HttpError(shown_url(request.url), "an answer", fmt::format("nothing for {:.0f} s", state_->patience),
                      "try again later", true);
    }
    curl_multi_poll(state_->multi, nullptr, 0, 100, nullptr);
  }
  int left = 0;
  while (const CURLMsg* const message = curl_multi_info_read(state_->multi, &left))
    if (message->msg == CURLMSG_DONE) code = message->data.result;
  if (at.thrown) std::rethrow_exception(at.thrown);
  if (at.too_long)
    throw HttpError(shown_url(request.url), fmt::format("at most {} bytes", request.most), "more", "", false);
  if (code != CURLE_OK)
    throw HttpError(shown_url(request.url), "an answer", excerpt(*details ? details : curl_easy_strerror(code)),
                    hint_of(code), is_transient(code));
  at.begin();  // of an empty body
  return std::move(at.reply);
}

bool same_origin(const std::string& a, const std::string& b) {
  Url one, other;
  if (!one.set(a) || !other.set(b)) return false;
  const auto origin = [](const Url& url) {
    return url.part(CURLUPART_SCHEME) + "://" + small_letters(url.part(CURLUPART_HOST)) + ":" +
           url.part(CURLUPART_PORT, CURLU_DEFAULT_PORT);
  };
  return origin(one) == origin(other);
}

std::string resolved_url(const std::string& base, const std::string& location) {
  Url url;
  if (location.empty() || !url.set(base) || !url.set(location))
    throw HttpError(shown_url(base), "a redirect to an address", excerpt("'" + shown_url(location) + "'"), "", false);
  return url.part(CURLUPART_URL);
}

std::string shown_url(const std::string& url) {
  return excerpt(url.substr(0, url.find('?')), 500);
}

std::string url_escaped(const std::string& text, bool keeps_slashes) {
  std::string out;
  for (const char c : text) {
    const bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
                       c == '.' || c == '_' || c == '~' || (c == '/' && keeps_slashes);
    out += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return out;
}

}  // namespace headscope
