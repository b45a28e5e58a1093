//===- OpNames.td - Each name of an op is there once -----------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Of two ops of one name the dialect would register one and say nothing. This
// file looks at the ops that are defined before it is included.
//
//===----------------------------------------------------------------------===//

include "dialect/TileDialect.td"

defvar allOps = !instances<Tile_Op>();
foreach op = allOps in {
  defvar same = !foreach(
      other, !filter(other, allOps, !eq(other.opName, op.opName)),
      !cast<string>(other));
  // One error for each name, at the first of its ops.
  assert !or(!eq(!size(same), 1), !ne(!head(same), !cast<string>(op))),
         "several ops are named '" # op.opName # "': " #
         !interleave(same, ", ") # "; give each a name of its own";
}
