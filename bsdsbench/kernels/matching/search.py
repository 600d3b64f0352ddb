"""Insert vertices into an optimal matching one by one, along cheapest alternating paths."""

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
    step: index of the current threshold, from which new pairs are matched.
    """
    nodes, opposite_nodes = side.nodes, opposite.nodes
    new_pairs, n_waiting = 0, 0
    # Match the vertices whose best partner is free
    for k in range(n):
        vertex = entering[k]
        if nodes[vertex].mate != NO_VERTEX:
            continue
        if nodes[vertex].edge_header == EDGES_UNKNOWN:
            find_edges(vertex, side, opposite, geometry)
        partner, best_gain, second_gain = _best_partner(vertex, side, opposite)
        nodes[vertex].dual = best_gain
        if partner == NO_VERTEX:  # no gain is above 0: the vertex stays free
            continue
        if opposite_nodes[partner].mate != NO_VERTEX:  # let the vertex wait for a search
            entering[n_waiting] = vertex  # at the front of the array, which is read already
            n_waiting += 1
            continue
        # The sum of both duals is fixed. The partner gets as much of it as the second best edge of
        # the vertex allows, which shortens later searches
        nodes[vertex].dual = second_gain
        opposite_nodes[partner].dual += best_gain - second_gain
        nodes[vertex].mate, opposite_nodes[partner].mate = partner, vertex
        nodes[vertex].matched_since = opposite_nodes[partner].matched_since = step
        new_pairs += 1
    # Search a path from each of the others
    for k in range(n_waiting):
        root = entering[k]
        # `path_end` is the last opposite vertex of the cheapest path, or NO_VERTEX if it is cheaper
        # to leave the root free; the cost is then the root's dual, which therefore becomes 0
        path_cost, path_end, n_reached = _cheapest_end(root, side, opposite, geometry, work)
        # Let the duals of each edge of the path sum to exactly its weight. The search gave `dist`,
        # the distance from the root, to the vertices in `work.reached`. The dual of such a vertex
        # rises by the path's cost minus the distance, and that of its mate falls by as much
        nodes[root].dual -= path_cost
        for place in range(n_reached):
            neighbour = opposite_nodes[work.reached[place]]
            if neighbour.dist < path_cost:
                neighbour.dual += path_cost - neighbour.dist
                nodes[neighbour.mate].dual -= path_cost - neighbour.dist
            neighbour.dist = UNREACHED
        if path_end != NO_VERTEX:
            nodes[root].matched_since = step
            new_pairs += _flip(path_end, side, opposite, work, step)
    return new_pairs


@kernel(inline="always", _nrt=False)
def _best_partner(vertex, side, opposite):
    """Return the best partner of a vertex, and the gains of its best and second best edge.

    The gain of an edge is its weight minus the partner's dual: the smallest dual that the edge
    allows the vertex to have. Gains below 0 count as 0. If none is above 0, there is no partner,
    and NO_VERTEX is returned. The edges must be known.
    """
    partner, best, second = np.uint32(NO_VERTEX), np.int64(0), np.int64(0)
    # The edges of a vertex stand behind a header, whose field `to` is the index where they end
    header = side.nodes[vertex].edge_header
    for edge in range(header + 1, side.edges[header].to):
        gain = side.edges[edge].weight - opposite.nodes[side.edges[edge].to].dual
        if gain > best:
            best, second, partner = gain, best, side.edges[edge].to
        elif gain > second:
            second = gain
    return partner, best, second


@kernel(inline="always")
def _cheapest_end(root, side, opposite, geometry, work):
    """Find the end of the cheapest alternating path that starts at the free vertex `root`.

    An alternating path goes from a vertex of `side` to one of `opposite` by an unmatched edge, and
    back by a matched one. An unmatched edge costs its slack: the sum of the duals of its ends,
    minus its weight, which is never below 0. (The duals are numbers of the vertices that prove the
    matching optimal.) A matched edge costs nothing. A path may end in three ways:

    - at the root, which stays free: the cost is the root's dual, because a free vertex has dual 0
    - at a free vertex of `opposite`: the cost is the distance of this vertex from the root
    - at a vertex of `opposite` whose mate becomes free: the cost is the distance of this vertex
      plus the dual of the mate, which must become 0

    side, opposite: the vertex set of the root, and the other one. The vertices of `opposite`
        receive their distances from the root (`dist`) and the vertices before them on the path
        (`parent`). Edges of `side` that are not known are found.
    geometry, work: the constants for finding and weighting edges, and work space; `work.reached`
        receives the vertices of `opposite` that have a distance.

    Returns the cost of the path, its last vertex of `opposite` (NO_VERTEX if the root stays free),
    from which `parent` and `mate` lead back to the root, and the number of reached vertices.

    This is Dijkstra's algorithm on the slacks. The loop takes the vertices of `side` in the order
    of their distances, which are those of their mates. Vertices that wait are in `near_queue` if
    they are as near as the last one taken, and else in `far_queue`, in any order. Indices are
    np.uint64, because numba would test at each access whether a signed index counts from the end.
    """
    nodes, opposite_nodes, edges = side.nodes, opposite.nodes, side.edges
    near_queue, far_queue = work.near_queue, work.far_queue
    far_dist, far_index, reached = work.far_dist, work.far_index, work.reached
    zero, vertex = np.uint64(0), root
    cost, end = nodes[root].dual, np.uint32(NO_VERTEX)  # of the cheapest path so far: the root
    distance = np.int64(0)  # of `vertex`
    n_far = n_near = n_reached = zero
    while True:
        if nodes[vertex].edge_header == EDGES_UNKNOWN:
            find_edges(vertex, side, opposite, geometry)
        # Follow the edges of `vertex`. They stand behind a header, which says where they end (`to`)
        base, header = distance + nodes[vertex].dual, nodes[vertex].edge_header
        for e in range(header + 1, edges[header].to):
            j = edges[e].to
            neighbour = opposite_nodes[j]
            dist = base + neighbour.dual - edges[e].weight  # the distance of `vertex` + the slack
            # Skip it if it is no nearer than before, or no nearer than an end. A single comparison,
            # because the processor cannot predict which of the two limits is smaller
            limit = cost if cost < neighbour.dist else neighbour.dist
            if dist >= limit:
                continue
            mate, neighbour.parent = neighbour.mate, vertex
            if mate == NO_VERTEX:  # a free vertex: the path can end here
                cost, end = dist, j
                continue
            # Lists grow by 0 or 1 without a branch: an element beyond the length is overwritten
            is_new = np.uint64(neighbour.dist == UNREACHED)
            neighbour.dist = dist
            reached[n_reached] = j
            n_reached += is_new
            # Queue the mate. If it is not new it waits in `far_queue`, at the place far_index[mate]
            if dist == distance:
                near_queue[n_near] = mate
                n_near += ONE
                if not is_new:  # move it from there
                    place = np.uint64(far_index[mate])
                    n_far = _remove_from_queue(place, n_far, far_queue, far_dist, far_index)
            else:  # append it, or shorten its distance
                place = n_far if is_new else np.uint64(far_index[mate])
                far_queue[place], far_dist[place] = mate, dist
                far_index[mate] = place
                n_far += is_new
        # Take the next vertex, unless none that waits is nearer than the cheapest end
        if distance == cost:
            return cost, end, n_reached
        if n_near > 0:
            n_near -= ONE
            vertex = near_queue[n_near]
        else:
            distance, nearest = cost, zero
            for place in range(n_far):
                if far_dist[place] < distance:
                    distance, nearest = far_dist[place], place
            if distance == cost:
                return cost, end, n_reached
            vertex = far_queue[nearest]
            n_far = _remove_from_queue(nearest, n_far, far_queue, far_dist, far_index)
        if distance + nodes[vertex].dual < cost:  # the path can end before it, and make it free
            cost, end = distance + nodes[vertex].dual, nodes[vertex].mate


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


@kernel(inline="always", _nrt=False)
def _flip(path_end, side, opposite, work, step):
    """Exchange the matched and the unmatched edges of a path, and return the number of new pairs.

    The path leads from a free vertex of `side`, its root, to the vertex `path_end` of `opposite`.
    Its vertices are, from the root on: a, B, b, C, c, D with `parent` B -> a, C -> b and D -> c,
    and the pairs B b and C c. They become a B, b C and c D. So D had no mate, and there is one pair
    more. If D had a mate d, this becomes free instead, and the steps during which it was matched
    are recorded; there is no new pair. b, c, B and C stay matched since the same steps.

    side, opposite: the two vertex sets, whose mates are changed in place.
    work, step: work space of the search, and the index of the current step (threshold).
    """
    nodes, opposite_nodes = side.nodes, opposite.nodes
    ousted, new_pairs = opposite_nodes[path_end].mate, 1
    if ousted == NO_VERTEX:
        opposite_nodes[path_end].matched_since = step
    else:
        nodes[ousted].mate = NO_VERTEX
        record_matched_steps(ousted, side, work, step)
        new_pairs = 0
    last = path_end
    while last != NO_VERTEX:  # the root has no mate, which ends the loop
        vertex = opposite_nodes[last].parent
        opposite_nodes[last].mate = vertex
        previous = nodes[vertex].mate
        nodes[vertex].mate = last
        last = previous
    return new_pairs


@inner
def record_matched_steps(vertex, side, work, step):
    """Record the steps during which a vertex was matched: from `matched_since` to step - 1.

    Step s is bit s & 63 of word s >> 6 of the vertex's row in `side.matched_bits`, which is changed
    in place. Row s of `work.steps_before` has the bits of all steps before step s.
    """
    before, since = work.steps_before, side.nodes[vertex].matched_since
    # XOR leaves the steps before `step`, but not before `since`
    for word in range(before.shape[1]):
        side.matched_bits[vertex, word] |= before[step, word] ^ before[since, word]
