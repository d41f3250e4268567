// SPDX-License-Identifier: Apache-2.0
#include "trainer/tokens/dataset.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "core/errors.h"
#include "core/testing/file_test_util.h"
#include "core/testing/message_test_util.h"
#include "trainer/testing/corpus_test_util.h"
#include "trainer/testing/token_test_util.h"

namespace softmoe::trainer {
namespace {

using Ids = std::vector<int32_t>;

// Documents of the given lengths over the ids 0, 1, 2, ..., so that an id says
// where in the stream it is.
std::filesystem::path WriteCounting(const std::string& name,
                                    const std::vector<int64_t>& lengths) {
  const auto prefix = FreshFolder(name) / "t";
  std::vector<Ids> documents;
  int32_t next = 0;
  for (const int64_t length : lengths) {
    Ids& ids = documents.emplace_back();
    for (int64_t i = 0; i < length; ++i) ids.push_back(next++);
  }
  WriteTokenFiles(prefix, 60000, documents);
  return prefix;
}

Config MakeConfig(int64_t sequence_length, int64_t batch, double fraction) {
  Config config;
  config.model.vocab_size = 60000;
  config.model.sequence_length = sequence_length;
  config.training.global_batch_sequences = batch;
  config.data.validation_fraction = fraction;
  return config;
}

struct Batch {
  Ids inputs, targets;
};

Batch GetBatch(const Dataset& data, const Config& config, int64_t step,
               int64_t first, int64_t count) {
  const auto size = static_cast<size_t>(count * config.model.sequence_length);
  Batch batch{Ids(size), Ids(size)};
  data.FillBatch(step, first, count, batch.inputs, batch.targets);
  return batch;
}

TEST(Dataset, HoldsOutTheLastDocuments) {
  // 100 documents of 10 tokens; 2 % are the last two.
  const auto prefix = WriteCounting("split", std::vector<int64_t>(100, 10));
  const Config config = MakeConfig(5, 4, 0.02);
  const Dataset data(config, prefix);
  EXPECT_EQ(data.num_training_sequences(), (980 - 1) / 5);
  EXPECT_EQ(data.num_validation_sequences(), (20 - 1) / 5);

  Ids inputs(15), targets(15);
  data.FillValidation(0, 3, inputs, targets);
  for (int32_t i = 0; i < 15; ++i) {
    EXPECT_EQ(inputs[static_cast<size_t>(i)], 980 + i);
    EXPECT_EQ(targets[static_cast<size_t>(i)], 981 + i);
  }
  Ids last_inputs(5), last_targets(5);
  data.FillValidation(2, 1, last_inputs, last_targets);
  EXPECT_EQ(last_inputs, Ids(inputs.begin() + 10, inputs.end()));
}

// round(0.02 documents), halves up: 1.48, 1.5 and 2.5. Rounding down would hold
// out 1, 1, 2, rounding halves to even 1, 2, 2. Of 0.4, at least one is.
TEST(Dataset, RoundsTheHeldOutDocumentsHalfUp) {
  const std::vector<std::pair<int64_t, int64_t>> kHeldOut = {
      {20, 1}, {74, 1}, {75, 2}, {125, 3}};
  for (const auto& [documents, held_out] : kHeldOut) {
    const auto prefix = WriteCounting(
        "half", std::vector<int64_t>(static_cast<size_t>(documents), 10));
    const Dataset data(MakeConfig(5, 4, 0.02), prefix);
    EXPECT_EQ(data.num_validation_sequences(), (10 * held_out - 1) / 5)
        << documents;
    EXPECT_EQ(data.num_training_sequences(),
              (10 * (documents - held_out) - 1) / 5);
  }
}

// No held-out token is ever trained on, and every training token but the first
// (and a remainder) is a target once, even if epochs end inside a batch.
RC_GTEST_PROP(Dataset, AnEpochPredictsEveryTokenOnce, ()) {
  const auto lengths = *rc::gen::container<std::vector<int64_t>>(
      40, rc::gen::inRange<int64_t>(0, 40));
  const auto length = *rc::gen::inRange<int64_t>(1, 12);
  const auto batch = *rc::gen::inRange<int64_t>(1, 6);
  const Config config = MakeConfig(length, batch, 0.1);
  int64_t training_tokens = 0;
  int64_t held_out_tokens = 0;
  for (size_t d = 0; d < lengths.size(); ++d) {
    (d < 36 ? training_tokens : held_out_tokens) += lengths[d];
  }
  const int64_t sequences = (training_tokens - 1) / length;
  RC_PRE(training_tokens > 0 && sequences >= batch && held_out_tokens > length);
  const Dataset data(config, WriteCounting("epoch", lengths));
  RC_ASSERT(data.num_training_sequences() == sequences);

  // batch * sequences draws are `batch` whole epochs in `sequences` steps.
  std::vector<int64_t> times(static_cast<size_t>(training_tokens));
  for (int64_t step = 0; step < sequences; ++step) {
    const Batch got = GetBatch(data, config, step, 0, batch);
    for (size_t i = 0; i < got.inputs.size(); ++i) {
      RC_ASSERT(got.targets[i] == got.inputs[i] + 1);
      ++times[static_cast<size_t>(got.targets[i])];
    }
  }
  for (int64_t t = 0; t < training_tokens; ++t) {
    const bool predicted = t >= 1 && t <= sequences * length;
    RC_ASSERT(times[static_cast<size_t>(t)] == (predicted ? batch : 0));
  }
}

TEST(Dataset, IsAPureFunctionOfTheStep) {
  const auto prefix = WriteCounting("pure", std::vector<int64_t>(100, 10));
  const Config config = MakeConfig(5, 8, 0.02);
  const Dataset data(config, prefix);
  const Batch whole = GetBatch(data, config, 31, 0, 8);
  const Batch again = GetBatch(Dataset(config, prefix), config, 31, 0, 8);
  EXPECT_EQ(whole.inputs, again.inputs);
  // Micro-batches have the same sequences, in any order.
  for (int64_t first : {6, 0, 4, 2}) {
    const Batch part = GetBatch(data, config, 31, first, 2);
    EXPECT_EQ(part.targets, Ids(whole.targets.begin() + first * 5,
                                whole.targets.begin() + first * 5 + 10));
  }
  EXPECT_NE(whole.inputs, GetBatch(data, config, 32, 0, 8).inputs);
  Config other = config;
  other.training.seed = 5;
  EXPECT_NE(whole.inputs,
            GetBatch(Dataset(other, prefix), other, 31, 0, 8).inputs);
}

TEST(Dataset, EveryEpochHasAnOrderOfItsOwn) {
  // 40 sequences in batches of 8: an epoch is exactly 5 steps.
  const auto prefix = WriteCounting("epochs", {201, 20});
  const Config config = MakeConfig(5, 8, 0.5);
  const Dataset data(config, prefix);
  ASSERT_EQ(data.num_training_sequences(), 40);
  std::vector<Ids> orders(3);
  for (int64_t step = 0; step < 15; ++step) {
    const Batch batch = GetBatch(data, config, step, 0, 8);
    for (size_t s = 0; s < 8; ++s) {
      orders[static_cast<size_t>(step / 5)].push_back(batch.inputs[s * 5]);
    }
  }
  EXPECT_NE(orders[0], orders[1]);
  EXPECT_NE(orders[1], orders[2]);
  EXPECT_NE(orders[0], orders[2]);
}

TEST(Dataset, UnigramLossIsTheSmoothedCrossEntropy) {
  // Training: a a a b. Held out: c a b a, of which "a b a" are targets (one
  // window of three). Vocabulary of 3; a: 4/7, b: 2/7, c: 1/7.
  const auto prefix = FreshFolder("unigram") / "t";
  WriteTokenFiles(prefix, 3, {{0, 0, 0, 1}, {2, 0, 1, 0}});
  Config config = MakeConfig(3, 1, 0.5);
  config.model.vocab_size = 3;
  const double expected = -(2 * std::log(4.0 / 7) + std::log(2.0 / 7)) / 3;
  const Dataset data(config, prefix);
  // Each quotient is rounded once on either side, which becomes an absolute
  // error of the logarithm; a logarithm errs by an ulp, and sum and division
  // round once.
  EXPECT_NEAR(UnigramLoss(data.CountSplits()), expected,
              2 * (1 + (2 + 1 + 1) * expected) * 0x1p-53);
  EXPECT_EQ(UnigramLoss(data.CountSplits(1)), UnigramLoss(data.CountSplits()));
  EXPECT_EQ(UnigramLoss(data.CountSplits(2)),
            UnigramLoss(data.CountSplits()));  // there is only one
}

TEST(Dataset, UnigramLossOfUniformTokensIsLogVocabulary) {
  // All ids occur equally often, so smoothing changes nothing.
  const auto prefix = FreshFolder("uniform") / "t";
  Ids every(16);
  std::iota(every.begin(), every.end(), 0);
  WriteTokenFiles(prefix, 16, std::vector<Ids>(50, every));
  Config config = MakeConfig(7, 1, 0.1);
  config.model.vocab_size = 16;
  // 46 / (45 * 16 + 16) is exact. Both logarithms err by an ulp; a product, 15
  // additions and a division.
  EXPECT_NEAR(UnigramLoss(Dataset(config, prefix).CountSplits()),
              std::log(16.0), (2 * 2 + 1 + 15 + 1) * 0x1p-53 * std::log(16.0));
}

// The first token of the held-out document is not a target.
TEST(Dataset, BytesBehindTokensAreThoseOfTheText) {
  const Tokenizer tokenizer(TrainTokenizer(TestDocuments(400), 400), "test");
  const auto prefix = FreshFolder("bytes") / "t";
  std::vector<Ids> documents;
  const std::string texts[] = {"the lamp caf\u00E9 \U0001F600 ", "", "\n\n",
                               "a lamp  in\tthe\u3000rain"};
  int64_t training_tokens = 0, training_bytes = 0;
  Ids last;
  for (const std::string& text : texts) {
    last = tokenizer.Encode(text);
    last.push_back(tokenizer.end_of_document());
    documents.push_back(last);
    if (&text == &texts[3]) break;
    training_tokens += std::ssize(last);
    training_bytes += std::ssize(text);
  }
  WriteTokenFiles(prefix, 400, documents);
  Config config = MakeConfig(1, 1, 0.25);
  config.model.vocab_size = 400;
  const Dataset data(config, prefix);
  const auto first = std::ssize(tokenizer.Decode({last.data(), 1}));
  for (const int64_t targets : {std::ssize(last) - 1, int64_t{3}}) {
    const auto text =
        tokenizer.Decode({last.data(), static_cast<size_t>(targets) + 1});
    const BytesPerToken bytes =
        MeasureBytes(data.CountSplits(targets), tokenizer);
    EXPECT_EQ(bytes.training, static_cast<double>(training_bytes) /
                                  static_cast<double>(training_tokens));
    EXPECT_EQ(bytes.targets, static_cast<double>(std::ssize(text) - first) /
                                 static_cast<double>(targets));
  }
}

TEST(Dataset, SaysWhenTheCorpusIsTooSmall) {
  const auto expect = [](const std::vector<int64_t>& lengths,
                         const std::string& part) {
    EXPECT_TRUE(Says(MessageOf<DataError>([&] {
                       const Dataset data(MakeConfig(10, 4, 0.5),
                                          WriteCounting("small", lengths));
                     }),
                     part, "data.corpus"));
  };
  expect({40, 100}, "3 training sequences of 10 tokens (a batch needs 4)");
  expect({41, 10}, "0 validation sequences");
  expect({10, 10, 20, 21},
         "hold out less (data.validation_fraction), or use a larger");
  expect({10, 10, 20, 20}, "is needed); use a larger corpus");
  expect({41, 2, 2, 2}, "hold out more (data.validation_fraction), or use a");
  // One document is held out, and one is not, whatever the fraction.
  expect({40, 100}, "is needed); use a larger corpus");
  expect({41, 10}, "is needed); use a larger corpus");
  expect({1000}, "0 training sequences");
  expect({}, "0 documents with 0 tokens");
  // Just enough.
  Dataset(MakeConfig(10, 4, 0.5), WriteCounting("enough", {41, 11}));
}

TEST(Dataset, SaysThatOneDocumentIsTooFew) {
  const std::vector<std::pair<std::vector<int64_t>, std::string>> kSequences = {
      {{}, "0 validation"}, {{5000}, "4999 validation"}};
  for (const auto& [lengths, held_out] : kSequences) {
    const auto prefix = WriteCounting("one_document", lengths);
    EXPECT_TRUE(Says(
        MessageOf<DataError>(
            [&] { const Dataset data(MakeConfig(1, 4, 0.02), prefix); }),
        "at least 2", "blank lines",
        " 0 training sequences of 1 tokens (a batch needs 4) and " + held_out));
  }
}

// An evaluation needs a held-out sequence, and one document before it.
TEST(Dataset, NeedsNoBatchWithoutTraining) {
  const auto open = [](const std::vector<int64_t>& lengths) {
    Dataset(MakeConfig(10, 4, 0.5), WriteCounting("evaluated", lengths),
            /*trains=*/false);
  };
  EXPECT_NO_THROW(open({1, 11}));
  for (const std::vector<int64_t>& lengths :
       {std::vector<int64_t>{1, 10}, std::vector<int64_t>{1000}}) {
    EXPECT_TRUE(Says(MessageOf<DataError>([&] { open(lengths); }),
                     "do not fill a sequence of 10 tokens"));
  }
}

TEST(Dataset, RefusesTokensOfALargerVocabulary) {
  const auto prefix = WriteCounting("vocabulary", {500, 500});
  Config config = MakeConfig(10, 4, 0.5);
  config.model.vocab_size = 400;
  const Dataset data(config, prefix);
  EXPECT_THROW(data.CountSplits(), DataError);
}

}  // namespace
}  // namespace softmoe::trainer
