// What /metrics tells, in Prometheus' text form.
#pragma once

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <string>

#include "engine/service.h"

namespace steadfast {

class Metrics {
 public:
  Metrics();
  // `route` must come from a small fixed set, never from a client.
  void request(const std::string& route, int status, double seconds);
  void first_token(double seconds) { first_token_.Observe(seconds); }
  std::string text(const ServiceCounters& counters, std::size_t connections) const;

 private:
  prometheus::Registry registry_;
  prometheus::Family<prometheus::Counter>& requests_;
  prometheus::Family<prometheus::Histogram>& seconds_;
  prometheus::Histogram& first_token_;
};

}  // namespace steadfast
