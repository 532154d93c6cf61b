"""Ready models of resources, each in a file: to use, and to see how short a model is."""
