// One more node under evaluation: counts the step, bounds the depth of the stack, and keeps the line for errors (the
// line of the innermost node stays when an error leaves it).
#pragma once

#include <exception>

#include "text/jinja/interpreter.h"

namespace steadfast::jinja {

class Interpreter::Deeper {
 public:
  Deeper(Interpreter& vm, int line) : vm_(vm), outer_line_(vm.line_) {
    vm_.line_ = line;
    vm_.heap_.spend(1);
    if (vm_.depth_ >= kMaxEvaluationDepth)
      fail("the template's evaluation nests more than {} deep", kMaxEvaluationDepth);
    ++vm_.depth_;
    exceptions_ = std::uncaught_exceptions();
  }
  ~Deeper() {
    --vm_.depth_;
    if (std::uncaught_exceptions() == exceptions_) vm_.line_ = outer_line_;
  }
  Deeper(const Deeper&) = delete;
  Deeper& operator=(const Deeper&) = delete;

 private:
  Interpreter& vm_;
  int outer_line_;
  int exceptions_;
};

}  // namespace steadfast::jinja
