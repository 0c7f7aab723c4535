#include "core/base/standard_streams.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <optional>
#include <utility>

#include "core/base/error.h"

namespace headscope {

void guard_standard_streams() {
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGXFSZ, SIG_IGN);
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(stream, F_GETFD) >= 0 || errno != EBADF) continue;
    // The lowest free number is this one. Opened the other way round, it fails like a closed one.
    [[maybe_unused]] const int taken = ::open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  }
}

void write_error(std::string_view text) noexcept {
  constexpr int patience_ms = 1000;
  const int error_before = errno;
  while (!text.empty()) {
    const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
    if (written > 0) {
      text.remove_prefix(static_cast<std::size_t>(written));
      continue;
    }
    if (written < 0 && errno == EINTR) continue;
    if (written < 0 && errno == EAGAIN) {  // another program made the terminal non-blocking
      pollfd room{STDERR_FILENO, POLLOUT, 0};
      if (::poll(&room, 1, patience_ms) > 0 && (room.revents & POLLOUT)) continue;
    }
    break;
  }
  errno = error_before;
}

const std::string& standard_input(std::size_t limit) {
  static std::optional<std::string> known;
  if (known) return *known;
  std::string text;
  char buffer[1 << 16];
  while (const std::size_t got = std::fread(buffer, 1, sizeof buffer, stdin)) {
    text.append(buffer, got);
    if (text.size() > limit)
      throw Error("standard input", "at most " + std::to_string(limit >> 20) + " MiB of text", "more");
  }
  if (std::ferror(stdin)) throw Error("standard input", "readable text", "a read error");
  return known.emplace(std::move(text));
}

}  // namespace headscope
