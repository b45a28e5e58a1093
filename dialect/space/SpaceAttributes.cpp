//===- SpaceAttributes.cpp - The dimensions of kernels --------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "dialect/RowLength.h"
#include "dialect/Tile.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace bastile::tile;

const SpaceDimension *SpaceAttr::lookup(Attribute name) const {
  const auto *it =
      llvm::find_if(getDimensions(), [&](const SpaceDimension &dimension) {
        return Attribute(dimension.name) == name;
      });
  return it == getDimensions().end() ? nullptr : it;
}

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

static void printProjection(AsmPrinter &printer, Attribute projection) {
  printer << "(";
  llvm::interleaveComma(cast<ArrayAttr>(projection), printer,
                        [&](Attribute place) {
                          if (auto name = dyn_cast<StringAttr>(place))
                            printer.printKeywordOrString(name.getValue());
                          else
                            printer << cast<IntegerAttr>(place).getInt();
                        });
  printer << ")";
}

static void printDimension(AsmPrinter &printer,
                           const SpaceDimension &dimension) {
  if (dimension.isReduction)
    printer << "reduction ";
  printer.printKeywordOrString(dimension.name.getValue());
  printer << " = ";
  if (dimension.base) {
    printer << (dimension.group > 1 ? "groups(" : "pieces(");
    printer.printKeywordOrString(dimension.base.getValue());
    printer << ", " << dimension.group * dimension.pieces << ")";
  } else if (ShapedType::isDynamic(dimension.size)) {
    printer << "?";
  } else {
    printer << dimension.size;
  }
}

void SpaceAttr::print(AsmPrinter &printer) const {
  auto print = [&](Attribute projection) {
    printProjection(printer, projection);
  };
  printer << "<[";
  llvm::interleaveComma(getDimensions(), printer,
                        [&](const SpaceDimension &dimension) {
                          printDimension(printer, dimension);
                        });
  printer << "], arguments = [";
  llvm::interleaveComma(getArguments(), printer, [&](Attribute argument) {
    llvm::interleave(cast<ArrayAttr>(argument), printer, print, " | ");
  });
  printer << "], results = [";
  llvm::interleaveComma(getResults(), printer, print);
  printer << "], values = [";
  llvm::interleaveComma(getValues(), printer, print);
  printer << "]>";
}

namespace {

/// Parses the text of a `#tile.space`.
class SpaceParser {
public:
  explicit SpaceParser(AsmParser &parser)
      : parser(parser), builder(parser.getContext()) {}

  ParseResult parseDimensions();
  ParseResult parseList(StringRef keyword, SmallVector<Attribute> &list,
                        bool isOfArguments = false);
  ArrayRef<SpaceDimension> getDimensions() const { return dimensions; }

private:
  ParseResult parseDimension();
  ParseResult parseBase(SpaceDimension &dimension);
  ParseResult parseName(StringAttr &name);
  FailureOr<Attribute> parseProjection();

  AsmParser &parser;
  Builder builder;
  SmallVector<SpaceDimension> dimensions;
};

} // namespace

ParseResult SpaceParser::parseName(StringAttr &name) {
  std::string text;
  if (parser.parseKeywordOrString(&text))
    return failure();
  name = builder.getStringAttr(text);
  return success();
}

ParseResult SpaceParser::parseDimensions() {
  return parser.parseCommaSeparatedList(AsmParser::Delimiter::Square,
                                        [&] { return parseDimension(); });
}

ParseResult SpaceParser::parseDimension() {
  SpaceDimension dimension;
  if (parseName(dimension.name))
    return failure();
  if (failed(parser.parseOptionalEqual())) {
    // A dimension may have that name, too.
    dimension.isReduction = dimension.name == "reduction";
    if ((dimension.isReduction && parseName(dimension.name)) ||
        parser.parseEqual())
      return failure();
  }
  if (succeeded(parser.parseOptionalQuestion())) {
    dimensions.push_back(dimension);
    return success();
  }
  OptionalParseResult size = parser.parseOptionalInteger(dimension.size);
  if (size.has_value() ? failed(*size) : failed(parseBase(dimension)))
    return failure();
  dimensions.push_back(dimension);
  return success();
}

ParseResult SpaceParser::parseBase(SpaceDimension &dimension) {
  StringRef kind;
  int64_t count = 0;
  llvm::SMLoc place = parser.getCurrentLocation();
  if (parser.parseKeyword(&kind) || parser.parseLParen() ||
      parseName(dimension.base) || parser.parseComma() ||
      parser.parseInteger(count) || parser.parseRParen())
    return failure();
  const auto *base =
      llvm::find_if(dimensions, [&](const SpaceDimension &other) {
        return other.name == dimension.base;
      });
  if (base == dimensions.end())
    return parser.emitError(place, "dimension ")
           << dimension.name << " follows from " << dimension.base
           << ", which does not come before it";
  if ((kind != "groups" && kind != "pieces") || count < 2 ||
      count > bastile::maxRowLength)
    return parser.emitError(place, "expected groups or pieces of 2 or more");
  // Lengths of rows are known where a dimension follows from another one.
  if (ShapedType::isDynamic(base->size) || base->size < 1 ||
      base->size > bastile::maxRowLength ||
      (kind == "groups" && base->size % count != 0))
    return parser.emitError(place, "dimension ")
           << dimension.base << " does not divide into groups or pieces";
  (kind == "groups" ? dimension.group : dimension.pieces) = count;
  dimension.size = kind == "groups" ? base->size / count : base->size * count;
  return success();
}

FailureOr<Attribute> SpaceParser::parseProjection() {
  SmallVector<Attribute> places;
  auto parsePlace = [&]() -> ParseResult {
    int64_t size = 0;
    OptionalParseResult number = parser.parseOptionalInteger(size);
    if (number.has_value()) {
      places.push_back(builder.getI64IntegerAttr(size));
      return *number;
    }
    StringAttr name;
    if (parseName(name))
      return failure();
    places.push_back(name);
    return success();
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Paren, parsePlace))
    return failure();
  return Attribute(builder.getArrayAttr(places));
}

ParseResult SpaceParser::parseList(StringRef keyword,
                                   SmallVector<Attribute> &list,
                                   bool isOfArguments) {
  auto parseElement = [&]() -> ParseResult {
    SmallVector<Attribute> projections;
    do {
      FailureOr<Attribute> projection = parseProjection();
      if (failed(projection))
        return failure();
      projections.push_back(*projection);
    } while (isOfArguments && succeeded(parser.parseOptionalVerticalBar()));
    list.push_back(isOfArguments ? builder.getArrayAttr(projections)
                                 : projections.front());
    return success();
  };
  if (parser.parseComma() || parser.parseKeyword(keyword) ||
      parser.parseEqual())
    return failure();
  return parser.parseCommaSeparatedList(AsmParser::Delimiter::Square,
                                        parseElement);
}

Attribute SpaceAttr::parse(AsmParser &parser, Type /*type*/) {
  SpaceParser space(parser);
  SmallVector<Attribute> arguments, results, values;
  llvm::SMLoc place = parser.getCurrentLocation();
  if (parser.parseLess() || space.parseDimensions() ||
      space.parseList("arguments", arguments, /*isOfArguments=*/true) ||
      space.parseList("results", results) ||
      space.parseList("values", values) || parser.parseGreater())
    return {};
  Builder builder(parser.getContext());
  return getChecked(
      [&] { return parser.emitError(place); }, parser.getContext(),
      space.getDimensions(), builder.getArrayAttr(arguments),
      builder.getArrayAttr(results), builder.getArrayAttr(values));
}

//===----------------------------------------------------------------------===//
// What a space may be
//===----------------------------------------------------------------------===//

LogicalResult SpaceAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                ArrayRef<SpaceDimension> dimensions,
                                ArrayAttr arguments, ArrayAttr results,
                                ArrayAttr values) {
  DenseSet<Attribute> names;
  for (const SpaceDimension &dimension : dimensions) {
    if (!names.insert(dimension.name).second)
      return emitError() << "space has two dimensions " << dimension.name;
    if (!ShapedType::isDynamic(dimension.size) && dimension.size < 1)
      return emitError() << "space has a dimension " << dimension.name << " of "
                         << dimension.size << " elements";
  }
  auto verifyProjection = [&](Attribute projection) -> LogicalResult {
    for (Attribute place : cast<ArrayAttr>(projection))
      if (isa<StringAttr>(place) && !names.contains(place))
        return emitError() << "space has no dimension " << place;
    return success();
  };
  for (Attribute argument : arguments)
    for (Attribute projection : cast<ArrayAttr>(argument))
      if (failed(verifyProjection(projection)))
        return failure();
  for (Attribute projection :
       llvm::concat<const Attribute>(results.getValue(), values.getValue()))
    if (failed(verifyProjection(projection)))
      return failure();
  return success();
}
