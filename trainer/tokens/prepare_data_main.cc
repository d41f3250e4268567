// SPDX-License-Identifier: Apache-2.0
//
// prepare_data_main.cc - //:prepare_data: text to token files.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/config/config.h"
#include "core/config/config_enums.h"
#include "core/errors.h"
#include "core/files/paths.h"
#include "core/files/replacing.h"
#include "core/text/command_line.h"
#include "core/text/progress.h"
#include "trainer/corpora/corpus.h"
#include "trainer/corpora/corpus_files.h"
#include "trainer/corpora/standin_corpora.h"
#include "trainer/tokens/prepare.h"
#include "trainer/tokens/prepared_corpus.h"
#include "trainer/tokens/token_file.h"

namespace softmoe::trainer {
namespace {

constexpr const char* kDescription =
    "Turns a text corpus into token files for training: trains a SentencePiece "
    "BPE tokenizer on a sample of it, encodes every document, and writes\n"
    "  PREFIX.bin, PREFIX.idx   Megatron-LM token files\n"
    "  PREFIX.model             the tokenizer\n"
    "  PREFIX.manifest          what each file of the corpus gave\n"
    "  PREFIX.json              what they were made from, with hashes\n"
    "(trainer/TOKEN_FILES.md has every byte). Earlier work is found in the "
    "cache, $XDG_CACHE_HOME/softmoe; a stopped preparation continues.";

constexpr const char* kExamples =
    "Examples:\n"
    "  ./bazelw run //:prepare_data -- --list\n"
    "  ./bazelw run //:prepare_data -- --corpus debian-mix --vocab-size 2048\n"
    "  ./bazelw run //:prepare_data -- --corpus path:novels.txt --vocab-size "
    "4096 --out data/novels\n"
    "  ./bazelw run //:prepare_data -- --how owt\n"
    "  ./bazelw run //:prepare_data -- --corpus owt --place owt=/data/owt "
    "--vocab-size 32768 --out /data/owt-tokens/owt\n"
    "  ./bazelw run //:prepare_data -- --corpus jsonl:mine.jsonl.zst "
    "--text-key content --on-bad=skip\n"
    "  ./bazelw run //:prepare_data -- --corpus path:other.txt --tokenizer "
    "data/novels.model --out data/other\n"
    "\n"
    "Documents of path:FILE are separated by lines of <|endoftext|>; if it "
    "has none, by blank lines; if it has neither, each line is a document.\n"
    "Exit codes: 0 done; 2 usage or damaged input; 5 offline, missing file or "
    "full disk; 75 stopped by a signal, the same command continues.";

struct Arguments {
  DataConfig data;
  std::optional<int64_t> vocab_size;
  std::string tokenizer;
  std::string out, how, on_bad = "fail";
  std::string normalise = EnumName(Normalise::kNone);
  std::vector<std::string> places;
  ReadOptions read;
  int64_t threads = 0;
  bool verify = false;
  bool list = false;
  bool quiet = false;
};

void AddOptions(CLI::App* app, Arguments* arguments) {
  app->footer(kExamples);
  app->add_option("--corpus", arguments->data.corpus,
                  "A name of --list, path:FILE, jsonl:PATH, owt:PATH or "
                  "c4:PATH");
  app->add_option("--place", arguments->places,
                  "owt=PATH or c4=PATH: where the corpus of that name is, if "
                  "not in the cache; may be repeated");
  app->add_option("--text-key", arguments->read.text_key,
                  "The member of a JSON line that is the document")
      ->capture_default_str();
  app->add_option("--normalise", arguments->normalise,
                  "hf_openwebtext: as in Hugging Face's OpenWebText (key "
                  "data.normalise)")
      ->capture_default_str()
      ->check(CLI::IsMember(EnumChoices<Normalise>()));
  app->add_option("--on-bad", arguments->on_bad,
                  "skip: leave out documents that are not text or too long, "
                  "and say which; damaged files, and bytes of path:FILE that "
                  "are not text, are always errors")
      ->capture_default_str()
      ->check(CLI::IsMember({"fail", "skip"}));
  app->add_flag("--verify", arguments->verify,
                "First compare the SHA-256 of the files with the publishers'");
  app->add_option("--how", arguments->how,
                  "Say how to get owt or c4, and stop; nothing is downloaded")
      ->check(CLI::IsMember({"owt", "c4"}));
  app->add_option("--vocab-size", arguments->vocab_size,
                  "Pieces of the tokenizer (key model.vocab_size) [32768, or "
                  "those of --tokenizer]")
      ->check(RefuseOctal);
  app->add_option("--tokenizer", arguments->tokenizer,
                  "PREFIX.model of other token files, to encode with; for "
                  "evaluating a trained model on another text");
  app->add_option(
         "--max-bytes", arguments->data.max_bytes,
         "Use only this much of the text, in whole documents, e.g. 4MB; "
         "0: all of it (key data.max_bytes)")
      ->transform(CLI::AsSizeValue(/*kb_is_1000=*/true))
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 60, "BYTES"))
      // Comes first: it sees what was written.
      ->transform(CLI::Validator(RefuseOctal, ""))
      ->capture_default_str();
  app->add_option("--out", arguments->out,
                  "PREFIX for the files: links to those in the cache, or "
                  "copies if on another disk");
  app->add_option("--threads", arguments->threads,
                  "Threads for encoding; 0: one per core. Never changes a byte")
      ->capture_default_str()
      ->check(CLI::Range(0, 1024))
      ->check(RefuseOctal);
  app->add_flag("--list", arguments->list, "Show the corpora known by name");
  app->add_flag("--quiet", arguments->quiet, "Print only the result");
}

void ListCorpora() {
  const auto cache = CacheFolder();
  fmt::print(
      "Stand-ins, made from Debian packages (downloaded when needed, "
      "never installed):\n");
  for (const StandinCorpus& corpus : StandinCorpora()) {
    const auto text = cache / "corpora" / corpus.name / kStandinTextName;
    fmt::print("  {:12} {}\n  {:12} packages {}; {}\n", corpus.name,
               corpus.description, "", fmt::join(corpus.packages, ", "),
               std::filesystem::exists(text) ? "in " + text.string()
                                             : "not downloaded yet");
  }
  fmt::print(
      "The paper's corpora, from the files of their publishers:\n"
      "  owt:PATH     OpenWebText: openwebtext.tar.xz, or a folder of its "
      "parts; plain owt: {}\n"
      "  c4:PATH      C4: a folder of c4-train.*.json.gz, or one such file; "
      "plain c4: {}\n"
      "  (--place owt=PATH or c4=PATH: the plain name is read from there; "
      "--how says how to get them)\n"
      "Your own, plain, or packed by gzip, xz or zstd:\n"
      "  path:FILE    a UTF-8 text file\n"
      "  jsonl:PATH   a file or folder of JSON lines\n",
      (cache / "corpora" / "owt").string(),
      (cache / "corpora" / "c4").string());
}

void PrintResult(const PreparedCorpus& corpus, double seconds) {
  fmt::print(
      "corpus      {}{}\n"
      "            {}\n"
      "source      {}\n"
      "documents   {}\n"
      "text        {} bytes\n"
      "tokens      {} of a vocabulary of {} ({:.2f} bytes each)\n"
      "tokens      SHA-256 {}\n"
      "tokenizer   SHA-256 {}\n"
      "files       {}.{{bin,idx,model,manifest,json}}\n"
      "time        {:.1f} s{}\n",
      corpus.corpus,
      corpus.stand_in           ? " (a stand-in)"
      : !corpus.text_of.empty() ? " (" + corpus.text_of + ")"
                                : "",
      corpus.description, corpus.provenance, corpus.num_documents,
      corpus.text_bytes, corpus.num_tokens, corpus.vocab_size,
      static_cast<double>(corpus.text_bytes) /
          static_cast<double>(std::max<int64_t>(1, corpus.num_tokens)),
      corpus.tokens.data_sha256, corpus.tokens.tokenizer_sha256,
      corpus.prefix.string(), seconds,
      corpus.from_cache ? " (found in the cache)" : "");
}

CorpusPlaces PlacesIn(const Arguments& arguments) {
  RuntimeConfig runtime;
  for (const std::string& place : arguments.places) {
    const size_t equals = place.find('=');
    const std::string name = place.substr(0, equals);
    std::string* const path = name == "owt"  ? &runtime.place_owt
                              : name == "c4" ? &runtime.place_c4
                                             : nullptr;
    if (path == nullptr || equals == std::string::npos ||
        equals + 1 == place.size()) {
      throw ConfigError(fmt::format(
          "--place {}: write --place owt=PATH or --place c4=PATH", place));
    }
    *path = place.substr(equals + 1);
  }
  return PlacesOf(runtime);
}

ExitCode Run(const Arguments& arguments) {
  if (!arguments.how.empty()) {
    fmt::print("{}",
               HowToGet(arguments.how == "owt" ? FilesOf::kOwt : FilesOf::kC4));
    return ExitCode::kDone;
  }
  if (arguments.list) {
    ListCorpora();
    return ExitCode::kDone;
  }
  if (arguments.data.corpus.empty()) {
    throw ConfigError(
        "--corpus is missing; --list shows the corpora, --help more");
  }
  std::filesystem::path out;
  if (!arguments.out.empty()) {
    out = UserPath(arguments.out);
    const auto name = out.filename();
    if (name.empty() || name == "." || name == "..") {
      throw ConfigError(fmt::format(
          "--out {}: files would have no name; write --out {}", arguments.out,
          (std::filesystem::path(arguments.out) / "tokens").string()));
    }
    RequireReplaceable(out);
  }
  const double start = SteadySeconds();
  PrepareOptions options;
  options.threads = arguments.threads;
  options.quiet = arguments.quiet;
  options.places = PlacesIn(arguments);
  options.read = arguments.read;
  if (arguments.on_bad == "skip") options.read.on_bad = OnBad::kSkip;
  options.verify = arguments.verify;
  DataConfig data = arguments.data;
  data.normalise = *ParseEnum<Normalise>(arguments.normalise);
  const bool given = !arguments.tokenizer.empty();
  if (given) {
    options.tokenizer = UserPath(arguments.tokenizer);
    if (!out.empty() &&
        IsSameFile(options.tokenizer, WithSuffix(out, ".model"))) {
      throw ConfigError(fmt::format(
          "--tokenizer {}: --out {} would replace it; give another PREFIX",
          arguments.tokenizer, arguments.out));
    }
  }
  const int64_t vocab_size = arguments.vocab_size.value_or(given ? 0 : 32768);
  PreparedCorpus corpus = PrepareCorpus(data, vocab_size, options);
  if (!out.empty()) corpus = CopyPreparedCorpus(corpus, out);
  PrintResult(corpus, SteadySeconds() - start);
  return ExitCode::kDone;
}

ExitCode ParseAndRun(int argc, char** argv) {
  CLI::App app(kDescription, "prepare_data");
  Arguments arguments;
  AddOptions(&app, &arguments);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const bool asked_for_help = app.exit(error) == 0;
    return asked_for_help ? ExitCode::kDone : ExitCode::kUsage;
  }
  RequireValues(app);
  return Run(arguments);
}

}  // namespace
}  // namespace softmoe::trainer

int main(int argc, char** argv) {
  return softmoe::RunMain("prepare_data", [&] {
    return softmoe::trainer::ParseAndRun(argc, argv);
  });
}
