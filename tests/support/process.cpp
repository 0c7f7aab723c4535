#include "tests/support/process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <stdexcept>
#include <thread>

#include "tests/support/paths.h"

namespace headscope::testing {

namespace {
struct Pipe {
  std::array<int, 2> ends{-1, -1};
  Pipe() {
    if (pipe2(ends.data(), O_CLOEXEC) != 0) throw std::runtime_error("pipe");
  }
  ~Pipe() {
    close_end(0);
    close_end(1);
  }
  void close_end(int which) {
    if (ends[static_cast<std::size_t>(which)] >= 0) close(ends[static_cast<std::size_t>(which)]);
    ends[static_cast<std::size_t>(which)] = -1;
  }
};

template <class OnText>
void read_all(Pipe& pipe, Stream what, std::string& into, OnText&& on_text) {
  std::array<char, 4096> buffer;
  for (ssize_t got; (got = read(pipe.ends[0], buffer.data(), buffer.size())) > 0;) {
    into.append(buffer.data(), static_cast<std::size_t>(got));
    on_text();
    if (what == Stream::one_line && into.find('\n') != std::string::npos) break;
  }
  pipe.close_end(0);
}

/// In the child: makes `stream` what the test asked for.
void lead(int stream, Stream where, const Pipe& pipe) {
  if (where == Stream::closed)
    close(stream);
  else
    dup2(where == Stream::full ? open("/dev/full", O_WRONLY) : pipe.ends[1], stream);
}
}  // namespace

Finished run_cli(const std::vector<std::string>& arguments, const ProcessOptions& options) {
  // What the programs remember, and what people have made, is of the tests alone.
  static const int own_folders = setenv("XDG_STATE_HOME", scratch_dir("state").c_str(), 1) |
                                 setenv("XDG_DATA_HOME", scratch_dir("data").c_str(), 1);
  if (own_folders != 0) throw std::runtime_error("setenv");
  Pipe in, out, err;
  std::vector<char*> argv;
  std::string program = HEADSCOPE_CLI;
  argv.push_back(program.data());
  std::vector<std::string> owned = arguments;
  for (std::string& each : owned) argv.push_back(each.data());
  argv.push_back(nullptr);

  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("fork");
  if (child == 0) {
    dup2(in.ends[0], STDIN_FILENO);
    lead(STDOUT_FILENO, options.out, out);
    lead(STDERR_FILENO, options.err, err);
    if (options.file_limit > 0) {
      const auto most = static_cast<rlim_t>(options.file_limit);
      const rlimit limit{most, most};
      setrlimit(RLIMIT_FSIZE, &limit);
    }
    signal(SIGPIPE, SIG_DFL);  // which the test ignores, and children inherit
    signal(SIGHUP, SIG_DFL);   // ignored where the tests themselves run under nohup
    if (!options.folder.empty() && chdir(options.folder.c_str()) != 0) _exit(126);
    execv(program.c_str(), argv.data());
    _exit(127);
  }
  in.close_end(0);
  out.close_end(1);
  err.close_end(1);

  Finished result;
  signal(SIGPIPE, SIG_IGN);  // a child that fails early reads no input
  std::thread writer([&] {
    for (std::size_t sent = 0; sent < options.input.size();) {
      const ssize_t step = write(in.ends[1], options.input.data() + sent, options.input.size() - sent);
      if (step <= 0) break;
      sent += static_cast<std::size_t>(step);
    }
    in.close_end(1);
  });
  std::thread errors([&] {
    bool waiting = options.interrupt;
    read_all(err, options.err, result.err, [&] {
      if (waiting && result.err.find('\n') != std::string::npos) {
        kill(child, options.signal);
        if (options.next_signal) {
          std::this_thread::sleep_for(std::chrono::milliseconds(2));  // it is not one signal that was sent twice
          kill(child, options.next_signal);
        }
        waiting = false;
      }
    });
  });
  std::thread killer([&, after = options.kill_after] {
    if (after <= 0 && !options.kill_behind) return;
    std::this_thread::sleep_for(std::chrono::duration<double>(after));
    if (options.kill_behind) options.kill_behind();
    kill(child, SIGKILL);  // which is not waited for before this thread has ended
  });
  read_all(out, options.out, result.out, [] {});
  killer.join();
  writer.join();
  errors.join();
  int status = 0;
  waitpid(child, &status, 0);
  result.code = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  return result;
}

}  // namespace headscope::testing
