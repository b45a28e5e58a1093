# Part of Bastile, under the MIT License. See LICENSE.
"""Functions that torch.compile calls while it compiles, in place of what it would make of
their code."""


def constant_in_graphs(function):
    """Says that ``function`` returns the same whenever a graph runs, like
    `torch.compiler.assume_constant_result`. That one imports all of torch.compile, which
    takes more than a second, when it is called: ahead of each first call, compiled or not.
    """
    function._dynamo_marked_constant = True
    return function
