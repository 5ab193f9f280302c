// Reading of untrusted configuration: typed fields with ranges, each error naming the field.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

#include "base/status.h"

namespace steadfast {

class Fields {
 public:
  Fields(const nlohmann::json& object, std::string name) : object_(&object), name_(std::move(name)) {}

  bool has(const char* key) const {
    return object_->is_object() && object_->contains(key) && !(*object_)[key].is_null();
  }
  // The first failure is kept; later reads give their defaults.
  const Status& status() const { return status_; }

  int integer(const char* key, int low, int high, int fallback) {
    if (!has(key)) return fallback;
    const auto& value = (*object_)[key];
    if (!value.is_number_integer() || value.get<double>() < low || value.get<double>() > high) {
      note(fmt::format("\"{}\" must be a whole number from {} to {}", key, low, high));
      return fallback;
    }
    return value.get<int>();
  }
  int required(const char* key, int low, int high) {
    if (!has(key)) note(fmt::format("\"{}\" is missing", key));
    return integer(key, low, high, low);
  }
  double number(const char* key, double low, double high, double fallback) {
    if (!has(key)) return fallback;
    const auto& value = (*object_)[key];
    if (!value.is_number() || !(value.get<double>() >= low && value.get<double>() <= high)) {
      note(fmt::format("\"{}\" must be a number from {} to {}", key, low, high));
      return fallback;
    }
    return value.get<double>();
  }
  bool boolean(const char* key, bool fallback) {
    if (!has(key)) return fallback;
    if (!(*object_)[key].is_boolean()) {
      note(fmt::format("\"{}\" must be true or false", key));
      return fallback;
    }
    return (*object_)[key].get<bool>();
  }
  std::string text(const char* key, std::string fallback) {
    if (!has(key)) return fallback;
    if (!(*object_)[key].is_string()) {
      note(fmt::format("\"{}\" must be a string", key));
      return fallback;
    }
    return (*object_)[key].get<std::string>();
  }
  const nlohmann::json& at(const char* key) const { return (*object_)[key]; }
  void note(const std::string& what) {
    if (status_.is_ok()) status_ = Status::error("{}: {}", name_, what);
  }

 private:
  const nlohmann::json* object_;
  std::string name_;
  Status status_;
};

}  // namespace steadfast
