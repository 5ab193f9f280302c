// Reads the records and compares.
#include "contract/kernel_limits.h"

#include <cxxabi.h>

#include <cstdlib>

#include "contract/case.h"
#include "contract/embedded.h"

namespace steadfast::contract {

Result<LimitsRecord> parse_limits(std::string_view text, std::string_view from) {
  LimitsRecord record;
  record.architecture = from.substr(0, from.rfind('.'));
  constexpr std::string_view kCompiler = "# nvcc ";
  int number = 0;
  for (const std::string& line : split(text, '\n')) {
    ++number;
    if (line.empty()) continue;
    if (number == 1 && line.starts_with(kCompiler)) {
      record.compiler = line.substr(kCompiler.size());
      continue;
    }
    const auto fields = split(line, '\t');
    if (number == 2 && fields[0] == "source") continue;
    if (fields.size() != 7) return Status::error("{}, line {}: {} fields, not 7", from, number, fields.size());
    KernelLimits limits{fields[0], fields[1]};
    int* const numbers[] = {&limits.registers, &limits.stack, &limits.spill_stores, &limits.spill_loads,
                            &limits.shared};
    for (std::size_t i = 0; i < 5; ++i) {
      auto value = parse_number(fields[i + 2]);
      if (!value) return Status::error("{}, line {}: {}", from, number, value.message());
      *numbers[i] = *value;
    }
    record.kernels.push_back(std::move(limits));
  }
  if (record.compiler.empty() || record.kernels.empty())
    return Status::error("{}: no compiler or no kernel; make it with tools/kernel_limits.py --write", from);
  return record;
}

const std::vector<LimitsRecord>& built_in_limits() {
  static const std::vector<LimitsRecord> kRecords = [] {
    std::vector<LimitsRecord> all;
    for (const Embedded& file : embedded_limits()) {
      auto record = parse_limits(file.text, file.name);
      CHECK(record.is_ok(), "{}", record.message());
      all.push_back(std::move(*record));
    }
    return all;
  }();
  return kRecords;
}

std::string plain_name(const std::string& name) {
  int status = 0;
  char* demangled = abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status);
  std::string plain = demangled == nullptr ? name : demangled;
  std::free(demangled);
  constexpr std::string_view kAnonymous = "(anonymous namespace)::";
  for (std::size_t at; (at = plain.find(kAnonymous)) != std::string::npos;) plain.erase(at, kAnonymous.size());
  int depth = 0;  // the parameter list is the first parenthesis outside template arguments
  for (std::size_t i = 0; i < plain.size(); ++i) {
    depth += plain[i] == '<' ? 1 : plain[i] == '>' ? -1 : 0;
    if (plain[i] != '(' || depth != 0) continue;
    plain.resize(i);
    break;
  }
  return plain.starts_with("void ") ? plain.substr(5) : plain;
}

namespace {

// The record of a kernel of this name; of several, one with the same number of registers if there is one.
const KernelLimits* find(const LimitsRecord& record, const LoadedKernel& kernel) {
  const KernelLimits* found = nullptr;
  for (const KernelLimits& one : record.kernels)
    if (one.kernel == kernel.name && (found == nullptr || one.registers == kernel.registers)) found = &one;
  return found;
}

}  // namespace

LimitsComparison compare(const LoadedKernels& loaded, const LimitsRecord& record) {
  LimitsComparison result;
  const bool same_compiler = loaded.compiler == record.compiler;
  if (!same_compiler)
    result.notes.push_back(
        fmt::format("recorded by nvcc {}, built by {}: registers are not compared", record.compiler, loaded.compiler));
  for (const LoadedKernel& kernel : loaded.kernels) {
    if (kernel.local > 0)
      result.wrong.push_back(fmt::format("{} has {} bytes of local memory", kernel.name, kernel.local));
    const KernelLimits* recorded = find(record, kernel);
    if (recorded == nullptr) {
      ++result.unknown;
      result.wrong.push_back(fmt::format("{} is not in the record; run tools/kernel_limits.py --write", kernel.name));
      continue;
    }
    ++result.compared;
    if (same_compiler && (recorded->registers != kernel.registers || recorded->shared != kernel.shared))
      result.wrong.push_back(fmt::format("{}: {} registers and {} bytes shared, recorded {} and {}", kernel.name,
                                         kernel.registers, kernel.shared, recorded->registers, recorded->shared));
  }
  return result;
}

}  // namespace steadfast::contract
