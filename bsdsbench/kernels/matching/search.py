"""Insert vertices into an optimal matching one by one, along cheapest alternating paths.

The terms side, vertex, mate, arena and step are explained in graph.py.

Duals. Every vertex has a dual >= 0, and a free (unmatched) vertex has dual 0. The duals of an
edge's two ends sum to at least its weight, and to exactly its weight if it is matched; the excess
is the edge's slack, and an edge without slack is tight. Such duals certify a matching of maximum
weight (linear programming duality).

A new vertex gets the smallest dual that its edges allow. If the other end of a tight edge is free,
the two are matched. Otherwise the new vertex is free but has a positive dual, which is not allowed.
To repair this, the cheapest alternating path from the new vertex to one of three ends is searched
(`_cheapest_end`). Paths that cost more than the best end so far are not followed. Finally the dual
of each reached vertex changes by the cost of the best end minus the vertex's distance, and the path
is flipped.
"""

from __future__ import annotations

import numpy as np

from bsdsbench.kernels.bits import ONE
from bsdsbench.kernels.jit import inner, kernel
from bsdsbench.kernels.matching.graph import EDGES_UNKNOWN, NO_VERTEX, UNREACHED, find_edges


@inner
def enter_vertices(entering, n, side, opposite, geometry, work, step):
    """Insert vertices, keep the matching optimal, and return how many pairs it gains.

    Vertices whose best partner is free are matched first. The others then search for a cheapest
    alternating path. A vertex stays free if no path increases the total weight.

    entering uint32: the vertices entering[:n] of `side` are inserted; those that already have a
        mate are skipped. The array is overwritten.
    side, opposite: the two vertex sets, each a Side. Their mates, edges and duals (the variables
        that prove the matching optimal) are changed in place.
    geometry: the constants for finding and weighting edges.
    work: work space.
    step: index of the current step (threshold). It is stored in each vertex that becomes matched,
        as the step from which it is matched.
    """
    nodes, opposite_nodes, edges, reached = side.node, opposite.node, side.edge, work.reached
    new_pairs, n_waiting = 0, 0
    for k in range(n):
        vertex = entering[k]
        node = nodes[vertex]
        if node.mate != NO_VERTEX:
            continue
        if node.first_edge == EDGES_UNKNOWN:
            find_edges(vertex, side, opposite, geometry)
        # The gain of an edge is its weight minus the partner's dual. The vertex stays free if no
        # gain is above 0.
        best = second = np.int64(0)
        partner = np.uint32(NO_VERTEX)
        for e in range(node.first_edge + 1, edges[node.first_edge].to):
            gain = edges[e].weight - opposite_nodes[edges[e].to].dual
            if gain > best:
                best, second, partner = gain, best, edges[e].to
            elif gain > second:
                second = gain
        node.dual = best
        if partner == NO_VERTEX:
            continue
        partner_node = opposite_nodes[partner]
        if partner_node.mate != NO_VERTEX:
            entering[n_waiting] = vertex
            n_waiting += 1
            continue
        # The partner's dual rises as far as the second best partner allows, which shortens later
        # searches
        node.dual, node.mate, node.since = second, partner, step
        partner_node.dual += best - second
        partner_node.mate, partner_node.since = vertex, step
        new_pairs += 1
    for k in range(n_waiting):
        root = entering[k]
        cost, last, n_reached = _cheapest_end(root, side, opposite, geometry, work)
        # Make all edges of the path tight: each reached vertex moves by the difference between the
        # cost of the path and its own distance, its mate by as much in the other direction
        nodes[root].dual -= cost
        for place in range(n_reached):
            neighbour = opposite_nodes[reached[place]]
            if neighbour.dist < cost:
                neighbour.dual += cost - neighbour.dist
                nodes[neighbour.mate].dual -= cost - neighbour.dist
            neighbour.dist = UNREACHED
        if last != NO_VERTEX:
            nodes[root].since = step
            new_pairs += _flip(last, nodes, opposite_nodes, side.bits, work.before, step)
    return new_pairs


@kernel(inline="always")
def _cheapest_end(root, side, opposite, geometry, work):
    """Find the end of the cheapest alternating path that starts at the free vertex `root`.

    An alternating path consists of unmatched and matched edges in turn. An unmatched edge costs its
    slack: the sum of the duals (variables that prove the matching optimal) of its ends, minus its
    weight. Matched edges cost nothing.

    side, opposite: the vertex set of the root, and the other one. The vertices of `opposite`
        receive their distances from the root and their parents on the path. Edges of `side` that
        are not in the arena are found.
    geometry: the constants for finding and weighting edges.
    work: work space; `work.reached` receives the vertices of `opposite` that have a distance.

    Returns the cost of the path, its last opposite vertex (from which `parent` and `mate` lead back
    to the root), and the number of reached vertices. The path ends in one of three ways:

    - the root stays free: the last vertex is NO_VERTEX, and the cost is the root's dual
    - the last vertex is free: the cost is the length of the path
    - the last vertex has a mate, which becomes free; the cost includes the dual of this mate

    This is Dijkstra's algorithm on the slacks of edges. Its queue has two parts: the vertices at
    the current distance (`tight`), and all others (`front`). Indices are np.uint64, because numba
    would test at each access whether a signed index counts from the end.
    """
    nodes, opposite_nodes, edges = side.node, opposite.node, side.edge
    tight, front = work.tight, work.front
    front_dist, front_place, reached = work.front_dist, work.front_place, work.reached
    zero, vertex = np.uint64(0), root
    # The cost and the last vertex of the cheapest end so far: the root stays free
    best, last = nodes[root].dual, np.uint32(NO_VERTEX)
    length = np.int64(0)  # the distance of `vertex`
    n_front = n_tight = n_reached = zero
    while True:
        if nodes[vertex].first_edge == EDGES_UNKNOWN:
            find_edges(vertex, side, opposite, geometry)
        # Relax the edges of the vertex, which has the distance `length`
        base, header = length + nodes[vertex].dual, nodes[vertex].first_edge
        for e in range(header + 1, edges[header].to):
            j = edges[e].to
            neighbour = opposite_nodes[j]
            dist = base + neighbour.dual - edges[e].weight
            # Branch-free, because the processor cannot predict which of the two is smaller
            shortest = best if best < neighbour.dist else neighbour.dist
            if dist >= shortest:
                continue
            mate, neighbour.parent = neighbour.mate, vertex
            if mate == NO_VERTEX:  # the path can end here
                best, last = dist, j
                continue
            is_new = np.uint64(neighbour.dist == UNREACHED)
            neighbour.dist = dist
            reached[n_reached] = j
            n_reached += is_new
            if dist == length:
                tight[n_tight] = mate
                n_tight += ONE
                if not is_new:
                    place = np.uint64(front_place[mate])
                    n_front = _remove_from_front(place, n_front, front, front_dist, front_place)
            else:
                place = n_front if is_new else np.uint64(front_place[mate])
                front[place], front_dist[place] = mate, dist
                front_place[mate] = place
                n_front += is_new
        if length == best:
            return best, last, n_reached
        if n_tight > 0:
            n_tight -= ONE
            vertex = tight[n_tight]
        else:
            length, nearest = best, zero  # take the nearest vertex of the front
            for place in range(n_front):
                if front_dist[place] < length:
                    length, nearest = front_dist[place], place
            if length == best:
                return best, last, n_reached
            vertex = front[nearest]
            n_front = _remove_from_front(nearest, n_front, front, front_dist, front_place)
        if length + nodes[vertex].dual < best:  # the path can end here: this vertex becomes free
            best, last = length + nodes[vertex].dual, nodes[vertex].mate


@inner
def _remove_from_front(place, n_front, front, front_dist, front_place):
    """Remove entry `place` of an unordered queue in place, and return the new length.

    n_front: number of vertices in the queue. The last one is moved to the removed place.
    front, front_dist: the vertices in the queue, and their distances.
    front_place: the index in `front` of each vertex of the side.
    """
    n_front -= ONE
    front[place], front_dist[place] = front[n_front], front_dist[n_front]
    front_place[front[place]] = place
    return n_front


@inner
def _flip(last, nodes, opposite_nodes, bits, before, step):
    """Exchange the matched and the unmatched edges of a path, which matches its first vertex.

    last: the opposite vertex at which the path ends. The fields `parent` and `mate` lead from it
        back to the start of the path, the vertex being inserted.
    nodes, opposite_nodes NODE_DTYPE: the vertices of both sides; their mates are changed in place.
    bits, before, step: as in `record_matched_steps`.

    Returns the number of new pairs. It is 1 if `last` was free. If `last` had a mate, it is 0; the
    mate becomes free, and the steps during which it was matched are recorded in `bits`.
    """
    ousted, new_pairs = opposite_nodes[last].mate, 1
    if ousted == NO_VERTEX:
        opposite_nodes[last].since = step
    else:
        nodes[ousted].mate = NO_VERTEX
        record_matched_steps(ousted, nodes, bits, before, step)
        new_pairs = 0
    while last != NO_VERTEX:
        vertex = opposite_nodes[last].parent
        opposite_nodes[last].mate = vertex
        nodes[vertex].mate, last = last, nodes[vertex].mate
    return new_pairs


@inner
def record_matched_steps(vertex, nodes, bits, before, step):
    """Record in `bits` the steps during which a vertex was matched: from `since` to step - 1.

    nodes: the vertices. The field `since` is the step from which the vertex was matched.
    bits uint64 (n, words): the steps at which each vertex is matched; step s is bit s & 63 of word
        s >> 6. Changed in place.
    before uint64 (steps + 1, words): row s has the bits of all steps before step s.
    """
    since = nodes[vertex].since
    for word in range(before.shape[1]):
        bits[vertex, word] |= before[step, word] ^ before[since, word]
