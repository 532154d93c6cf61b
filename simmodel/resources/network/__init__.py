"""Networks: links, routes, transfers and the bandwidths that they share."""
