"""A linear layer and the cross-entropy of its outputs, without all the logits."""
