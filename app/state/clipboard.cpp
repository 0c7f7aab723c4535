#include "app/state/clipboard.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

#include "core/base/error.h"

extern char** environ;

namespace headscope {

namespace {

/// Runs `words` with `input` at its standard input and its own words thrown away; -1 where there is no such program.
/// Both programs read all, leave a child behind that holds the picture, and end.
int run_with_input(const std::vector<const char*>& words, std::FILE* input) {
  std::rewind(input);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, fileno(input), STDIN_FILENO);
  posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  std::vector<char*> arguments;
  for (const char* word : words) arguments.push_back(const_cast<char*>(word));
  arguments.push_back(nullptr);
  pid_t child = 0;
  const int failed = posix_spawnp(&child, words.front(), &files, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  if (failed) return -1;
  int status = 0;
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR) return 1;
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 1;
  return code == 127 ? -1 : code;
}

}  // namespace

void hold_picture(const std::string& png) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::tmpfile(), std::fclose);
  if (!file || std::fwrite(png.data(), 1, png.size(), file.get()) != png.size() || std::fflush(file.get()) != 0)
    throw Error("the clipboard", "room for the picture in the temporary folder", std::strerror(errno));
  const char* wayland = std::getenv("WAYLAND_DISPLAY");
  bool any = false;
  if (wayland && *wayland) {
    const int code = run_with_input({"wl-copy", "--type", "image/png"}, file.get());
    if (code == 0) return;
    any = code > 0;
  }
  const int code = run_with_input({"xclip", "-selection", "clipboard", "-t", "image/png", "-i"}, file.get());
  if (code == 0) return;
  any = any || code > 0;
  throw Error("the clipboard", "a program that holds pictures", any ? "one that failed" : "none",
              "install xclip, or wl-clipboard under Wayland; or export the picture to a file (Ctrl+E)");
}

}  // namespace headscope
