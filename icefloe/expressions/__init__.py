"""Which rows are wanted: predicates, parsing, binding, projection through a spec, evaluation."""
