"""Insert vertices into an optimal matching one by one, along cheapest alternating paths.

The terms side, vertex, mate and step are explained in graph.py, and duals in `enter_vertices`.
"""

from __future__ import annotations

import numpy as np

from bsdsbench.kernels.bits import ONE
from bsdsbench.kernels.jit import inner, kernel
from bsdsbench.kernels.matching.graph import EDGES_UNKNOWN, NO_VERTEX, UNREACHED, find_edges


@inner
def enter_vertices(entering, n, side, opposite, geometry, work, step):
    """Insert vertices, keep the matching optimal, and return how many pairs it gains.

    The matching has the largest total weight. This is proved by the duals, one number >= 0 for each
    vertex: it is 0 if the vertex is free (unmatched), and the duals of an edge's two ends sum to at
    least its weight, and to exactly its weight if they are matched.

    A new vertex gets the smallest dual that its edges allow. If its best partner is free, the two
    are matched. Otherwise the vertex is free but has a positive dual. To repair this, the cheapest
    alternating path from it is searched (`_cheapest_end`), and the path's edges are exchanged
    (`_flip`). A vertex stays free if no path increases the total weight.

    entering uint32: the vertices entering[:n] of `side` are inserted; those that already have a
        mate are skipped. The array is overwritten.
    side, opposite: the two vertex sets. Their mates, edges and duals are changed in place.
    geometry, work: the constants for finding and weighting edges, and work space.
    step: index of the current step (threshold). It is stored in each vertex that becomes matched,
        as the step from which it is matched.
    """
    nodes, opposite_nodes, edges, reached = side.nodes, opposite.nodes, side.edges, work.reached
    new_pairs, n_waiting = 0, 0
    for k in range(n):
        vertex = entering[k]
        node = nodes[vertex]
        if node.mate != NO_VERTEX:
            continue
        if node.edge_header == EDGES_UNKNOWN:
            find_edges(vertex, side, opposite, geometry)
        # The two largest gains of its edges. The gain of an edge is its weight minus the partner's
        # dual: the smallest dual that the edge allows the vertex to have
        best = second = np.int64(0)
        partner = np.uint32(NO_VERTEX)
        # The edges stand behind a header, in which the field `to` is the index where they end
        for e in range(node.edge_header + 1, edges[node.edge_header].to):
            gain = edges[e].weight - opposite_nodes[edges[e].to].dual
            if gain > best:
                best, second, partner = gain, best, edges[e].to
            elif gain > second:
                second = gain
        node.dual = best
        if partner == NO_VERTEX:  # no gain is above 0: the vertex stays free
            continue
        partner_node = opposite_nodes[partner]
        if partner_node.mate != NO_VERTEX:
            entering[n_waiting] = vertex  # to the front of the array, where it is read already
            n_waiting += 1
            continue
        # The sum of both duals is fixed. The partner gets as much of it as the second best edge of
        # the vertex allows, which shortens later searches
        node.dual, node.mate, node.matched_since = second, partner, step
        partner_node.dual += best - second
        partner_node.mate, partner_node.matched_since = vertex, step
        new_pairs += 1
    for k in range(n_waiting):
        root = entering[k]
        # `reached` lists the opposite vertices that the search gave a distance from the root
        cost, last, n_reached = _cheapest_end(root, side, opposite, geometry, work)
        # Let the duals of each edge of the path sum to exactly its weight: the dual of a reached
        # vertex rises by the path's cost minus its distance, that of its mate falls by as much
        nodes[root].dual -= cost
        for place in range(n_reached):
            neighbour = opposite_nodes[reached[place]]
            if neighbour.dist < cost:
                neighbour.dual += cost - neighbour.dist
                nodes[neighbour.mate].dual -= cost - neighbour.dist
            neighbour.dist = UNREACHED
        if last != NO_VERTEX:  # exchange the path's matched and unmatched edges; else stay free
            nodes[root].matched_since = step
            new_pairs += _flip(
                last, nodes, opposite_nodes, side.matched_bits, work.steps_before, step
            )
    return new_pairs


@kernel(inline="always")
def _cheapest_end(root, side, opposite, geometry, work):
    """Find the end of the cheapest alternating path that starts at the free vertex `root`.

    An alternating path consists of unmatched and matched edges in turn. An unmatched edge costs its
    slack: the sum of the duals of its ends, minus its weight, which is never below 0. (The duals
    are numbers of the vertices that prove the matching optimal.) Matched edges cost nothing, so a
    vertex is as far from the root as its mate before it on the path.

    side, opposite: the vertex set of the root, and the other one. The vertices of `opposite`
        receive their distances from the root (`dist`) and the vertices before them on the path
        (`parent`). Edges of `side` that are not known are found.
    geometry, work: the constants for finding and weighting edges, and work space; `work.reached`
        receives the vertices of `opposite` that have a distance.

    Returns the cost of the path, its last opposite vertex (from which `parent` and `mate` lead back
    to the root), and the number of reached vertices. The path ends in one of three ways:

    - the root stays free: the last vertex is NO_VERTEX, and the cost is the root's dual
    - the last vertex is free: the cost is the length of the path
    - the last vertex has a mate, which becomes free. As a free vertex has the dual 0, the cost
      includes the dual that this mate must give up

    This is Dijkstra's algorithm on the slacks of edges. A reached opposite vertex puts its mate
    into a queue of two parts: `near_queue` has the vertices at the current distance `length`, and
    `far_queue` all others, unordered. The loop takes one vertex of `side` after another, in the
    order of their distances, and `best` is the cost of the cheapest end so far. Indices are
    np.uint64, because numba would test at each access whether a signed index counts from the end.
    """
    nodes, opposite_nodes, edges = side.nodes, opposite.nodes, side.edges
    near_queue, far_queue = work.near_queue, work.far_queue
    far_dist, far_index, reached = work.far_dist, work.far_index, work.reached
    zero, vertex = np.uint64(0), root
    best, last = nodes[root].dual, np.uint32(NO_VERTEX)  # the cheapest end: the root stays free
    length = np.int64(0)  # the distance of `vertex`
    n_far = n_near = n_reached = zero
    while True:
        if nodes[vertex].edge_header == EDGES_UNKNOWN:
            find_edges(vertex, side, opposite, geometry)
        # Follow the edges of `vertex`. They stand behind a header, which says where they end (`to`)
        base, header = length + nodes[vertex].dual, nodes[vertex].edge_header
        for e in range(header + 1, edges[header].to):
            j = edges[e].to
            neighbour = opposite_nodes[j]
            dist = base + neighbour.dual - edges[e].weight  # the distance of `vertex` + the slack
            # Branch-free, because the processor cannot predict which of the two is smaller
            shortest = best if best < neighbour.dist else neighbour.dist
            if dist >= shortest:
                continue
            mate, neighbour.parent = neighbour.mate, vertex
            if mate == NO_VERTEX:  # the path can end here
                best, last = dist, j
                continue
            # Note the distance, and queue the mate. If it was reached before, it is in `far_queue`,
            # because no path to a vertex of `near_queue` is shorter. `is_new` is 1 or 0, so that
            # lengths grow without a branch; what is written beyond a length is overwritten later
            is_new = np.uint64(neighbour.dist == UNREACHED)
            neighbour.dist = dist
            reached[n_reached] = j
            n_reached += is_new
            if dist == length:
                near_queue[n_near] = mate
                n_near += ONE
                if not is_new:  # move it from `far_queue`
                    place = np.uint64(far_index[mate])
                    n_far = _remove_from_queue(place, n_far, far_queue, far_dist, far_index)
            else:  # append it to `far_queue`, or shorten its distance there
                place = n_far if is_new else np.uint64(far_index[mate])
                far_queue[place], far_dist[place] = mate, dist
                far_index[mate] = place
                n_far += is_new
        if length == best:  # no queued vertex is nearer than the cheapest end
            return best, last, n_reached
        if n_near > 0:
            n_near -= ONE
            vertex = near_queue[n_near]
        else:
            length, nearest = best, zero  # take the nearest vertex of the far queue
            for place in range(n_far):
                if far_dist[place] < length:
                    length, nearest = far_dist[place], place
            if length == best:
                return best, last, n_reached
            vertex = far_queue[nearest]
            n_far = _remove_from_queue(nearest, n_far, far_queue, far_dist, far_index)
        # The path can end at the mate of `vertex`, which makes `vertex` free
        if length + nodes[vertex].dual < best:
            best, last = length + nodes[vertex].dual, nodes[vertex].mate


@inner
def _remove_from_queue(place, n, queue, dist, index):
    """Remove entry `place` of an unordered queue in place, and return the new length.

    n: number of vertices in the queue. The last one is moved to the removed place.
    queue, dist: the vertices in the queue, and their distances.
    index: the index in `queue` of each vertex of the side.
    """
    n -= ONE
    queue[place], dist[place] = queue[n], dist[n]
    index[queue[place]] = place
    return n


@inner
def _flip(last, nodes, opposite_nodes, bits, before, step):
    """Exchange the matched and the unmatched edges of a path, which matches its first vertex.

    The path starts at the vertex being inserted, which has no mate. Back from the end, `parent` of
    an opposite vertex is the vertex before it, by an unmatched edge, and `mate` of that vertex is
    the opposite vertex before, by a matched edge.

    last: the opposite vertex at which the path ends.
    nodes, opposite_nodes NODE_DTYPE: the vertices of both sides; their mates are changed in place.
    bits uint64 (n, words): the steps at which each vertex of `nodes` is matched.
    before uint64 (steps + 1, words): row s has the bits of all steps before step s.
    step: index of the current step (threshold).

    Returns the number of new pairs. It is 1 if `last` was free. If `last` had a mate, it is 0; the
    mate becomes free, and the steps during which it was matched are recorded in `bits`. Vertices
    that only change their mates stay matched since the same step.
    """
    ousted, new_pairs = opposite_nodes[last].mate, 1
    if ousted == NO_VERTEX:
        opposite_nodes[last].matched_since = step
    else:
        nodes[ousted].mate = NO_VERTEX
        record_matched_steps(ousted, nodes, bits, before, step)
        new_pairs = 0
    while last != NO_VERTEX:  # the first vertex of the path has no mate, which ends the loop
        vertex = opposite_nodes[last].parent
        opposite_nodes[last].mate = vertex
        previous = nodes[vertex].mate
        nodes[vertex].mate = last
        last = previous
    return new_pairs


@inner
def record_matched_steps(vertex, nodes, bits, before, step):
    """Record the steps during which a vertex was matched: from `matched_since` to step - 1.

    nodes: the vertices, with the field `matched_since`.
    bits uint64 (n, words): the steps at which each vertex is matched; step s is bit s & 63 of word
        s >> 6. Changed in place.
    before uint64 (steps + 1, words): row s has the bits of all steps before step s.
    """
    since = nodes[vertex].matched_since
    # XOR leaves the steps before `step`, but not before `since`
    for word in range(before.shape[1]):
        bits[vertex, word] |= before[step, word] ^ before[since, word]
