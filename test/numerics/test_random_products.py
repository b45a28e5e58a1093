# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %pytest %s
"""Random functions with products of matrices among other ops, and their gradients, as
in test_random_graphs.py, of far fewer seeds: a function takes seconds, as all
variants of its products are compiled."""

import graph_products
from random_graphs import COUNT, check_graphs


def test_random_graphs_with_products():
    check_graphs(graph_products.generate, COUNT // 6)
