#include "tests/support/http_server.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <mutex>
#include <stdexcept>
#include <stop_token>
#include <thread>

namespace headscope::testing {

namespace {

struct Socket {
  int number;
  explicit Socket(int number_) : number(number_) {}
  ~Socket() {
    if (number >= 0) ::close(number);
  }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  /// Waits for it, a tenth of a second at a time.
  bool ready(short what, const std::stop_token& stop) const {
    while (!stop.stop_requested()) {
      pollfd one{number, what, 0};
      if (::poll(&one, 1, 100) > 0) return true;
    }
    return false;
  }
};

std::string small_letters(std::string text) {
  std::ranges::transform(text, text.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return text;
}

Asked parse(const std::string& head) {
  Asked asked;
  const std::size_t first = head.find(' '), second = head.find(' ', first + 1);
  asked.method = head.substr(0, first);
  asked.target = head.substr(first + 1, second - first - 1);
  for (std::size_t at = head.find("\r\n"); at != std::string::npos && at + 2 < head.size();) {
    const std::size_t end = head.find("\r\n", at + 2), colon = head.find(':', at + 2);
    if (end == std::string::npos || colon > end) break;
    asked.headers[small_letters(head.substr(at + 2, colon - at - 2))] = head.substr(colon + 2, end - colon - 2);
    at = end;
  }
  return asked;
}

}  // namespace

struct HttpServer::State {
  std::function<Answered(const Asked&)> answer;
  Socket listening{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  int port = 0;
  mutable std::mutex lock;
  std::vector<Asked> asked;
  std::vector<std::jthread> talks;
  std::jthread accepts;  // last: it ends before what it uses

  void send(const Socket& to, const std::string& bytes, const std::stop_token& stop) const {
    for (std::size_t at = 0; at < bytes.size() && to.ready(POLLOUT, stop);) {
      const ssize_t sent = ::send(to.number, bytes.data() + at, bytes.size() - at, MSG_NOSIGNAL);
      if (sent <= 0) return;
      at += static_cast<std::size_t>(sent);
    }
  }

  void talk(int number, const std::stop_token& stop) {
    const Socket one(number);
    std::string head;
    std::array<char, 4096> room{};
    while (head.find("\r\n\r\n") == std::string::npos && head.size() < 65536) {
      if (!one.ready(POLLIN, stop)) return;
      const ssize_t got = ::recv(number, room.data(), room.size(), 0);
      if (got <= 0) return;
      head.append(room.data(), static_cast<std::size_t>(got));
    }
    const Asked what = parse(head);
    Answered says;
    {
      const std::lock_guard hold(lock);
      asked.push_back(what);
      says = answer(what);
    }
    if (says.status == 0) return;  // not a word
    std::string out = fmt::format("HTTP/1.1 {} X\r\nConnection: close\r\n", says.status);
    bool has_length = false;
    for (const auto& [name, value] : says.headers) {
      out += name + ": " + value + "\r\n";
      has_length = has_length || small_letters(name) == "content-length";
    }
    if (!has_length) out += fmt::format("Content-Length: {}\r\n", says.body.size());
    send(one, out + "\r\n", stop);
    if (what.method == "HEAD") return;
    const std::string body = says.body.substr(0, says.sent);
    for (std::size_t at = 0; at < body.size() && !stop.stop_requested(); at += 4096) {
      if (says.pause_ms > 0) std::this_thread::sleep_for(std::chrono::milliseconds(says.pause_ms));
      send(one, body.substr(at, 4096), stop);
    }
    ::shutdown(number, SHUT_WR);
    while (one.ready(POLLIN, stop) && ::recv(number, room.data(), room.size(), 0) > 0) {
    }
  }
};

HttpServer::HttpServer(std::function<Answered(const Asked&)> answer) : state_(std::make_unique<State>()) {
  state_->answer = std::move(answer);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  const int listening = state_->listening.number;
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  if (::bind(listening, any, size) != 0 || ::listen(listening, 16) != 0 || ::getsockname(listening, any, &size) != 0)
    throw std::runtime_error("no socket on 127.0.0.1");
  state_->port = ntohs(address.sin_port);
  state_->accepts = std::jthread([state = state_.get()](const std::stop_token& stop) {
    while (state->listening.ready(POLLIN, stop)) {
      const int number = ::accept4(state->listening.number, nullptr, nullptr, SOCK_CLOEXEC);
      if (number >= 0)
        state->talks.emplace_back([state, number](const std::stop_token& each) { state->talk(number, each); });
    }
  });
}

HttpServer::~HttpServer() {
  state_->accepts.request_stop();
  state_->accepts.join();
}

std::string HttpServer::url() const {
  return fmt::format("http://127.0.0.1:{}", state_->port);
}

std::vector<Asked> HttpServer::asked() const {
  const std::lock_guard hold(state_->lock);
  return state_->asked;
}

void HttpServer::forget() {
  const std::lock_guard hold(state_->lock);
  state_->asked.clear();
}

}  // namespace headscope::testing
