#include "app/cli/window_program.h"

#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#include <cerrno>
#include <cstring>
#include <functional>
#include <optional>
#include <stop_token>

#include "app/assets.h"
#include "core/base/error.h"

extern char** environ;

namespace headscope::cli {

void run_window_program(Console& console, const std::string& where, std::vector<std::string> words) {
  const auto program = find_program("headscope");
  if (!program)
    throw Error(where, "the program “headscope” beside this one, which draws pictures of the window's pages", "none",
                "it is built where GLFW and OpenGL are there (docs/building.md); it needs no display for this");
  words.insert(words.begin(), program->string());
  words.insert(words.end(), {"--device", console.device, "--precision", console.precision});
  if (console.threads > 0) words.insert(words.end(), {"--threads", std::to_string(console.threads)});
  if (console.plain_pictures) words.emplace_back("--no-recipe");
  console.flush();
  const std::stop_token stop = console.stop();

  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawnattr_t as;
  posix_spawnattr_init(&as);
  sigset_t none;  // this thread leaves its signals to another, which the program has not got
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&as, &none);
  posix_spawnattr_setflags(&as, POSIX_SPAWN_SETSIGMASK);
  pid_t child = 0;
  const int failed = posix_spawn(&child, words.front().c_str(), nullptr, &as, arguments.data(), environ);
  posix_spawnattr_destroy(&as);
  if (failed) throw Error(words.front(), "a program that can be started", std::strerror(failed));

  int status = 0;
  {
    const std::stop_callback<std::function<void()>> pass_on(stop, [child] { kill(child, SIGTERM); });
    // Left to be collected until nobody could send it a signal any more: its number stays its own.
    siginfo_t ended;
    while (waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT) < 0 && errno == EINTR) continue;
  }
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  if (stop.stop_requested() || code == interrupted_exit_code) throw Cancelled();
  if (code != 0) throw Ended(code);
}

}  // namespace headscope::cli
