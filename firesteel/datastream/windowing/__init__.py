"""Window assigners, triggers and window serializers; ``datastream.window`` exports them."""
