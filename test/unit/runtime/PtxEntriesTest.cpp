//===- PtxEntriesTest.cpp - One kernel out of a PTX text ------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "bastile/runtime/PtxEntries.h"

#include <gtest/gtest.h>

using bastile::runtime::selectPtxEntry;

static const char *const text = R"(// bastile-metadata-begin
// {}
// bastile-metadata-end
//
.version 8.0
.target sm_90
.extern .shared .align 16 .b8 scratch[];

.visible .entry first(
	.param .u64 first_param_0
)
.reqntid 64, 1, 1
{
	ret;                            // the end
}
	// .globl	second
.visible .entry second(
	.param .u64 second_param_0
)
{
$L__BB1_1:
	{ // callseq 0
	}
	ret;
}
)";

TEST(PtxEntries, KeepsWhatAllEntriesShareAndOne) {
  EXPECT_EQ(selectPtxEntry(text, "second"), R"(.version 8.0
.target sm_90
.extern .shared .align 16 .b8 scratch[];

	// .globl	second
.visible .entry second(
	.param .u64 second_param_0
)
{
$L__BB1_1:
	{ // callseq 0
	}
	ret;
}
)");
}

TEST(PtxEntries, LeavesNoneOfOtherNames) {
  EXPECT_EQ(selectPtxEntry(text, "fir"), std::nullopt);
  EXPECT_EQ(selectPtxEntry(".version 8.0", "any"), std::nullopt);
}

TEST(PtxEntries, TakesTextWithoutATrailingNewline) {
  EXPECT_EQ(selectPtxEntry(".visible .entry any()\n{\n}", "any"),
            ".visible .entry any()\n{\n}\n");
}
