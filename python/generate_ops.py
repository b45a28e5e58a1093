# Part of Bastile, under the MIT License. See LICENSE.
"""Writes what Python needs to know of the model ops, out of their definitions.

Usage: generate_ops.py RECORDS OPS STUB, where RECORDS is what llvm-tblgen
--dump-json prints of dialect/TileOps.td, OPS becomes the descriptions that the
package reads and STUB the functions of bastile.ops for type checkers.
"""

import json
import re
import sys
import textwrap

# How the type of an operand follows from that of the first one.
KINDS = {
    "Tile_RowTensor": "row_tensor",
    "Tile_RowVector": "row_vector",
    "Tile_Matrix": "matrix",
    "Tile_ResultVector": "result_vector",
    "Tile_IntegerStatistic": "integer_statistic",
    "Tile_SmallRows": "small_rows",
    "Tile_ComputeRows": "compute_rows",
    "Tile_ComputeTensor": "compute_tensor",
}
# MLIR's spelling of each element type that operands may have.
ELEMENTS = {
    "F16": "f16",
    "BF16": "bf16",
    "F32": "f32",
    "F64": "f64",
    "F8E4M3FN": "f8E4M3FN",
    "F8E5M2": "f8E5M2",
    "I32": "i32",
    "I64": "i64",
}
NUMBERS = {"F64Attr": "f64", "I64Attr": "i64", "I32Attr": "i32"}


class Records:
    def __init__(self, document):
        self.document = document

    def get(self, reference):
        name = reference["def"] if isinstance(reference, dict) else reference
        return {"!name": name, **self.document[name]}

    def is_a(self, record, name):
        return name in record["!superclasses"]

    def model_ops(self):
        for name in self.document["!instanceof"]["Tile_ModelOp"]:
            record = self.get(name)
            yield record["opName"], record


def arguments(records, record, field):
    for reference, name in record[field]["args"]:
        yield name, records.get(reference)


def element_types(records, op, name, types):
    """The element types of an operand, with those of `AnyTypeOf` one by one."""
    for reference in types:
        element = records.get(reference)
        if records.is_a(element, "AnyTypeOf"):
            yield from element_types(records, op, name, element["allowedTypes"])
        elif element["!name"] in ELEMENTS:
            yield ELEMENTS[element["!name"]]
        else:
            sys.exit(
                f"operand '{name}' of '{op}' has elements of {element['!name']}, which "
                "generate_ops.py has no name for"
            )


def describe_operand(records, op, name, constraint):
    optional = records.is_a(constraint, "Optional")
    if optional:
        constraint = records.get(constraint["baseType"])
    kind = KINDS.get(constraint["!name"])
    if not kind:
        sys.exit(
            f"operand '{name}' of '{op}' is a {constraint['!name']}, which "
            "generate_ops.py has no kind for"
        )
    return {
        "name": name,
        "kind": kind,
        "elements": list(element_types(records, op, name, constraint["elementTypes"])),
        "optional": optional,
        "summary": constraint["summary"],
    }


def describe_attribute(records, op, name, attribute):
    result = {"name": name, "optional": False, "default": None}
    if attribute["!name"] == "UnitAttr":
        return {**result, "type": "unit", "default": False}
    default = attribute["defaultValue"]
    if records.is_a(attribute, "OptionalAttr"):
        result["optional"] = True
    while attribute["!anonymous"]:
        attribute = records.get(attribute["baseAttr"])
    if records.is_a(attribute, "IntEnumAttr"):
        cases = [records.get(case) for case in attribute["enumerants"]]
        result["type"] = "enum"
        result["cases"] = {case["str"]: case["value"] for case in cases}
        result["summary"] = attribute["summary"]
        if default:
            symbol = default.split("::")[-1]
            result["default"] = next(
                case["str"] for case in cases if case["symbol"] == symbol
            )
        return result
    if attribute["!name"] not in NUMBERS:
        sys.exit(
            f"attribute '{name}' of '{op}' is a {attribute['!name']}, which "
            "generate_ops.py cannot read"
        )
    result["type"] = NUMBERS[attribute["!name"]]
    if default:
        result["default"] = json.loads(re.sub(r"\.(?=e|$)", ".0", default))
    return result


def traits(records, references):
    for reference in references:
        trait = records.get(reference)
        if records.is_a(trait, "TraitList"):
            yield from traits(records, trait["traits"])
        else:
            yield trait


def same_types(records, record, operands):
    """Groups of operands and results that have to be of one type."""
    groups = []
    for trait in traits(records, record["traits"]):
        if trait.get("trait") == "SameOperandsAndResultType":
            results = [name for name, _ in arguments(records, record, "results")]
            groups.append([*operands, *results])
        elif records.is_a(trait, "AllTypesMatch"):
            groups.append(trait["values"])
    return groups


def same_elements(records, record):
    """Groups of operands that have to be of one element type."""
    return [
        trait["values"]
        for trait in traits(records, record["traits"])
        if records.is_a(trait, "AllElementTypesMatch")
    ]


def infers_types(records, record, operands, groups):
    """Whether the types of the results follow from those of the operands."""
    for trait in traits(records, record["traits"]):
        if trait.get("cppInterfaceName") == "InferTypeOpInterface":
            return True
    known = {x for group in groups if set(group) & set(operands) for x in group}
    results = [name for name, _ in arguments(records, record, "results")]
    return known.issuperset(results)


def describe_op(records, op, record):
    operands, attributes = [], []
    for name, argument in arguments(records, record, "arguments"):
        if records.is_a(argument, "AttrConstraint"):
            attributes.append(describe_attribute(records, op, name, argument))
        else:
            operands.append(describe_operand(records, op, name, argument))
    names = [operand["name"] for operand in operands]
    groups = same_types(records, record, names)
    results = list(arguments(records, record, "results"))
    return {
        "summary": record["summary"],
        "description": textwrap.dedent(record["description"]).strip(),
        "operands": operands,
        "attributes": attributes,
        "results": [name for name, _ in results],
        "same_types": groups,
        "same_elements": same_elements(records, record),
        "infers_types": infers_types(records, record, names, groups),
        # A loss of all rows has the shape of a row vector.
        "is_criterion": results[0][1]["!name"] == "Tile_ComputeRows",
    }


PYTHON_TYPES = {"f64": "float", "i64": "int", "i32": "int", "unit": "bool"}


def stub_attribute(attribute):
    kind = PYTHON_TYPES.get(attribute["type"])
    if not kind:
        kind = f"Literal[{', '.join(map(repr, attribute['cases']))}]"
    if attribute["optional"]:
        kind += " | None"
    return f"{attribute['name']}: {kind} = {attribute['default']!r}"


def stub_options(description):
    """What a call may say beside the attributes (`Definition.options`)."""
    if len(description["results"]) > 1:
        yield "returns: str | Sequence[str] | None = None"
    if not description["infers_types"]:
        yield "results: str | Sequence[str] | None = None"
    if description["is_criterion"]:
        yield "together: bool | None = None"
        yield "in_place: bool = False"


def stub_function(op, description):
    parameters = [
        f"{operand['name']}: Any" + (" | None = None" if operand["optional"] else "")
        for operand in description["operands"]
    ]
    keywords = [*map(stub_attribute, description["attributes"])]
    keywords += stub_options(description)
    if keywords:
        parameters += ["*", *keywords]
    # One result, or a tuple of those that a call asks for.
    return (
        f"def {op}({', '.join(parameters)}) -> Any:\n"
        f'    """{description["summary"]}."""\n'
    )


STUB_IMPORTS = """\
from collections.abc import Sequence
from typing import Any, Literal

from bastile._attention.functions import attention as attention
from bastile._losses.divergence.functions import (
    linear_jsd as linear_jsd,
    linear_kl as linear_kl,
)
from bastile._losses.functions import (
    linear_cross_entropy as linear_cross_entropy,
    vocab_parallel_linear_cross_entropy as vocab_parallel_linear_cross_entropy,
)
from bastile._losses.log_probs.functions import (
    linear_log_probs as linear_log_probs,
    vocab_parallel_linear_log_probs as vocab_parallel_linear_log_probs,
)
"""


def stub(ops):
    functions = [stub_function(op, description) for op, description in ops.items()]
    return "\n".join([STUB_IMPORTS, *functions])


def main():
    with open(sys.argv[1]) as file:
        records = Records(json.load(file))
    ops = {
        op: describe_op(records, op, record)
        for op, record in sorted(records.model_ops())
    }
    with open(sys.argv[2], "w") as file:
        json.dump(ops, file, indent=1)
    with open(sys.argv[3], "w") as file:
        file.write(stub(ops))


if __name__ == "__main__":
    main()
