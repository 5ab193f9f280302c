// fork, execvp, wait; a close-on-exec pipe tells the parent why execvp failed.
#include "store/process.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace steadfast {
namespace {

// Only what is safe between fork and exec in a program with threads.
[[noreturn]] void become(char* const* arguments, int report) {
  if (::dup2(STDERR_FILENO, STDOUT_FILENO) >= 0) ::execvp(arguments[0], arguments);
  const int code = errno;
  const ssize_t written = ::write(report, &code, sizeof(code));
  ::_exit(written == sizeof(code) ? 127 : 126);
}

}  // namespace

Result<int> run_program(const std::vector<std::string>& arguments) {
  CHECK(!arguments.empty(), "a program to run");
  std::vector<char*> pointers;
  for (const std::string& argument : arguments) pointers.push_back(const_cast<char*>(argument.c_str()));
  pointers.push_back(nullptr);
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    return Status::error("{} cannot be started ({}); close other programs", arguments[0], std::strerror(errno));
  }
  const pid_t child = ::fork();
  if (child == 0) become(pointers.data(), ends[1]);
  const int fork_error = errno;
  ::close(ends[1]);
  int code = 0;
  const ssize_t count = child < 0 ? 0 : ::read(ends[0], &code, sizeof(code));
  ::close(ends[0]);
  if (child < 0)
    return Status::error("{} cannot be started ({}); close other programs", arguments[0], std::strerror(fork_error));
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (count == sizeof(code)) {
    return Status::error("{} cannot be started ({}); install it, or correct the PATH", arguments[0],
                         std::strerror(code));
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace steadfast
