// Reads the tables line by line; every error names file, line and column.
#include "contract/case.h"

#include <algorithm>
#include <charconv>

namespace steadfast::contract {

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(separator, at), text.size());
    parts.emplace_back(text.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

Result<int> parse_number(std::string_view text) {
  int value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || parsed.ec != std::errc() || parsed.ptr != text.data() + text.size())
    return Status::error("\"{}\" is not a whole number", text);
  return value;
}

const std::string& Case::text(const std::string& column) const {
  const auto found = values_.find(column);
  CHECK(found != values_.end(), "a case of {} has no column {}", kernel, column);
  return found->second;
}

int Case::number(const std::string& column) const {
  auto value = parse_number(text(column));
  CHECK(value.is_ok(), "{} {}: {}", kernel, column, value.message());
  return *value;
}

namespace {

Status check_value(const Column& column, const std::string& value) {
  if (!column.words.empty()) {
    if (std::find(column.words.begin(), column.words.end(), value) != column.words.end()) return Status::ok();
    return Status::error("{} is \"{}\"; use one of: {}", column.name, value, fmt::join(column.words, ", "));
  }
  if (column.most < column.least) return value.empty() ? Status::error("{} is empty", column.name) : Status::ok();
  auto number = parse_number(value);
  if (!number) return Status::error("{}: {}", column.name, number.message());
  if (*number < column.least || *number > column.most)
    return Status::error("{} is {}; use {} to {}", column.name, *number, column.least, column.most);
  return Status::ok();
}

struct Table {
  std::string kernel;
  std::vector<const Column*> columns;  // of the fields behind the name
};

Result<Table> parse_heading(const std::vector<std::string>& names, const Column& when,
                            const std::vector<Column>* known) {
  Table table{names[0], {}};
  if (known == nullptr)
    return Status::error("there is no kernel \"{}\"; `steadfast contract list` names them", names[0]);
  for (std::size_t i = 1; i < names.size(); ++i) {
    const Column* column = names[i] == when.name ? &when : nullptr;
    for (const Column& one : *known)
      if (one.name == names[i]) column = &one;
    if (column == nullptr) return Status::error("{} has no column \"{}\"", table.kernel, names[i]);
    if (std::find(table.columns.begin(), table.columns.end(), column) != table.columns.end())
      return Status::error("column \"{}\" stands twice", names[i]);
    table.columns.push_back(column);
  }
  if (table.columns.size() != known->size() + 1) {
    std::vector<std::string> all{when.name};
    for (const Column& one : *known) all.push_back(one.name);
    return Status::error("{} needs the columns {}", table.kernel, fmt::join(all, ", "));
  }
  return table;
}

Result<Case> parse_case(const Table& table, const std::vector<std::string>& fields) {
  if (fields.size() != table.columns.size() + 1)
    return Status::error("{} fields under {} columns", fields.size(), table.columns.size() + 1);
  Case result;
  result.kernel = table.kernel;
  result.name = fields[0];
  if (result.name.empty()) return Status::error("a case without a name");
  for (std::size_t i = 1; i < fields.size(); ++i) {
    const Column& column = *table.columns[i - 1];
    if (auto status = check_value(column, fields[i]); !status) return status;
    result.set(column.name, fields[i]);
  }
  result.card = result.is("when", "card");
  result.full = result.card || result.is("when", "full");
  return result;
}

}  // namespace

Result<std::vector<Case>> parse_cases(std::string_view text, const std::string& from,
                                      const std::vector<Column>* (*columns_of)(const std::string& kernel)) {
  const Column when{"when", 0, -1, {"quick", "full", "card"}};
  std::vector<Case> cases;
  Table table;
  bool in_table = false;
  int number = 0;
  for (std::string line : split(text, '\n')) {
    ++number;
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (line.starts_with('#')) continue;
    if (line.empty()) {
      in_table = false;
      continue;
    }
    const std::vector<std::string> fields = split(line, '\t');
    if (!in_table) {
      auto heading = parse_heading(fields, when, columns_of(fields[0]));
      if (!heading) return Status::error("{}, line {}: {}", from, number, heading.message());
      table = std::move(*heading);
      in_table = true;
      continue;
    }
    auto one = parse_case(table, fields);
    if (!one) return Status::error("{}, line {}: {}", from, number, one.message());
    for (const Case& other : cases)
      if (other.kernel == one->kernel && other.name == one->name)
        return Status::error("{}, line {}: {} has a case \"{}\" already, in line {}", from, number, one->kernel,
                             one->name, other.line);
    one->line = number;
    cases.push_back(std::move(*one));
  }
  if (cases.empty()) return Status::error("{}: no case in it", from);
  return cases;
}

}  // namespace steadfast::contract
