//===- StructuralKey.cpp - What formulas have in common -------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "lib/driver/StructuralKey.h"

#include "dialect/Tile.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/SHA256.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace {

/// Writes ops in a form of its own, which only has to tell them apart.
class Writer {
public:
  std::string write(ModuleOp module) {
    writeRegions(module);
    return std::move(text);
  }

private:
  void write(Operation &op);
  void writeAttributes(Operation &op);
  void writeArgumentAttributes(func::FuncOp func);
  void writeRegions(Operation *op);
  void write(Attribute attribute);
  void write(Type type);
  void write(const APFloat &number);

  void write(StringRef string) {
    // With its length ahead, a string needs no quotes.
    out << string.size() << ':' << string;
  }
  void write(DictionaryAttr attributes);

  std::string text;
  llvm::raw_string_ostream out{text};
  /// The numbers of values in the order in which they are defined.
  DenseMap<Value, unsigned> numbers;
};

} // namespace

/// Whether an attribute is no part of what is computed: the name of an
/// argument.
static bool isIgnored(StringAttr name) {
  return name == bastile::tile::TileDialect::kNameAttrName;
}

void Writer::write(const APFloat &number) {
  // Zero and one take a part of a formula away.
  if (number.isZero())
    out << (number.isNegative() ? "-0" : "0");
  else if (number.isExactlyValue(1.0))
    out << '1';
  else if (number.isNaN())
    out << "nan";
  else if (number.isInfinity())
    out << (number.isNegative() ? "-inf" : "inf");
  else
    out << '_';
}

void Writer::write(Type type) {
  if (auto tensor = dyn_cast<RankedTensorType>(type)) {
    out << "tensor<";
    for (int64_t size : tensor.getShape())
      if (ShapedType::isDynamic(size))
        out << "?x";
      else
        out << size << 'x';
    write(tensor.getElementType());
    if (Attribute encoding = tensor.getEncoding()) {
      out << ',';
      write(encoding);
    }
    out << '>';
  } else if (auto function = dyn_cast<FunctionType>(type)) {
    out << '(';
    for (Type input : function.getInputs()) {
      write(input);
      out << ',';
    }
    out << ")->(";
    for (Type result : function.getResults()) {
      write(result);
      out << ',';
    }
    out << ')';
  } else if (auto integer = dyn_cast<IntegerType>(type)) {
    out << 'i' << static_cast<unsigned>(integer.getSignedness()) << '.'
        << integer.getWidth();
  } else if (isa<FloatType>(type)) {
    // The name under which the type is registered, as in "builtin.bf16".
    out << type.getAbstractType().getName();
  } else {
    out << type;
  }
}

void Writer::write(Attribute attribute) {
  llvm::TypeSwitch<Attribute>(attribute)
      .Case([&](FloatAttr number) {
        write(number.getValue());
        out << '.';
        write(number.getType());
      })
      .Case([&](IntegerAttr number) {
        out << number.getValue() << '.';
        write(number.getType());
      })
      .Case([&](StringAttr string) { write(string.getValue()); })
      .Case([&](UnitAttr) { out << "unit"; })
      .Case([&](TypeAttr type) { write(type.getValue()); })
      .Case([&](FlatSymbolRefAttr symbol) { write(symbol.getValue()); })
      .Case([&](DictionaryAttr attributes) { write(attributes); })
      .Case([&](ArrayAttr elements) {
        out << '[';
        for (Attribute element : elements) {
          write(element);
          out << ',';
        }
        out << ']';
      })
      .Case([&](DenseFPElementsAttr elements) {
        write(elements.getType());
        out << '[';
        auto values = elements.getValues<APFloat>();
        for (const APFloat &number : llvm::make_range(
                 values.begin(), elements.isSplat() ? std::next(values.begin())
                                                    : values.end())) {
          write(number);
          out << ',';
        }
        out << ']';
      })
      .Case([&](DenseIntElementsAttr elements) {
        write(elements.getType());
        out << '[';
        for (const APInt &number : elements.getValues<APInt>())
          out << number << ',';
        out << ']';
      })
      .Case([&](DenseArrayAttr elements) {
        write(elements.getElementType());
        out << '[';
        for (char byte : elements.getRawData())
          out << int(byte) << ',';
        out << ']';
      })
      // The parameters of others, as of attributes of other dialects, can be
      // had from their text alone, which their dialects define.
      .Default([&](Attribute other) { out << other; });
}

void Writer::write(DictionaryAttr attributes) {
  out << '{';
  // A dictionary is sorted by names.
  for (NamedAttribute attribute : attributes) {
    if (isIgnored(attribute.getName()))
      continue;
    write(attribute.getName().getValue());
    write(attribute.getValue());
    out << ',';
  }
  out << '}';
}

void Writer::writeArgumentAttributes(func::FuncOp func) {
  // A function whose arguments have names alone has an attribute for them, and
  // one whose arguments have nothing has none.
  auto writeEach = [&](char kind, unsigned count, auto get) {
    for (unsigned index = 0; index < count; ++index) {
      DictionaryAttr attributes = get(index);
      if (!attributes || llvm::all_of(attributes, [](NamedAttribute attribute) {
            return isIgnored(attribute.getName());
          }))
        continue;
      out << kind << index;
      write(attributes);
    }
  };
  writeEach('a', func.getNumArguments(),
            [&](unsigned index) { return func.getArgAttrDict(index); });
  writeEach('r', func.getNumResults(),
            [&](unsigned index) { return func.getResultAttrDict(index); });
}

void Writer::writeAttributes(Operation &op) {
  // An op that is given no attributes has the defaults.
  Operation *plain = Operation::create(
      op.getLoc(), op.getName(), op.getResultTypes(), op.getOperands(),
      NamedAttrList(), OpaqueProperties(nullptr), /*successors=*/{},
      /*numRegions=*/0);
  DictionaryAttr defaults = plain->getAttrDictionary();
  plain->destroy();
  auto func = dyn_cast<func::FuncOp>(op);
  out << '{';
  for (NamedAttribute attribute : op.getAttrDictionary()) {
    StringAttr name = attribute.getName();
    if (isIgnored(name) || (func && (name == func.getArgAttrsAttrName() ||
                                     name == func.getResAttrsAttrName())))
      continue;
    const size_t start = text.size();
    write(name.getValue());
    const size_t end = text.size();
    write(attribute.getValue());
    Attribute other = defaults.get(name);
    if (!other) {
      out << ',';
      continue;
    }
    std::string mine = text.substr(end);
    text.resize(end);
    write(other);
    const bool isDefault = text.compare(end, std::string::npos, mine) == 0;
    text.resize(isDefault ? start : end);
    if (!isDefault)
      out << mine << ',';
  }
  out << '}';
  if (func)
    writeArgumentAttributes(func);
}

void Writer::writeRegions(Operation *op) {
  for (Region &region : op->getRegions()) {
    out << '{';
    for (Block &block : region) {
      out << '^';
      for (BlockArgument argument : block.getArguments()) {
        numbers.try_emplace(argument, numbers.size());
        write(argument.getType());
        out << ',';
      }
      for (Operation &inner : block)
        write(inner);
    }
    out << '}';
  }
}

void Writer::write(Operation &op) {
  write(op.getName().getStringRef());
  out << '(';
  for (Value operand : op.getOperands())
    out << numbers.lookup(operand) << ',';
  out << ')';
  writeAttributes(op);
  for (OpResult result : op.getResults()) {
    numbers.try_emplace(result, numbers.size());
    write(result.getType());
    out << ',';
  }
  writeRegions(&op);
  out << ';';
}

std::string bastile::getStructuralKey(ModuleOp module) {
  std::string text = Writer().write(module);
  return llvm::toHex(
      llvm::SHA256::hash(llvm::arrayRefFromStringRef<uint8_t>(text)),
      /*LowerCase=*/true);
}
