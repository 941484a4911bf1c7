"""Values that all of the runtime shares: stream elements, deployment descriptors, messages, state handles."""
