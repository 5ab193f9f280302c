// Cases of the contract as data: tables of tab-separated text. A table's first line names its columns, the first column
// by the kernel's name: under it stand the cases' names. A blank line ends a table; lines that begin with # are
// comments. Small cases come first. What a column may hold is the kernel's to say (kernel.h); errors name the line.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace steadfast::contract {

// A column of whole numbers from least to most, or, with words, one of these; neither: text that the kernel reads.
struct Column {
  std::string name;
  int least = 0, most = -1;  // most < least: not a number
  std::vector<std::string> words;
};

class Case {
 public:
  std::string kernel, name;
  bool full = false, card = false;  // only with --full; and only on a GPU
  int line = 0;

  int number(const std::string& column) const;
  const std::string& text(const std::string& column) const;
  bool is(const std::string& column, std::string_view word) const { return text(column) == word; }
  void set(const std::string& column, std::string value) { values_[column] = std::move(value); }

 private:
  std::map<std::string, std::string> values_;
};

// columns_of: the columns of a kernel besides its name and `when` (quick, full, card); nullptr: no such kernel.
// from: the file's name, for errors.
Result<std::vector<Case>> parse_cases(std::string_view text, const std::string& from,
                                      const std::vector<Column>* (*columns_of)(const std::string& kernel));

// A whole number, nothing before or behind it.
Result<int> parse_number(std::string_view text);
// "a,b,c" to its parts.
std::vector<std::string> split(std::string_view text, char separator);

}  // namespace steadfast::contract
