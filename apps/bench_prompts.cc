// Prompts for `bench`: built in, or from a file. Templates see the time 0, so that the prompts are the same every day.
#include <algorithm>
#include <array>

#include "bench_run.h"
#include "model/config.h"
#include "prompt_options.h"

namespace steadfast {
namespace {

constexpr std::array<const char*, 12> kQuestions = {
    "Why is the sea salty? Answer in one sentence.",
    "Write a short story about a lighthouse keeper who finds a letter in a bottle.",
    "Which of these items was counted most often? Explain how you found it.",
    "Name ten prime numbers, and say why one is not among them.",
    "Translate into French: the train leaves at nine and arrives before noon.",
    "Summarise the list above in two sentences.",
    "Write a Python function that returns the n-th Fibonacci number, then explain its running time.",
    "What would you pack for three days in the mountains, and why?",
    "Sort the places in the list by their number of letters.",
    "Explain to a child how a bicycle stays upright.",
    "Compare bread baked with yeast and bread baked with sourdough.",
    "Continue the list with ten more items in the same style.",
};
// Sentences of the document before each question: short chats and long contexts beside each other.
constexpr std::array<int, 12> kSentences = {0, 0, 12, 1, 0, 40, 3, 0, 24, 0, 2, 60};

std::string built_in_text(int index, int sentences) {
  constexpr std::array<const char*, 5> kThings = {"brass lamps", "red kites", "old maps", "clay jars", "quiet clocks"};
  constexpr std::array<const char*, 7> kPlaces = {"Oslo", "Lima", "Kyoto", "Cairo", "Quebec", "Perth", "Accra"};
  const auto kind = static_cast<std::size_t>(index) % kQuestions.size();
  std::string text = index >= static_cast<int>(kQuestions.size()) ? fmt::format("Letter {}. ", index) : "";
  for (int i = 0; i < sentences; ++i) {
    const auto n = static_cast<std::size_t>(i + index);
    text += fmt::format("Item {}: {} {} were counted in {}. ", i + 1, (n * 37 + 11) % 90 + 5,
                        kThings[n % kThings.size()], kPlaces[n % kPlaces.size()]);
  }
  return text + kQuestions[kind];
}

Result<std::vector<TokenId>> ids_of_messages(const LoadedModel& loaded, Json messages) {
  TemplateInput input;
  input.messages = std::move(messages);
  input.now = 0;
  return render_prompt(loaded, input);
}

Result<std::vector<TokenId>> ids_of_text(const LoadedModel& loaded, const std::string& text) {
  if (loaded.tokenizer && !loaded.chat_template) return loaded.tokenizer->encode(text);
  return ids_of_messages(loaded, Json::array({{{"role", "user"}, {"content", text}}}));
}

Result<std::vector<TokenId>> ids_of_entry(const LoadedModel& loaded, const nlohmann::json& entry) {
  if (entry.is_string()) return ids_of_text(loaded, entry.get<std::string>());
  if (!entry.is_array() || entry.empty()) return Status::error("it must be a string, messages, or token ids");
  if (!entry.front().is_number()) return ids_of_messages(loaded, Json::parse(entry.dump()));
  std::vector<TokenId> ids;
  for (const auto& id : entry) {
    if (!id.is_number_integer() || id.get<double>() < 0 || id.get<double>() >= loaded.card.vocab_size)
      return Status::error("{} is no token id of this model (0 to {})", id.dump(), loaded.card.vocab_size - 1);
    ids.push_back(id.get<TokenId>());
  }
  return ids;
}

// The end of a prompt: its question, and what the template puts behind it.
void keep_last(std::vector<TokenId>& ids, int longest) {
  if (static_cast<int>(ids.size()) > longest) ids.erase(ids.begin(), ids.end() - longest);
}

int usual_sentences(int index) { return kSentences[static_cast<std::size_t>(index) % kSentences.size()]; }

}  // namespace

std::vector<TokenId> arbitrary_ids(int count, int vocab_size, int run) {
  std::vector<TokenId> ids;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t mixed = (i + 1) * 104729 + run * std::int64_t{7919};
    ids.push_back(static_cast<TokenId>(mixed % vocab_size));
  }
  return ids;
}

Result<std::vector<std::vector<TokenId>>> varied_prompts(const LoadedModel& loaded, int count, int longest) {
  std::vector<std::vector<TokenId>> prompts;
  for (int i = 0; i < count; ++i) {
    if (!loaded.tokenizer) {
      const int length = std::min(longest, 9 + i + 14 * usual_sentences(i));
      prompts.push_back(arbitrary_ids(length, loaded.card.vocab_size, i));
      continue;
    }
    auto ids = ids_of_text(loaded, built_in_text(i, usual_sentences(i)));
    if (!ids) return ids.status();
    keep_last(*ids, longest);
    prompts.push_back(std::move(*ids));
  }
  return prompts;
}

Result<std::vector<std::vector<TokenId>>> prompts_of_lengths(const LoadedModel& loaded, std::span<const int> lengths) {
  std::vector<std::vector<TokenId>> prompts;
  for (const int length : lengths) {
    const int index = static_cast<int>(prompts.size());
    if (!loaded.tokenizer) {
      prompts.push_back(arbitrary_ids(length, loaded.card.vocab_size, index));
      continue;
    }
    std::vector<TokenId> ids;
    for (int sentences = length / 8 + 1; static_cast<int>(ids.size()) < length; sentences *= 2) {
      auto longer = ids_of_text(loaded, built_in_text(index, sentences));
      if (!longer) return longer.status();
      ids = std::move(*longer);
    }
    keep_last(ids, length);
    prompts.push_back(std::move(ids));
  }
  return prompts;
}

Result<std::vector<std::vector<TokenId>>> read_prompts(const std::string& path, const LoadedModel& loaded) {
  auto json = read_json_file(path);
  if (!json) return json.status();
  if (!json->is_array() || json->empty()) return Status::error("{} must hold a JSON array of prompts", path);
  std::vector<std::vector<TokenId>> prompts;
  for (const auto& entry : *json) {
    auto ids = ids_of_entry(loaded, entry);
    if (!ids) return Status::error("{}: prompt {}: {}", path, prompts.size(), ids.message());
    if (ids->empty()) return Status::error("{}: prompt {} has no tokens", path, prompts.size());
    prompts.push_back(std::move(*ids));
  }
  return prompts;
}

}  // namespace steadfast
