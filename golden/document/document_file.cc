// SPDX-License-Identifier: Apache-2.0
//
// The Visit functions list the contents of a file once, for writing and for
// reading; a file that is read may hold no other group, attribute or dataset.
// core/hdf5/hdf5_file checks the envelope; FirstProblem judges what the numbers
// mean.
#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <type_traits>

#include "core/errors.h"
#include "core/hdf5/hdf5_file.h"
#include "core/text/suggestion.h"
#include "golden/document/document.h"
#include "golden/document/document_format.h"

namespace softmoe::golden {
namespace {

using Strings = std::vector<std::string>;
using Integers = std::vector<int64_t>;

constexpr const char* kRemake =
    "write the file again with this version of the program that wrote it";

// The type that `of` yields for an item: of a member or a list's entry.
template <typename Of, typename Item>
using Member = std::remove_cvref_t<std::invoke_result_t<Of, Item>>;

// How a column or attribute of T is stored: an enumeration by its name.
template <typename T>
using Stored =
    std::conditional_t<std::is_enum_v<T>, std::string,
                       std::conditional_t<std::is_same_v<T, bool>, uint8_t, T>>;

// A group of a file being written or read. A group being read may hold nothing
// beyond what is visited; items being written may be const.
template <typename File>
class FileGroup {
 public:
  static constexpr bool kReads = File::kReads;

  FileGroup(File* file, std::string path)
      : file_(*file), path_(std::move(path)) {
    file_.Group(path_);
  }

  [[noreturn]] void Fail(const std::string& place,
                         const std::string& problem) const {
    throw DataError(fmt::format("'{}': '{}' {}; {}", file_.path().string(),
                                place, problem, kRemake));
  }
  std::string PathOf(const std::string& name) const {
    return Hdf5Path(path_, name);
  }

  // T is an enumeration, optional<double>, or a type that File supports.
  template <typename T>
  void Attribute(const std::string& name, T& value) {
    constexpr bool kOptional =
        std::is_same_v<std::remove_const_t<T>, std::optional<double>>;
    if constexpr (kReads) {
      attributes_.push_back(name);
      const bool there = file_.HasAttribute(path_, name);
      if constexpr (kOptional) {
        if (there) value = file_.ReadDouble(path_, name);
      } else if (!there) {
        Fail(path_, fmt::format("lacks the attribute '{}'", name));
      } else if constexpr (std::is_enum_v<T>) {
        Parse(path_ + "@" + name, file_.ReadString(path_, name), &value);
      } else {
        file_.Attribute(path_, name, value);
      }
    } else if constexpr (kOptional) {
      if (value) file_.WriteAttribute(path_, name, *value);
    } else if constexpr (std::is_enum_v<T>) {
      file_.WriteAttribute(path_, name, std::string(EnumName(value)));
    } else {
      file_.Attribute(path_, name, value);
    }
  }

  // Whether an optional child is in the file being read, or is to be written.
  bool Has(const std::string& name, bool to_write) const {
    if constexpr (kReads) return file_.Has(PathOf(name));
    return to_write;
  }

  template <typename Visit>
  void Group(const std::string& name, Visit visit) {
    RequireChild(name);
    FileGroup group(&file_, PathOf(name));
    visit(group);
    group.RefuseOthers();
  }

  // A dataset with `of` each item; `items` must already have its final size.
  template <typename Items, typename Of>
  void Column(const std::string& name, Items& items, Of of) {
    using T = Member<Of, decltype(items[0])>;
    std::vector<Stored<T>> values;
    if constexpr (kReads) {
      values = List<Stored<T>>(name);
      if (values.size() != items.size()) {
        Fail(PathOf(name),
             fmt::format("has {} entries, but {} are needed: one for each row "
                         "or entry of its group",
                         values.size(), items.size()));
      }
      for (size_t i = 0; i < values.size(); ++i) {
        Parse(fmt::format("{}[{}]", PathOf(name), i), values[i],
              &std::invoke(of, items[i]));
      }
    } else {
      for (const auto& item : items) {
        if constexpr (std::is_enum_v<T>) {
          values.push_back(EnumName(std::invoke(of, item)));
        } else {
          values.push_back(std::invoke(of, item));
        }
      }
      file_.WriteDataset(PathOf(name), values);
    }
  }

  // Resizes `items` to the length of the column of texts.
  template <typename Items>
  void TakeSize(const std::string& name, Items& items) {
    if constexpr (kReads) items.resize(List<std::string>(name).size());
  }

  // The lists of all owners, end to end, with the owner of every entry.
  template <typename Owners, typename Of, typename Visit>
  void Lists(const std::string& name, Owners& owners, Of of, Visit visit) {
    Member<Of, decltype(owners[0])> items;
    Integers rows;
    if constexpr (!kReads) {
      for (size_t i = 0; i < owners.size(); ++i) {
        const auto& list = std::invoke(of, owners[i]);
        items.insert(items.end(), list.begin(), list.end());
        rows.insert(rows.end(), list.size(), static_cast<int64_t>(i));
      }
    }
    Group(name, [&](FileGroup& group) {
      if constexpr (kReads) {
        rows = group.ReadOwners(owners.size());
        items.resize(rows.size());
      } else {
        file_.WriteDataset(group.PathOf("row"), rows);
      }
      visit(group, items);
    });
    if constexpr (kReads) {
      for (size_t i = 0; i < rows.size(); ++i) {
        std::invoke(of, owners[static_cast<size_t>(rows[i])])
            .push_back(std::move(items[i]));
      }
    }
  }

  // A group for each item, named by its id, with its position.
  template <typename Items, typename Visit>
  void Groups(const std::string& name, Items& items, Visit visit) {
    Group(name, [&](FileGroup& parent) {
      Strings ids;
      if constexpr (kReads) {
        ids = file_.Children(parent.path_);
        items.resize(ids.size());
      } else {
        for (const auto& item : items) ids.push_back(item.id);
      }
      std::vector<bool> taken(ids.size());
      for (size_t i = 0; i < ids.size(); ++i) {
        parent.Group(ids[i], [&](FileGroup& group) {
          auto position = static_cast<int64_t>(i);
          group.Attribute("position", position);
          if constexpr (kReads) {
            group.TakePlace(position, &taken);
            items[static_cast<size_t>(position)].id = ids[i];
          }
          visit(group, static_cast<size_t>(position));
        });
      }
    });
  }

  // Refuses whatever is in the group but was not read.
  void RefuseOthers() const {
    if constexpr (kReads) {
      RefuseOthers(path_, "child", file_.Children(path_), children_);
      RefuseOthers(path_, "attribute", file_.Attributes(path_), attributes_);
    }
  }

 private:
  void RefuseOthers(const std::string& owner, const std::string& what,
                    const Strings& found, const Strings& known) const {
    for (const std::string& name : found) {
      if (std::ranges::count(known, name) > 0) continue;
      Fail(owner, fmt::format("has the unknown {} '{}' ({})", what, name,
                              known.empty() ? "there should be none"
                                            : Suggestion(name, known)));
    }
  }

  void RequireChild(const std::string& name) {
    if constexpr (kReads) {
      children_.push_back(name);
      if (file_.Has(PathOf(name))) return;
      Fail(path_, fmt::format("lacks the child '{}'", name));
    }
  }

  // A rank-1 dataset without attributes.
  template <typename T>
  std::vector<T> List(const std::string& name) {
    RequireChild(name);
    const std::string path = PathOf(name);
    Hdf5Array<T> array = file_.template ReadDataset<T>(path);
    RefuseOthers(path, "attribute", file_.Attributes(path), {});
    if (array.shape.size() != 1) {
      Fail(path, fmt::format("has {} dimensions, not 1", array.shape.size()));
    }
    return std::move(array.values);
  }

  // Reads the owners of all entries of a list of lists: ascending, in range.
  Integers ReadOwners(size_t num_owners) {
    const Integers owners = List<int64_t>("row");
    int64_t previous = 0;
    for (size_t i = 0; i < owners.size(); ++i) {
      if (owners[i] < previous ||
          owners[i] >= static_cast<int64_t>(num_owners)) {
        Fail(fmt::format("{}[{}]", PathOf("row"), i),
             fmt::format("is {}, but the rows are 0..{}, in ascending order",
                         owners[i], static_cast<int64_t>(num_owners) - 1));
      }
      previous = owners[i];
    }
    return owners;
  }

  // Takes a position in the document or table, which must still be free.
  void TakePlace(int64_t position, std::vector<bool>* taken) const {
    const auto count = static_cast<int64_t>(taken->size());
    if (position < 0 || position >= count ||
        (*taken)[static_cast<size_t>(position)]) {
      Fail(path_ + "@position",
           fmt::format("is {}, but each of 0..{} is needed once", position,
                       count - 1));
    }
    (*taken)[static_cast<size_t>(position)] = true;
  }

  template <typename T>
  void Parse(const std::string& place, const Stored<T>& stored,
             T* value) const {
    if constexpr (std::is_enum_v<T>) {
      const std::optional<T> parsed = ParseEnum<T>(stored);
      if (!parsed) {
        Fail(place,
             fmt::format("is '{}', but {} is needed", stored, Choices<T>()));
      }
      *value = *parsed;
    } else if constexpr (std::is_same_v<T, bool>) {
      if (stored > 1) {
        Fail(place, fmt::format("is {}, but 0 or 1 is needed", stored));
      }
      *value = stored == 1;
    } else {
      *value = stored;
    }
  }

  File& file_;
  const std::string path_;
  Strings attributes_, children_;  // names asked for
};

template <typename Group, typename Fields>
void VisitFields(Group& group, Fields& fields) {
  group.Column("name", fields, &Field::name);
  group.Column("value", fields, &Field::value);
  group.Column("class", fields, &Field::field_class);
  group.Column("known", fields, &Field::known);
}

template <typename Group, typename Fields>
void VisitAllFields(Group& group, Fields& fields) {
  group.TakeSize("name", fields);
  VisitFields(group, fields);
}

template <typename Group, typename Provenance>
void VisitProvenance(Group& group, Provenance& provenance) {
  group.Attribute("origin", provenance.origin);
  group.Attribute("source", provenance.source);
  group.Attribute("generator", provenance.generator);
  group.Attribute("created_utc", provenance.created_utc);
  group.Attribute("git_commit", provenance.git_commit);
  group.Attribute("config_hash", provenance.config_hash);
  group.Attribute("compiler", provenance.compiler);
  group.Attribute("cpu", provenance.cpu);
  group.Attribute("isa", provenance.isa);
  VisitAllFields(group, provenance.more);
}

// The one column of a list of lists of texts or numbers.
auto OneColumn(const char* name) {
  return [name](auto& group, auto& items) {
    group.Column(name, items, std::identity());
  };
}

template <typename Group, typename Column>
void VisitColumn(Group& group, Column& column) {
  group.Attribute("unit", column.unit);
  group.Attribute("metric_def", column.metric);
  group.Attribute("direction", column.direction);
  group.Attribute("lane", column.lane);
  int64_t decimals = column.decimals;
  group.Attribute("decimals", decimals);
  if constexpr (Group::kReads) {
    // Clamped to the range of int; FirstProblem checks the real range.
    column.decimals = static_cast<int>(std::clamp<int64_t>(decimals, -1, 1000));
  }
  group.Attribute("margin", column.margin);
  group.Attribute("margin_basis", column.margin_basis);
}

// The optional numbers of a cell, as the file stores them.
struct OptionalNumbers {
  double deviation = 0;
  bool deviation_known = false;
  Proportion proportion;
  std::vector<double> flip_share;  // at most one
};

OptionalNumbers OptionalNumbersOf(const Cell& cell) {
  OptionalNumbers known = {cell.deviation.value_or(0.0),
                           cell.deviation.has_value(),
                           cell.proportion.value_or(Proportion()),
                           {}};
  if (cell.flip_share) known.flip_share = {*cell.flip_share};
  return known;
}

template <typename Group>
void TakeOptional(const Group& group, size_t row, OptionalNumbers known,
                  Cell& cell) {
  if (known.deviation_known) {
    cell.deviation = known.deviation;
  } else if (!(known.deviation == 0)) {
    group.Fail(fmt::format("{}[{}]", group.PathOf("sd"), row),
               fmt::format("is {} although sd_known is 0", known.deviation));
  }
  if (known.proportion.total != 0) {
    cell.proportion = std::move(known.proportion);
  } else if (!known.proportion.counts.empty()) {
    group.Fail(
        group.PathOf("counts/row"),
        fmt::format("gives a count for row {}, whose count_N is 0", row));
  }
  if (known.flip_share.size() > 1) {
    group.Fail(group.PathOf("flip_share/row"),
               fmt::format("has row {} more than once", row));
  }
  if (!known.flip_share.empty()) cell.flip_share = known.flip_share.front();
}

template <typename Group, typename Rows>
void VisitCells(Group& group, Rows& rows, size_t column) {
  // A member of the cell of each row.
  const auto of = [column](auto member) {
    return [ column, member ](auto& row) -> auto& {
      return row.cells[column].*member;
    };
  };
  group.Column("text", rows, of(&Cell::text));
  group.Column("value", rows, of(&Cell::value));
  group.Column("value_lo", rows, of(&Cell::low));
  group.Column("value_hi", rows, of(&Cell::high));
  group.Column("bold", rows, of(&Cell::bold));
  group.Column("n_runs", rows, of(&Cell::runs));
  std::vector<OptionalNumbers> known(rows.size());
  if constexpr (!Group::kReads) {
    for (size_t r = 0; r < rows.size(); ++r) {
      known[r] = OptionalNumbersOf(rows[r].cells[column]);
    }
  }
  const auto total = [](auto& numbers) -> auto& {
    return numbers.proportion.total;
  };
  const auto counts = [](auto& numbers) -> auto& {
    return numbers.proportion.counts;
  };
  group.Column("sd", known, &OptionalNumbers::deviation);
  group.Column("sd_known", known, &OptionalNumbers::deviation_known);
  group.Column("count_N", known, total);
  group.Lists("counts", known, counts, OneColumn("count_k"));
  const bool flips = std::ranges::any_of(
      known, [](const auto& of) { return !of.flip_share.empty(); });
  if (group.Has("flip_share", flips)) {
    group.Lists("flip_share", known, &OptionalNumbers::flip_share,
                OneColumn("share"));
  }
  if constexpr (Group::kReads) {
    for (size_t r = 0; r < rows.size(); ++r) {
      TakeOptional(group, r, std::move(known[r]), rows[r].cells[column]);
    }
  }
  group.Lists("flags", rows, of(&Cell::flags), OneColumn("text"));
  group.Lists("notes", rows, of(&Cell::notes), OneColumn("text"));
}

template <typename Group, typename Table>
void VisitTable(Group& group, Table& table) {
  group.Attribute("title", table.title);
  group.Attribute("caption", table.caption);
  group.Attribute("rounding_rule", table.rounding);
  group.TakeSize("rows", table.rows);
  group.Column("rows", table.rows, &Row::id);
  group.Lists("labels", table.rows, &Row::labels, OneColumn("text"));
  group.Lists("fields", table.rows, &Row::fields,
              [](auto& fields_group, auto& fields) {
                VisitFields(fields_group, fields);
              });
  group.Groups("cells", table.columns, [&](auto& column, size_t position) {
    if constexpr (Group::kReads) {
      for (Row& row : table.rows) row.cells.resize(table.columns.size());
    }
    VisitColumn(column, table.columns[position]);
    VisitCells(column, table.rows, position);
  });
}

template <typename Group, typename Notes>
void VisitNotes(Group& group, Notes& notes) {
  group.TakeSize("id", notes);
  group.Column("id", notes, &Note::id);
  group.Column("text", notes, &Note::text);
  group.Lists("concerns", notes, &Note::concerns, OneColumn("text"));
}

template <typename Group, typename Claims>
void VisitClaims(Group& group, Claims& claims) {
  group.TakeSize("id", claims);
  group.Column("id", claims, &Claim::id);
  group.Column("text", claims, &Claim::text);
  group.Column("lhs", claims, &Claim::left);
  group.Column("op", claims, &Claim::op);
  group.Column("rhs", claims, &Claim::right);
  group.Column("scope", claims, &Claim::scope);
  group.Column("published_verdict", claims, &Claim::published_verdict);
  const bool most = std::ranges::any_of(claims, [](const Claim& claim) {
    return claim.of_cases == Quantifier::kMost;
  });
  if (group.Has("of_cases", most)) {
    group.Column("of_cases", claims, &Claim::of_cases);
  }
}

template <typename Group>
void VisitSchema(Group& root) {
  std::string schema = kSchemaName;
  int64_t version = kSchemaVersion;
  root.Attribute("schema", schema);
  root.Attribute("schema_version", version);
  if constexpr (Group::kReads) {
    if (schema != kSchemaName) {
      root.Fail("/@schema",
                fmt::format("is '{}', not '{}'", schema, kSchemaName));
    }
    if (version != kSchemaVersion) {
      root.Fail("/@schema_version", fmt::format("is {}, but this program reads "
                                                "{}",
                                                version, kSchemaVersion));
    }
  }
}

template <typename Group, typename Document>
void VisitDocument(Group& root, Document& document) {
  VisitSchema(root);
  root.Group("provenance", [&](Group& group) {
    VisitProvenance(group, document.provenance);
  });
  root.Group("fields",
             [&](Group& group) { VisitAllFields(group, document.fields); });
  root.Groups("tables", document.tables, [&](Group& group, size_t position) {
    VisitTable(group, document.tables[position]);
  });
  root.Group("notes", [&](Group& group) { VisitNotes(group, document.notes); });
  root.Group("claims",
             [&](Group& group) { VisitClaims(group, document.claims); });
}

}  // namespace

void WriteDocument(const Document& document,
                   const std::filesystem::path& path) {
  const std::string problem = FirstProblem(document);
  SOFTMOE_CHECK(problem.empty())
      << "a document for '" << path.string() << "': " << problem;
  Hdf5Writer file(path, GoldenKind());
  FileGroup root(&file, "/");
  VisitDocument(root, document);
  file.Commit();
}

Document ReadDocument(const std::filesystem::path& path) {
  const Hdf5Reader file(path, GoldenKind());
  Document document;
  FileGroup root(&file, "/");
  VisitDocument(root, document);
  root.RefuseOthers();
  const std::string problem = FirstProblem(document);
  if (!problem.empty()) {
    throw DataError(fmt::format("'{}': {}", path.string(), problem));
  }
  return document;
}

}  // namespace softmoe::golden
