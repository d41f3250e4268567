// SPDX-License-Identifier: Apache-2.0
//
// document.h - a set of tables with everything needed to judge them: the
// paper's goldens, and what a grid measured, in one schema (FORMAT.md).
//
// A printed number is an interval, not a point; a percentage of N items is a
// count; a number whose metric is not defined cannot be compared.
#ifndef SOFTMOE_GOLDEN_DOCUMENT_DOCUMENT_H_
#define SOFTMOE_GOLDEN_DOCUMENT_DOCUMENT_H_

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace softmoe::golden {

enum class Origin { kPaper, kOurRun, kOtherImplementation };

// Whether a difference in this field forbids a comparison (FORMAT.md,
// "Fields").
enum class FieldClass { kMustMatch, kReport, kIgnore };
// What the paper says about the field (DESIGN.md, ruling 2).
enum class Known { kStated, kAssumed, kUnknown };

// The field by which losses per token are converted (FORMAT.md, "Verdicts").
inline constexpr char kBytesField[] = "data.bytes_per_token";

// Decimals of a measured number as printed; the stored one has all its digits.
inline constexpr int kMeasuredDecimals = 6;
// No measured number is larger, so each prints in 18 digits (decimal.h).
inline constexpr double kLargestMeasured = 1e10;

// One fact about the set-up: "model.d_model" = "640". Operator == compares
// values as texts; SameValue (fingerprint.h) compares numbers as numbers.
struct Field {
  std::string name;
  std::string value;
  FieldClass field_class = FieldClass::kReport;
  Known known = Known::kStated;
  bool operator==(const Field&) const = default;
};

// How the cells of a column are judged: they must print alike (kExact), differ
// by at most the margin (kBound), be equivalent within it in view of their
// noise (kStatistical), or are only shown (FORMAT.md, "Verdicts").
enum class Lane { kExact, kBound, kStatistical, kReportOnly };
enum class Direction { kLowerIsBetter, kHigherIsBetter, kNone };
// How a table's numbers got their last digit; kUnknown: either way.
enum class Rounding { kNearest, kTruncate, kUnknown };

// What the numbers of a column mean; they and the margin are in the column's
// unit.
struct Column {
  std::string id;      // "val_loss"
  std::string unit;    // "nat/token", "percent", "1", ...
  std::string metric;  // its definition, in words
  Direction direction = Direction::kNone;
  Lane lane = Lane::kReportOnly;
  int decimals = 2;  // as printed, 0 to 12
  // > 0. Two values are equivalent if they differ by less; stored before any
  // run.
  std::optional<double> margin;
  std::string margin_basis;  // why this margin
  bool operator==(const Column&) const = default;
};

// Which counts of `total` items a percentage can mean: several if rounding
// permits, none if no count gives it. Ascending.
struct Proportion {
  int64_t total = 0;
  std::vector<int64_t> counts;
  bool operator==(const Proportion&) const = default;
};

// One number, in the unit of its column.
struct Cell {
  std::string text = {};  // as printed, a number; "" if the cell is empty ("-")
  double value = 0;       // the value, or the mean over runs; 0 if empty
  double low = 0;         // the interval that the text stands for; 0 if empty
  double high = 0;
  bool bold = false;
  int64_t runs = 1;  // the runs that the value summarises, at least 1
  // Standard deviation over the runs (n - 1), if there are at least two.
  std::optional<double> deviation = {};
  std::optional<Proportion> proportion = {};
  // For proportions: the share of items that only one of two runs answers
  // correctly, averaged over all pairs of runs (at least two); if known.
  std::optional<double> flip_share = {};
  std::vector<std::string> flags = {};  // "GRIM_IMPOSSIBLE", "DERIVED", ...
  std::vector<std::string> notes = {};  // ids of notes of the document: "N2"

  bool empty() const { return text.empty(); }
  bool operator==(const Cell&) const = default;
};

// One configuration, and its numbers.
struct Row {
  std::string id;                   // "owt/softmoe_star/k1.5/a2"
  std::vector<std::string> labels;  // "SoftMoE*", "k=1.5", ...
  std::vector<Field> fields;        // what differs from the document's fields
  std::vector<Cell> cells;          // one for each column of the table
  bool operator==(const Row&) const = default;
};

// A table of the source, in its order of rows and columns.
struct Table {
  std::string id;  // "main_results"
  std::string title;
  std::string caption;  // with its place in the source
  Rounding rounding = Rounding::kNearest;
  std::vector<Column> columns;
  std::vector<Row> rows;

  // The row with this id, or nullptr.
  const Row* FindRow(const std::string& row_id) const;
  // Index in `columns`, or -1.
  int64_t FindColumn(const std::string& column_id) const;
  bool operator==(const Table&) const = default;
};

// A remark on the source, and what it concerns: cells ("main_results/ROW/COL"),
// rows, tables, claims ("claim/ID") or passages ("text/PLACE").
struct Note {
  std::string id;  // "N8"
  std::string text;
  std::vector<std::string> concerns;
  bool operator==(const Note&) const = default;
};

// How many of the pairs that are written as one claim must hold. kEvery: each
// pair is a claim of its own; kMost: more than half of the pairs together.
enum class Quantifier { kEvery, kMost };

// A statement that data can refute: "left OP right" about cells.
struct Claim {
  std::string id;  // "ID"; of several pairs "ID.1", "ID.2", ...
  std::string text;
  std::string left;  // "owt/softmoe_star/k1.5/a2:val_loss"
  // "<", "<=", ">", ">=", "==", or ">~": higher, equal, or lower by no more
  // than 1.96 standard errors of a difference of two percentages (claims.h).
  std::string op;
  std::string right;  // as left, or a number
  std::string scope;  // table
  // What the source's own rounded numbers say about the claim: "HOLDS",
  // "REFUTED", "NOT_RESOLVED_BY_PAPER", "NO_DATA".
  std::string published_verdict;
  Quantifier of_cases = Quantifier::kEvery;

  // The ID that the pairs share.
  std::string group() const { return id.substr(0, id.rfind('.')); }
  bool operator==(const Claim&) const = default;
};

// Where the numbers come from; unknown members are empty.
struct Provenance {
  Origin origin = Origin::kOurRun;
  std::string source;       // paper and version, or command line
  std::string generator;    // program and version that wrote this
  std::string created_utc;  // empty in reproducible files
  std::string git_commit, config_hash, compiler, cpu, isa;
  std::vector<Field> more;  // seeds, data hashes, packages, ...
  bool operator==(const Provenance&) const = default;
};

// The contents of one file (FORMAT.md).
struct Document {
  Provenance provenance;
  std::vector<Field> fields;  // of the whole document
  std::vector<Table> tables;
  std::vector<Note> notes;
  std::vector<Claim> claims;

  // The table with this id, or nullptr.
  const Table* FindTable(const std::string& table_id) const;
  bool operator==(const Document&) const = default;
};

// Whether the golden's number is a setting or computed from one, such as the k
// active experts of top-k.
bool IsSetting(const Document& golden, const Cell& golden_cell);

// Returns the first problem for which ReadDocument would refuse `document`, as
// "'PATH INSIDE THE FILE' PROBLEM; REMEDY", or "" if there is none.
std::string FirstProblem(const Document& document);

// Writes `document` as an HDF5 file of kind "golden"; equal documents give
// equal bytes. Throws InternalError for a document that ReadDocument would
// refuse; a run that gave NaN must have an empty cell with the flag "DIVERGED".
void WriteDocument(const Document& document, const std::filesystem::path& path);

// Reads and validates a document. Throws EnvironmentError if the file is
// missing and DataError, naming the file and the path inside it, if it is not
// ours, lacks a group, or holds a NaN, an infinity, a placeholder, a column
// without a unit, a statistical column without a margin, or anything that this
// version does not know.
Document ReadDocument(const std::filesystem::path& path);

}  // namespace softmoe::golden

#endif  // SOFTMOE_GOLDEN_DOCUMENT_DOCUMENT_H_
