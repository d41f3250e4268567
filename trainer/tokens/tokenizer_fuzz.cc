// SPDX-License-Identifier: Apache-2.0
//
// Changed SentencePiece models. SentencePiece is third-party code: whatever it
// does with a bad model, it does in the child process of CheckTokenizerModel,
// and here the model is refused. A model that passes is used here, as //:train
// would use it.
#include "core/fuzzing/fuzz_support.h"
#include "trainer/tokens/tokenizer.h"

namespace softmoe::fuzz {
namespace {

using trainer::Tokenizer;

// The smallest tokenizer that can be trained.
const std::string& GoodModel() {
  static const std::string model = [] {
    std::vector<std::string> documents;
    for (int i = 0; i < 200; ++i) {
      documents.push_back("the quick brown fox " + std::to_string(i * 7919) +
                          " jumps over lazy dogs, and " +
                          std::to_string(i * 104729) + " others did not");
    }
    return trainer::TrainTokenizer(documents, trainer::kMinVocabSize);
  }();
  return model;
}

std::string Changed(Choices& choices) {
  std::string model = GoodModel();
  for (int i = 0; i < 16 && !choices.done(); ++i) {
    const size_t at = choices.Below(model.size());
    switch (choices.Below(4)) {
      case 0:
        model[at] = static_cast<char>(choices.Byte());
        break;
      case 1:
        model.insert(at, choices.Text(16));
        break;
      case 2:
        model.erase(at, choices.Byte());
        break;
      default:  // another length, type or number of a field
        model[at] = static_cast<char>(model[at] ^ (1 << choices.Below(8)));
    }
    if (model.empty()) break;
  }
  return model;
}

}  // namespace

void FuzzOne(std::string_view input) {
  LetChildrenCrash();
  Choices choices(input);
  const std::string model =
      choices.OneIn(4) ? std::string(choices.Rest()) : Changed(choices);
  Accepts([&] {
    trainer::CheckTokenizerModel(model, "fuzz.model");
    const Tokenizer tokenizer(model, "fuzz.model");
    const auto ids =
        tokenizer.Encode("The fox, 2 caf\xC3\xA9s.\n\n\xE4\xB8\xAD");
    for (const int32_t id : ids) {
      Require(id >= 0 && id < tokenizer.vocab_size(),
              "an id outside the vocabulary");
    }
    tokenizer.Decode(ids);
    tokenizer.Decode(std::vector<int32_t>{tokenizer.end_of_document()});
  });
}

std::vector<std::string> Seeds() {
  return {std::string(1, '\0'),
          std::string("\x00\x00\x01\x00\xff", 5),
          std::string("\x00\x10\x00\x03\x02", 5),
          std::string("\x00\x08\x00\x02\x20", 5),
          "\x03" + GoodModel().substr(0, 2000),
          "\x03\x0a\x05\x0a\x03<s>"};
}

}  // namespace softmoe::fuzz
