# Part of Bastile, under the MIT License. See LICENSE.
"""What rooms above do when PyTorch's side is imported, such as registering operators."""

_followers = []


def follow(follower):
    """Has ``follower`` called once, when this room has registered its own operators."""
    _followers.append(follower)
    return follower


def call():
    """Calls those that follow."""
    for follower in _followers:
        follower()
