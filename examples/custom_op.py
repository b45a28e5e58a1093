# Part of Bastile, under the MIT License. See LICENSE.
"""A fused op in one line, with its backward, and a model that runs on it."""

import bastile
import torch
from bastile.functions import sigmoid


@bastile.compile
def quick_geglu(gate, up):
    """x * sigmoid(1.702 * x) of the gate, times up: the "quick" GELU, gated."""
    return gate * sigmoid(1.702 * gate) * up


class Block(torch.nn.Module):
    """A feed-forward layer whose activation is one kernel, forward and backward."""

    def __init__(self, size=64, inner=256):
        super().__init__()
        self.gate = torch.nn.Linear(size, inner)
        self.up = torch.nn.Linear(size, inner)
        self.down = torch.nn.Linear(inner, size)

    def forward(self, x):
        return self.down(quick_geglu(self.gate(x), self.up(x)))


def main():
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    block = Block().to(device)
    optimizer = torch.optim.AdamW(block.parameters(), lr=1e-2)
    x = torch.randn(512, 64, device=device)
    target = torch.sin(3 * x)
    for step in range(101):
        loss = torch.nn.functional.mse_loss(block(x), target)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if step % 25 == 0:
            print(f"step {step}: loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
