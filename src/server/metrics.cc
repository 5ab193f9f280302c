// Server metrics from a registry; the engine's counters are read when asked for.
#include "server/metrics.h"

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

namespace steadfast {

namespace {

const prometheus::Histogram::BucketBoundaries kSeconds = {0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1,
                                                          5,     10,    30,   60,   300, 1800};

prometheus::MetricFamily single(const char* name, const char* help, prometheus::MetricType type, double value) {
  prometheus::MetricFamily family{name, help, type, {}};
  prometheus::ClientMetric metric;
  metric.counter.value = value;
  metric.gauge.value = value;
  family.metric.push_back(metric);
  return family;
}

prometheus::MetricFamily pages(const ServiceCounters& counters) {
  prometheus::MetricFamily family{"steadfast_pages",
                                  "Pages of the pool: in use by streams, kept by prefixes alone, free (--kv paged)",
                                  prometheus::MetricType::Gauge,
                                  {}};
  for (const auto& [state, count] :
       {std::pair("free", counters.pages_free), {"kept", counters.pages_kept}, {"in_use", counters.pages_in_use}}) {
    prometheus::ClientMetric metric;
    metric.label.push_back({"state", state});
    metric.gauge.value = count;
    family.metric.push_back(metric);
  }
  return family;
}

}  // namespace

Metrics::Metrics()
    : requests_(prometheus::BuildCounter()
                    .Name("steadfast_http_requests_total")
                    .Help("HTTP requests answered, by route and status")
                    .Register(registry_)),
      seconds_(prometheus::BuildHistogram()
                   .Name("steadfast_http_request_seconds")
                   .Help("Time from a request's head to the end of its reply, by route")
                   .Register(registry_)),
      first_token_(prometheus::BuildHistogram()
                       .Name("steadfast_first_token_seconds")
                       .Help("Time from a request's submission to the first piece of its reply")
                       .Register(registry_)
                       .Add({}, kSeconds)) {}

void Metrics::request(const std::string& route, int status, double seconds) {
  requests_.Add({{"route", route}, {"status", std::to_string(status)}}).Increment();
  seconds_.Add({{"route", route}}, kSeconds).Observe(seconds);
}

std::string Metrics::text(const ServiceCounters& counters, std::size_t connections) const {
  using prometheus::MetricType;
  auto families = registry_.Collect();
  const auto add = [&](const char* name, const char* help, MetricType type, double value) {
    families.push_back(single(name, help, type, value));
  };
  add("steadfast_requests_total", "Replies submitted to the engine", MetricType::Counter,
      static_cast<double>(counters.requests));
  add("steadfast_prompt_tokens_total", "Prompt tokens processed", MetricType::Counter,
      static_cast<double>(counters.prompt_tokens));
  add("steadfast_reply_tokens_total", "Reply tokens made", MetricType::Counter,
      static_cast<double>(counters.reply_tokens));
  add("steadfast_prompt_tokens_reused_total", "Prompt tokens found in kept prefixes", MetricType::Counter,
      static_cast<double>(counters.prompt_tokens_reused));
  add("steadfast_streams_set_aside_total", "Streams set aside for want of pages, to be computed again",
      MetricType::Counter, static_cast<double>(counters.streams_set_aside));
  add("steadfast_rounds_total", "Rounds computed", MetricType::Counter, static_cast<double>(counters.rounds));
  add("steadfast_rows_total", "Rows computed, of prompts and replies", MetricType::Counter,
      static_cast<double>(counters.rows));
  add("steadfast_streams_running", "Streams being computed", MetricType::Gauge, counters.streams_running);
  add("steadfast_streams_waiting", "Streams waiting for a place", MetricType::Gauge, counters.streams_waiting);
  families.push_back(pages(counters));
  add("steadfast_kept_state_bytes", "Recurrent states kept with prefixes, in bytes", MetricType::Gauge,
      static_cast<double>(counters.kept_state_bytes));
  add("steadfast_connections", "Open client connections", MetricType::Gauge, static_cast<double>(connections));
  return prometheus::TextSerializer().Serialize(families);
}

}  // namespace steadfast
