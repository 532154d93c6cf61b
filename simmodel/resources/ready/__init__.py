"""Ready models of resources, by what they model: to use, and to see how short a model is."""
