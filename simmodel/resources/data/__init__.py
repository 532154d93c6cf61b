"""Room for data: storages, memory pools, eviction, and the catalogue of a grid."""
