"""Fast paths of policies: the decisions of a rule, without what can be left out since nothing has changed."""
